"""Cases side by side: a pool that is kept full, an orderly stop, and a progress line.

The stage code stays plain: one case is done by one thread from its first call to its last. The first error and the
first Ctrl-C stop new cases and let those in flight finish; the second Ctrl-C leaves at once.
"""

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from errors import notice

T = TypeVar("T")

METER = "{desc}: {n_fmt}/{total_fmt} [{rate_fmt}, {elapsed} gone, {remaining} left{postfix}]"
LOOK_EVERY = 0.5  # seconds between two looks at what is done
LINE_EVERY = 9.0  # seconds between progress lines where stderr is no terminal; with a look less than ten


class Turns:
    """So many turns at once, given in the order in which they were asked for; those who come back go first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.lock = threading.Lock()
        self.back, self.fresh = deque[threading.Lock](), deque[threading.Lock]()
        self.gone = 0  # who went aside and is not back
        self.left: Callable[[], object] = lambda: None  # is told when somebody goes

    def take_free(self) -> bool:
        """Take a turn if one is free and nobody waits for it."""
        with self.lock:
            free = self.taken < self.limit and not self.back and not self.fresh
            self.taken += free
            return free

    def take(self, back: bool = False) -> None:
        """Wait for a turn, before all others if one comes `back`."""
        with self.lock:
            mine = threading.Lock()
            mine.acquire()
            (self.back if back else self.fresh).append(mine)
            self._admit()
        mine.acquire()  # is let go when the turn is there

    def give(self) -> None:
        with self.lock:
            self.taken -= 1
            self._admit()

    def set_limit(self, limit: int) -> None:
        """Another limit; who has a turn keeps it."""
        with self.lock:
            self.limit = limit
            self._admit()

    def _admit(self) -> None:
        while self.taken < self.limit and (waiting := self.back or self.fresh):
            self.taken += 1
            waiting.popleft().release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While it lasts, the caller's turn is free for others."""
        with self.lock:
            self.gone += 1
        self.give()
        self.left()
        try:
            yield
        finally:
            self.take(back=True)
            with self.lock:
                self.gone -= 1


def side_by_side(
    items: Sequence[T],
    job: Callable[[T], None],
    places: Turns,
    title: str,
    status: Callable[[], str] = str,
    every: float = LINE_EVERY,
) -> None:
    """Do the job for each item in threads, in so many places at once, begun in order.

    A job that waits in `places.aside()` leaves its place to the next item, except where there is only one: that is
    strictly in order. Title and status stand in the progress line, which comes `every` so many seconds where stderr is no
    terminal. Raises what the first failing job raised, or KeyboardInterrupt after Ctrl-C, once no job is running any more.
    """
    from concurrent.futures import Future, ThreadPoolExecutor  # here, so that what asks nothing starts without it

    stop = threading.Event()
    threads = min(len(items), 1 if places.limit == 1 else 2 * places.limit)

    def guarded(item: T) -> bool:
        places.take()
        try:
            if stop.is_set():
                return False
            job(item)
        except BaseException:
            stop.set()  # here and not in the main thread, so that no further item is begun in between
            raise
        finally:
            places.give()
        return True

    failures: list[BaseException] = []
    finished = queue.SimpleQueue[Future[bool] | None]()  # None where somebody only went aside
    places.left = lambda: finished.put(None)
    waiting, pending, done = deque(items), 0, 0
    ready = 1 + places.limit // 8  # threads that wait for a place, so that none is empty until this one wakes
    with (
        _interrupts(stop) as interrupted,
        ThreadPoolExecutor(threads) as pool,
        _progress(len(items), title, status, every) as show,
    ):
        while True:
            while waiting and not stop.is_set() and pending < ready + places.limit + places.gone:
                pool.submit(guarded, waiting.popleft()).add_done_callback(finished.put)
                pending += 1
            if not pending:
                break
            future = None
            with contextlib.suppress(queue.Empty):
                # A time limit, since a wait without one cannot be interrupted on Windows.
                future = finished.get(timeout=LOOK_EVERY)
            if future is not None:
                pending -= 1
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
def _progress(total: int, title: str, status: Callable[[], str], every: float) -> Iterator[Callable[[int], None]]:
    """A function that shows how many are done, and the status: a bar on a terminal, plain lines now and then elsewhere."""
    from tqdm import tqdm

    started = last = time.monotonic()
    shown = 0
    with tqdm(
        total=total,
        desc=title,
        file=sys.stderr,
        ascii=True,
        dynamic_ncols=True,
        unit="case",
        disable=not sys.stderr.isatty(),
    ) as bar:

        def show(done: int) -> None:
            nonlocal last, shown
            now = time.monotonic()
            if not bar.disable:
                bar.update(done - bar.n)
                bar.set_postfix_str(status())  # draws also without news: the clock shows that the program waits
            elif done == total != shown or now - last >= every:
                last, shown = now, done
                meter = tqdm.format_meter(
                    done, total, now - started, prefix=title, unit="case", bar_format=METER, postfix=status()
                )
                print(meter, file=sys.stderr)

        yield show
