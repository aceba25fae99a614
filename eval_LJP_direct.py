"""Direct LJP: how well does the model decide each claim when a decisive fact is missing and it may not ask?

Measures: one verdict for each claim (QWK and accuracy in show_results.py).
Reads: the data file. Writes: a1_direct (Force_judge_gen/…/a1_direct.jsonl), ljp_direct (eval_results/…/LJP_direct.jsonl).
Asks: the evaluated model once a case, which sees the underspecified history; the judge once a case, which sees the
response and the claim texts. Prompt and extraction are those of eval_LJP_gold.py.
Source: the paper's Sections 4 to 6 and Appendix F.
"""

from collections.abc import Sequence

from adapter import ChatModel, Connect, openai_client
from checkpoints import Planned, Step
from common import conduct
from errors import command
from eval_LJP_gold import extraction, force_judge_prompt
from records import DirectPrediction, History


def predict(underspecified: History, evaluated: ChatModel) -> DirectPrediction:
    response = evaluated.ask(force_judge_prompt(underspecified))
    return DirectPrediction(underspecified_history=underspecified, response=response)


STEPS = (
    Step(
        "a1_direct",
        roles=("evaluated",),
        work=lambda case, earlier, models: predict(case.underspecified, models["evaluated"]),
        plan=lambda case, earlier, replies: [Planned("evaluated", force_judge_prompt(case.underspecified))],
    ),
    extraction("ljp_direct", "a1_direct", "response"),
)


def main(argv: Sequence[str] | None = None, connect: Connect = openai_client) -> None:
    about = "Predict every claim from the underspecified histories and extract the verdicts."
    conduct(argv, connect, "eval_LJP_direct.py", about, STEPS)


if __name__ == "__main__":
    command(main)
