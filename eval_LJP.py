"""The three LJP setups in one command: Direct, Gold-Standard, Interaction-Based, each as in its own file.

Reads: the data file, interaction. Writes: a1_direct, ljp_direct, a1_force_judge, ljp_gold, ljp_interaction.
An interaction that is not complete is refused before anything is asked: run LexAwN_gen.py first.
"""

from collections.abc import Sequence

import eval_LJP_direct
import eval_LJP_gold
import eval_LJP_interaction
from adapter import Connect, openai_client
from common import start
from errors import command


def main(argv: Sequence[str] | None = None, connect: Connect = openai_client) -> None:
    about = "Run all three LJP setups: Direct, Gold-Standard and Interaction-Based."
    reads, writes = ("interaction",), ("a1_direct", "ljp_direct", "a1_force_judge", "ljp_gold", "ljp_interaction")
    run = start(argv, connect, "eval_LJP.py", about, roles=("evaluated", "judge"), reads=reads, writes=writes)
    for setup in (eval_LJP_direct, eval_LJP_gold, eval_LJP_interaction):
        setup.evaluate(run)


if __name__ == "__main__":
    command(main)
