"""Interaction-Based LJP: how well does the model decide each claim after it could ask?

Measures: one verdict for each claim (QWK and accuracy in show_results.py), from the final response of the interaction
that LexAwN_gen.py held; no earlier response counts.
Reads: interaction (AwN_gen/…/interaction.jsonl). Writes: ljp_interaction (eval_results/…/LJP_interaction.jsonl).
Asks: the judge once a case, which sees the final response and the claim texts. The extraction is that of
eval_LJP_gold.py.
Source: the paper's Sections 4 to 6 and Appendix F.
"""

from collections.abc import Sequence

from adapter import Connect, openai_client
from common import conduct
from errors import command
from eval_LJP_gold import extraction

STEPS = (extraction("ljp_interaction", "interaction", "final_response"),)


def main(argv: Sequence[str] | None = None, connect: Connect = openai_client) -> None:
    about = "Extract the verdicts from the final responses of a run's interactions."
    conduct(argv, connect, "eval_LJP_interaction.py", about, STEPS)


if __name__ == "__main__":
    command(main)
