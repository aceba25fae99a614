"""Direct LJP: how well does the model decide each claim when a decisive fact is missing and it may not ask?

Measures: one verdict for each claim (QWK and accuracy in show_results.py).
Reads: the data file. Writes: a1_direct (Force_judge_gen/…/a1_direct.jsonl), ljp_direct (eval_results/…/LJP_direct.jsonl).
Asks: the evaluated model once a case, which sees the underspecified history; the judge once a case, which sees the
response and the claim texts. Prompt and extraction are those of eval_LJP_gold.py.
Source: the paper's Sections 4 to 6 and Appendix F.
"""

from collections.abc import Sequence

from adapter import ChatModel, Connect, openai_client
from checkpoints import Run
from common import start
from errors import command
from eval_LJP_gold import extract_verdicts, force_judge_prompt
from records import Case, DirectPrediction, History, Verdicts


def predict(underspecified: History, evaluated: ChatModel) -> DirectPrediction:
    response = evaluated.ask(force_judge_prompt(underspecified))
    return DirectPrediction(underspecified_history=underspecified, response=response)


def evaluate(run: Run) -> None:
    evaluated, judge = run.model("evaluated"), run.model("judge")
    run.each_case("a1_direct", lambda case: predict(case.underspecified, evaluated))
    predictions: dict[str, DirectPrediction] = run.read("a1_direct")

    def extract(case: Case) -> Verdicts:
        return extract_verdicts(list(case.verdicts), predictions[case.number]["response"], judge)

    run.each_case("ljp_direct", extract)


def main(argv: Sequence[str] | None = None, connect: Connect = openai_client) -> None:
    about = "Predict every claim from the underspecified histories and extract the verdicts."
    writes = ("a1_direct", "ljp_direct")
    evaluate(start(argv, connect, "eval_LJP_direct.py", about, roles=("evaluated", "judge"), writes=writes))


if __name__ == "__main__":
    command(main)
