"""How figures and words stand in a table for people."""

import unicodedata
from collections.abc import Sequence


def padded(text: str, width: int) -> str:
    """Text filled up to a number of terminal columns; a Chinese character takes two."""
    return text + " " * (width - sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text))


def number(value: float | None, sign: str = "") -> str:
    """Four digits, with a plus sign if that is asked for; a dash where there is nothing to tell."""
    return "-" if value is None else f"{value:{sign}.4f}"


def between(span: Sequence[float] | None, sign: str = "") -> str:
    """An interval likewise."""
    return "-" if span is None else f"[{span[0]:{sign}.4f}, {span[1]:{sign}.4f}]"
