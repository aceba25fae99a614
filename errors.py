"""How a command ends and what its user is told: the error family, notices on stderr, exit statuses.

Each class is named for what a person then does; its message says where, what, what was expected and what to do.
"""

import gc
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from records import Block


class LexPilotError(Exception):
    """The base: a message for the user, and the exit status that goes with it."""

    exit_status = 1


class DatasetError(LexPilotError):
    """Mend the data file."""


class SettingsError(LexPilotError):
    """Set an option or a variable, or take a new run id."""


class CheckpointError(LexPilotError):
    """Look at the file and line, or run the earlier command."""


class ProviderError(LexPilotError):
    """A provider failed for good: mend what it says; the same command then resumes."""

    exit_status = 3


class ModelOutputError(LexPilotError):
    """A model answered unusably on every try; the same command resumes."""

    exit_status = 3


class BlockedError(ProviderError):
    """A content filter refuses a text for good: give the role another provider, or record the case as blocked."""

    def __init__(self, message: str, block: Block) -> None:
        super().__init__(message)
        self.block = block


def notice(text: str) -> None:
    """Say something on stderr without tearing a progress bar."""
    if "tqdm" not in sys.modules:  # no bar yet, and no reason to wait for its import
        print(text, file=sys.stderr, flush=True)
        return
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)


@contextmanager
def uncollected() -> Iterator[None]:
    """Meanwhile nobody looks for cycles of garbage: records hold none, and each look goes through all that was read."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def command(main: Callable[[], None]) -> None:
    """Run an entry point and end the process with its status: 0 done, 1 to mend, 3 to resume, 130 interrupted.

    Wrong usage ends with 2 inside argparse. A console that cannot show a character gets a replacement, not a crash, and a
    process that was started without stdout or stderr has nowhere to write, which is no failure.
    """
    if sys.stdout is None or sys.stderr is None:
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    gc.set_threshold(50_000)  # records hold no cycles: looking for them took a sixth of the time that reading takes
    try:
        main()
        sys.stdout.flush()
    except LexPilotError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        print("interrupted: what is finished is saved, and the same command resumes", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # `… | head` reads no further, and needs no message
            print(f"error: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what stdout still holds must not fail again at exit
        sys.exit(1)
