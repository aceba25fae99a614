"""The three LJP setups in one command: Direct, Gold-Standard, Interaction-Based, each as in its own file.

Reads: the data file, interaction. Writes: a1_direct, ljp_direct, a1_force_judge, ljp_gold, ljp_interaction.
An interaction that is not complete is refused before anything is asked: run LexAwN_gen.py first.
"""

from collections.abc import Sequence

import eval_LJP_direct
import eval_LJP_gold
import eval_LJP_interaction
from adapter import Connect, openai_client
from common import conduct
from errors import command


def main(argv: Sequence[str] | None = None, connect: Connect = openai_client) -> None:
    about = "Run all three LJP setups: Direct, Gold-Standard and Interaction-Based."
    steps = (*eval_LJP_direct.STEPS, *eval_LJP_gold.STEPS, *eval_LJP_interaction.STEPS)
    conduct(argv, connect, "eval_LJP.py", about, steps)


if __name__ == "__main__":
    command(main)
