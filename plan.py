"""What a command will ask and what that may cost, before it asks anything (`--plan`).

Counts are exact for an undisturbed run: the calls that are made whatever the models answer, and those that their answers
may add. Tokens and cost are ranges, since neither the tokenizer nor the replies are known: a character of a prompt is
taken for half a token to one and a half (Chinese text with tokenizers of 2023 to 2026), a reply for one token up to the
token limit of its role. What has no limit or no price is `unknown`. Where earlier records of comparable runs tell usage,
their mean a case gives the likely figure.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from adapter import Role
from checkpoints import Planned, Run, differences, read_manifest
from errors import CheckpointError, SettingsError
from records import MANIFEST_PATH, Call, Case, RoleName
from replies import decode_utf8, is_blank, tokens_of, unique_keys

TOKENS_PER_CHARACTER = (0.5, 1.5)
Left = tuple[str, Sequence[Case], Sequence[Planned]]
"""A file's name, the cases that have no record in it yet, and the calls that these may need."""

# ----------------------------------------------------------------------------------------------------------------------
# Prices


class Price(NamedTuple):
    """Of a million tokens."""

    prompt: float
    completion: float
    currency: str

    def of(self, tokens: tuple[float | None, float | None]) -> float | None:
        """What prompt and completion tokens cost; None if either is unknown."""
        prompt, completion = tokens
        if prompt is None or completion is None:
            return None
        return (prompt * self.prompt + completion * self.completion) / 1e6


def read_prices(path: Path) -> dict[str, Price]:
    """Prices by model: {"MODEL": {"prompt": 0.5, "completion": 2, "currency": "USD"}, …}; SettingsError if it is not so."""
    try:
        value = json.loads(decode_utf8(path.read_bytes()), object_pairs_hook=unique_keys)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: not a JSON file of prices: {error}") from error
    prices = {}
    for model, given in value.items() if isinstance(value, dict) else [("the file", value)]:
        fields = given if isinstance(given, dict) else {}
        amounts = [fields.get(key) for key in ("prompt", "completion")]
        numbers = all(
            isinstance(amount, (int, float)) and not isinstance(amount, bool) and 0 <= amount < 1e9
            for amount in amounts
        )
        currency = fields.get("currency")
        named = isinstance(currency, str) and currency.isprintable() and not is_blank(currency)
        if not numbers or not named or set(fields) != {*Price._fields}:
            raise SettingsError(
                f'{path}: {model}: expected {{"prompt": 0.5, "completion": 2, "currency": "USD"}} with prices of a million '
                "tokens, under the model's exact name"
            )
        prices[model] = Price(float(fields["prompt"]), float(fields["completion"]), fields["currency"])
    return prices


# ----------------------------------------------------------------------------------------------------------------------
# What calls come to


def token_limit(role: Role) -> int | None:
    """The most tokens that a reply may have, by the fields of the request itself; None where none of them sets a limit."""
    request = role.request("")
    limits = [request[key] for key in ("max_tokens", "max_completion_tokens") if type(request.get(key)) is int]
    return min(limits, default=None)


class Amount(NamedTuple):
    """What some calls of one role come to; None is unknown."""

    calls: int
    characters: int
    """Of their prompts, without replies that are not written yet."""
    replies: int
    """How many these are."""
    prompt_tokens: float | None
    completion_tokens: float | None


def least(calls: Sequence[Planned]) -> Amount:
    """The calls that are certain, every reply a single token."""
    sure = [call for call in calls if call.certain]
    characters, replies = sum(len(call.prompt) for call in sure), sum(call.replies for call in sure)
    return Amount(len(sure), characters, replies, TOKENS_PER_CHARACTER[0] * characters + replies, len(sure))


def most(calls: Sequence[Planned], limit: int | None, inner: int | None) -> Amount:
    """All calls, every reply at its limit: the role's own, or `inner` for the replies that go into prompts."""

    def at_limit(replies: int, limit: int | None) -> float | None:
        return 0.0 if not replies else None if limit is None else replies * limit

    characters, replies = sum(len(call.prompt) for call in calls), sum(call.replies for call in calls)
    added = at_limit(replies, inner)
    prompt_tokens = None if added is None else TOKENS_PER_CHARACTER[1] * characters + added
    return Amount(len(calls), characters, replies, prompt_tokens, at_limit(len(calls), limit))


def likely(cases: int, records: Sequence[Sequence[Call]], role: RoleName) -> tuple[float, float] | None:
    """Prompt and completion tokens of a role for so many cases at the mean of earlier records, given the calls of each.

    None where there is no record, or one of the role's calls that told no usage.
    """
    made = [call for calls in records for call in calls if call["role"] == role and call["outcome"] != "blocked"]
    told = [tokens_of(call["usage"]) for call in made]
    if not records or None in told:
        return None
    share = cases / len(records)
    return share * sum(used[0] for used in told if used), share * sum(used[1] for used in told if used)


def comparable_runs(run: Run, every: Sequence[Case]) -> Iterator[Run]:
    """This run, and the others of its model that differ from it in run id and cases alone and can be read."""
    cases = {case.number: case for case in every}
    for path in sorted(run.root.glob(MANIFEST_PATH.format(run=f"*/{run.folder.partition('/')[2]}"))):
        with contextlib.suppress(CheckpointError):
            manifest = read_manifest(path)
            if {setting for setting, _, _ in differences(manifest, run.manifest)} <= {"cases"}:
                yield Run(run.root, manifest, [cases[number] for number in manifest["cases"] if number in cases])


def earlier_calls(run: Run, every: Sequence[Case], names: Sequence[str]) -> dict[str, list[list[Call]]]:
    """By file, the calls of each record that comparable runs have."""
    found: dict[str, list[list[Call]]] = {name: [] for name in names}
    for other in comparable_runs(run, every):
        for name in names:
            with contextlib.suppress(CheckpointError):
                found[name] += [record["calls"] for record in other.load(name).values()]
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Printing


def span(one: float | None, other: float | None, digits: int = 0) -> str:
    low, high = ("unknown" if end is None else f"{end:,.{digits}f}" for end in (one, other))
    return low if low == high else f"{low} to {high}"


def plan_lines(
    left: Sequence[Left], run: Run, records: Mapping[str, Sequence[Sequence[Call]]], prices: Mapping[str, Price]
) -> Iterator[str]:
    """The plan of a command, line by line; `records` has, by file, the calls of each earlier record that is like these."""
    yield f"Plan for {run.manifest['run_id']} of {run.manifest['models']['evaluated']}; nothing is asked."
    for name, to_do, _ in left:
        asked = len(run.asked(name))
        yield f"  {run.path(name).name:24} {asked} cases, {asked - len(to_do)} done, {len(to_do)} to do"
    limits = {role: token_limit(channel.role) for role, channel in run.channels.items()}
    written = [limits[role] for role in run.channels if role != "judge"] or [None]  # whose replies go into prompts
    inner = None if None in written else max(limit for limit in written if limit is not None)
    totals: dict[str, list[tuple[float | None, float | None]]] = {}
    rests_on: list[int] = []
    for role, channel in run.channels.items():
        calls = [call for _, _, planned in left for call in planned if call.role == role]
        if not calls:
            continue
        low, high = least(calls), most(calls, limits[role], inner)
        shares = [
            likely(len(to_do), records[name], role)
            for name, to_do, planned in left
            if any(call.role == role for call in planned)
        ]
        expected = None if None in shares else tuple(map(sum, zip(*(share for share in shares if share), strict=True)))
        yield str(channel.role)
        yield f"  calls              {span(low.calls, high.calls)}"
        yield f"  prompt characters  {span(low.characters, high.characters)}"
        if high.replies:
            yield f"                     and {span(low.replies, high.replies)} replies in them that are not written yet"
        yield f"  prompt tokens      {span(low.prompt_tokens, high.prompt_tokens)}"
        yield f"  completion tokens  {span(low.completion_tokens, high.completion_tokens)}"
        if expected:
            rests_on += [len(records[name]) for name, _, planned in left if any(call.role == role for call in planned)]
            yield f"  likely tokens      {expected[0]:,.0f} of prompts, {expected[1]:,.0f} of completions"
        price = prices.get(channel.role.model)
        currency = price.currency if price else ""
        ends = (price.of(low[3:]), price.of(high[3:])) if price else (None, None)
        totals.setdefault(currency, []).append(ends)
        yield f"  cost               {span(*ends, digits=4)} {currency}".rstrip()
        if price and expected:
            yield f"  likely cost        {price.of((expected[0], expected[1])):,.4f} {currency}"
    for currency, amounts in totals.items():
        low_end, high_end = (None if None in ends else sum(ends) for ends in zip(*amounts, strict=True))
        yield f"Cost in all          {span(low_end, high_end, digits=4)} {currency}".rstrip()
    if rests_on:
        yield f"The likely figures rest on {span(min(rests_on), max(rests_on))} earlier records a file."
    yield (
        f"Tokens: {TOKENS_PER_CHARACTER[0]} to {TOKENS_PER_CHARACTER[1]} a character, a reply from 1 to its limit; likely: "
        "the mean a case of earlier records. Not counted: repeated requests, and up to 3 more tries of each judgment."
    )
