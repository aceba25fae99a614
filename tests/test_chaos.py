"""The short form of `chaos.py`: kills, a full disk, faults and Ctrl-C leave nothing lost, doubled or paid for twice."""

import importlib.util
import os
import unittest

from chaos import SHORT, chaos


@unittest.skipUnless(os.name == "posix", "kills process groups and limits file sizes")
@unittest.skipUnless(importlib.util.find_spec("openai"), "needs the openai package")
class ShortForm(unittest.TestCase):
    def test_what_is_done_to_a_run_leaves_the_records_of_an_uninterrupted_one(self) -> None:
        self.assertEqual(chaos(SHORT, say=lambda line: None), [])


if __name__ == "__main__":
    unittest.main()
