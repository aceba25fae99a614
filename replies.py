"""Reading what a model returns: from a completion's JSON to its visible text, and from a judge's text to its labels.

Strict about what is said, tolerant about what it is wrapped in. A judge is asked for one JSON object; prose, a code
fence and a reasoning block around it are passed over, and what is left must be readable in one way only. No label is
ever searched for inside prose: 不支持, 部分支持 and 不是 each contain another one. Whatever cannot be read raises
`UnreadableReply`, and the model is asked again.
"""

import codecs
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from records import Usage

T = TypeVar("T")
L = TypeVar("L", bound=str)


class UnreadableReply(ValueError):
    """A reply that holds no usable answer; the message says why and, where it can, what to change."""


class FilteredReply(UnreadableReply):
    """A reply that a content filter cut."""


# ----------------------------------------------------------------------------------------------------------------------
# Visible text

REASONING_BLOCK = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
REASONING_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
REASONING_START = re.compile(r"<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)

CUT_OFF = "it was cut off at the token limit; raise --max-tokens"
FILTERED_END = "the provider's content filter cut it"
FILTERED_ENDS = ("content_filter", "sensitive")  # what may stand before a colon and more


def decode_utf8(raw: bytes) -> str:
    """The text of UTF-8 bytes, without a byte-order mark; ValueError that says what they look like instead."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError("not UTF-8 but UTF-16; save it as UTF-8")
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start}); save it as UTF-8") from error


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: only white space, control and format characters, zero-width ones among them."""
    if text[:1].isalnum():  # the usual answer, without a look at each character
        return False
    return all(unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cc", "Cf") for char in text)


def has_reasoning_tag(text: str) -> bool:
    return bool(REASONING_START.search(text) or REASONING_END.search(text))


def without_reasoning(text: str) -> str:
    """The text after its reasoning: blocks are cut out, and all up to a lone closing tag; a text without is unchanged.

    Raises UnreadableReply for a block that is never closed: what follows its start is not an answer.
    """
    closed = REASONING_END.search(text)  # without any end, looking for blocks would take the square of the starts
    rest = REASONING_END.split(REASONING_BLOCK.sub("", text))[-1] if closed else text
    if REASONING_START.search(rest):
        raise UnreadableReply("its reasoning block is never closed; raise --max-tokens")
    return text if rest == text else rest.strip()


def _content_text(content: Any) -> str:
    """A message's content as one text: a string, or typed parts of which text counts and thinking does not."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise UnreadableReply(f"its content is of type {type(content).__name__}, not text")
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind not in ("thinking", "reasoning"):
            raise UnreadableReply(f"its content has a part of the unknown type {kind!r}")
    return "".join(texts)


def _first_choice(completion: Mapping[str, Any]) -> dict[str, Any]:
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def completion_text(completion: Mapping[str, Any]) -> str:
    """The visible text of a chat completion's first choice (one choice is asked for).

    Raises UnreadableReply when there is no choice or message, when the reply did not end by itself (`finish_reason`
    other than "stop"; none given is taken for an end if there is text), or when nothing visible is left of it.
    """
    choice = _first_choice(completion)
    finish, message = choice.get("finish_reason"), choice.get("message")
    if str(finish).partition(":")[0] in FILTERED_ENDS:
        raise FilteredReply(f"finish_reason is {finish!r}: {FILTERED_END}")
    if not isinstance(message, dict):
        raise UnreadableReply(f"it holds no completion: {json.dumps(completion, ensure_ascii=False)}")
    if choice.get("error"):
        raise UnreadableReply(f"it broke off: {json.dumps(choice['error'], ensure_ascii=False)}")
    if finish not in ("stop", None):
        raise UnreadableReply(f"finish_reason is {finish!r}: {CUT_OFF if finish == 'length' else 'not a normal end'}")
    text = without_reasoning(_content_text(message.get("content")))
    if is_blank(text):
        refusal = message.get("refusal")
        raise UnreadableReply(
            f"it is a refusal: {refusal}" if refusal else "it is blank; if the model reasons first, raise --max-tokens"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableReply("it holds half a character (a lone surrogate)") from error
    return text


def usage_of(completion: Mapping[str, Any]) -> Usage | None:
    """The finite figures in a completion's usage and one level below; None where it has none."""

    def figures(given: Any) -> dict[str, int | float]:
        found = given if isinstance(given, dict) else {}
        return {
            storable(key): value
            for key, value in found.items()
            if type(value) is int or (type(value) is float and math.isfinite(value))
        }

    sent = completion.get("usage")
    usage: Usage = {**figures(sent)}
    if isinstance(sent, dict):
        usage |= {storable(key): below for key, value in sent.items() if (below := figures(value))}
    return usage or None


def tokens_of(usage: Usage | None) -> tuple[int, int] | None:
    """Prompt and completion tokens; None where a provider did not send both."""
    prompt, completion = (usage or {}).get("prompt_tokens"), (usage or {}).get("completion_tokens")
    return (prompt, completion) if isinstance(prompt, int) and isinstance(completion, int) else None


def named_model(completion: Mapping[str, Any]) -> str | None:
    """The model's name as the provider gives it; None where it gives none."""
    name = completion.get("model")
    return storable(name) if isinstance(name, str) else None


def finish_reason_of(completion: Mapping[str, Any]) -> str | None:
    """The first choice's finish reason; None where it has none."""
    reason = _first_choice(completion).get("finish_reason")
    return storable(reason) if isinstance(reason, str) else None


def storable(text: str, most: int = 200) -> str:
    """The start of a provider's words, without half characters, which no file can hold."""
    return text[:most].encode("utf-8", errors="replace").decode("utf-8")


# ----------------------------------------------------------------------------------------------------------------------
# JSON objects in a text

# Braces around plain words, as in 「{案情}」, are prose. Any other brace that starts no valid object is a broken answer:
# looking inside it could pick a label out of a part.
PROSE_BRACES = re.compile(r"""\{[^{}"'“”‘’:：]*\}""")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For json's `object_pairs_hook`: the object; UnreadableReply, a ValueError, if a key stands in it twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UnreadableReply(f"the key {key!r} stands twice in one JSON object")
        found[key] = value
    return found


# strict=False: models put raw line breaks into strings, which changes no meaning.
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys, strict=False)


def json_objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects of a text, in order; UnreadableReply if one is broken.

    A brace that closes nothing is a broken object too: a judge that quotes in its reason what a response says, and forgets to
    escape it, would else give the label that the quotation bears.
    """
    objects, end, at = [], 0, text.find("{")
    while at >= 0:
        _refuse_stray(text[end:at])
        try:
            found, end = _DECODER.raw_decode(text, at)
            objects.append(found)
        except UnreadableReply:
            raise
        except (ValueError, RecursionError) as error:  # ValueError alone: an integer of thousands of digits
            prose = PROSE_BRACES.match(text, at)
            if not prose:
                raise UnreadableReply("its JSON object is broken") from error
            end = prose.end()
        at = text.find("{", end)
    _refuse_stray(text[end:])
    return objects


def _refuse_stray(between: str) -> None:
    if "}" in between:
        raise UnreadableReply("its JSON object is broken")


def agreed(readings: Sequence[T], meaning: Callable[[T], Any]) -> T:
    """The last of one or more readings, which must all mean the same; UnreadableReply if they do not."""
    if any(meaning(reading) != meaning(readings[-1]) for reading in readings):
        raise UnreadableReply("it holds two answers that disagree")
    return readings[-1]


def reason_of(answer: Mapping[str, Any]) -> str:
    """The judge's reason, "" where it gave none: a reason is for the reader, only a label counts.

    Half a character, which JSON can spell as an escape and no file can hold, becomes a question mark.
    """
    reason = answer.get("reason")
    return reason.encode("utf-8", errors="replace").decode("utf-8") if isinstance(reason, str) else ""


def label_of(answer: Mapping[str, Any], key: str, labels: Sequence[L]) -> L:
    """The label under a key of a judge's object, give or take white space; UnreadableReply if it is not one."""
    given = answer.get(key)
    for label in labels:
        if isinstance(given, str) and given.strip() == label:
            return label
    raise UnreadableReply(f"its {key} is {given!r}")


# ----------------------------------------------------------------------------------------------------------------------
# One label

MARKS = r"""[\s"'“”‘’「」『』【】\[\]()（）《》<>*_`#~\-—。．.!！,，;；、]*"""
CLOSING_WORDS = ("判定", "结论", "标签", "答案")


def read_label(reply: str, labels: Sequence[L], closing_words: Sequence[str] = CLOSING_WORDS) -> tuple[L, str]:
    """The label that a reply gives and its reason, from its JSON object or from a last line of its own.

    A last line counts when it is nothing but the label, give or take quotes, markdown marks, punctuation and one of
    `closing_words` with a colon. Where a reply has both, they must agree. Raises UnreadableReply for everything else.
    """
    text = without_reasoning(reply)
    readings = [(label_of(found, "label", labels), reason_of(found)) for found in json_objects(text)]
    lines = [line for line in text.split("\n") if line.strip() and not re.fullmatch(r"\s*```\w*\s*", line)]
    lead = "|".join(map(re.escape, closing_words))
    for label in labels:
        if lines and re.fullmatch(f"{MARKS}(?:(?:{lead}){MARKS}[:：]{MARKS})?{label}{MARKS}", lines[-1]):
            readings.append((label, readings[-1][1] if readings else "\n".join(lines[:-1]).strip()))
    if not readings:
        raise UnreadableReply("it holds neither the JSON object nor a last line that is only a label")
    return agreed(readings, lambda reading: reading[0])
