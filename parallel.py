"""Cases side by side: a pool that is kept full, an orderly stop, and a progress line.

The stage code stays plain: one case is done by one thread from its first call to its last. The first error and the
first Ctrl-C stop new cases and let those in flight finish; the second Ctrl-C leaves at once.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from errors import notice

T = TypeVar("T")

METER = "{desc}: {n_fmt}/{total_fmt} [{rate_fmt}, {elapsed} gone, {remaining} left]"
LINE_EVERY = 10.0  # seconds between progress lines where stderr is no terminal


def side_by_side(items: Sequence[T], job: Callable[[T], None], parallel: int, title: str) -> None:
    """Do the job for each item in threads, `parallel` at once, begun in order; the title stands in the progress line.

    Raises what the first failing job raised, or KeyboardInterrupt after Ctrl-C, once no job is running any more.
    """
    stop = threading.Event()

    def guarded(item: T) -> bool:
        if stop.is_set():
            return False
        try:
            job(item)
        except BaseException:
            stop.set()  # here and not in the main thread, so that no further item is begun in between
            raise
        return True

    failures: list[BaseException] = []
    with _interrupts(stop) as interrupted, ThreadPoolExecutor(parallel) as pool, _progress(len(items), title) as show:
        pending = {pool.submit(guarded, item) for item in items}
        done = 0
        while pending:
            # A time limit, since a wait without one cannot be interrupted on Windows.
            finished, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                if error := future.exception():
                    failures.append(error)
                    if len(failures) == 1 and pending:
                        notice("stopping: no new case is begun; those in flight finish first")
                else:
                    done += future.result()
            show(done)
    if failures:
        for error in failures[1:]:
            notice(f"also failed: {error}")
        raise failures[0]
    if interrupted.is_set():
        raise KeyboardInterrupt


@contextmanager
def _interrupts(stop: threading.Event) -> Iterator[threading.Event]:
    """While it lasts, the first Ctrl-C sets `stop` and the event given; the second ends the process with 130."""
    interrupted = threading.Event()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            os._exit(130)
        interrupted.set()
        stop.set()
        # Past Python's buffers, which the interrupted thread may be writing to.
        os.write(2, b"\ninterrupted: cases in flight finish and are saved; Ctrl-C again leaves at once\n")

    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread may set a handler; whoever runs us in another one sees to Ctrl-C
        return
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(total: int, title: str) -> Iterator[Callable[[int], None]]:
    """A function that shows how many are done: a bar on a terminal, plain lines now and then elsewhere."""
    from tqdm import tqdm

    if sys.stderr.isatty():
        with tqdm(total=total, desc=title, file=sys.stderr, ascii=True, dynamic_ncols=True, unit="case") as bar:

            def show_bar(done: int) -> None:
                bar.update(done - bar.n)
                bar.refresh()  # also without news: the clock shows that the program waits

            yield show_bar
        return
    started = last = time.monotonic()
    shown = 0

    def show_line(done: int) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if done == total != shown or now - last >= LINE_EVERY:
            last, shown = now, done
            meter = tqdm.format_meter(done, total, now - started, prefix=title, unit="case", bar_format=METER)
            print(meter, file=sys.stderr)

    yield show_line
