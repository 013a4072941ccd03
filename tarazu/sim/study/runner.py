"""Compute the cases of any study: one after another, on this machine's cores, or on an existing Dask cluster.

Each way yields (case, rows) as they are done, in any order; rows do not depend on the way. A worker that dies is told
and its case repeated once, alone, so that nobody else's death is counted against it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import connection
from pathlib import Path
from typing import Any

from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.sim.study import scheduler
from tarazu.sim.study.case import Case, fingerprint

LOOK_S = 0.2
"""How often a wait for workers looks whether Ctrl-C has come."""


Rows = list[Any]
"""Of the study's type (`results.Result`)."""
Done = tuple[Case, Rows | Exception]
Tell = Callable[[str], object]


class WorkerDied(TarazuError):
    """A process that computed a case ended without an answer, twice."""


class CaseFailed(TarazuError):
    """A defect: computing a case raised what no input should raise."""


def compute(case: Case, progress: Callable[[float, float], object] | None = None) -> Rows:
    """The rows of one case: what every worker calls. Raises TarazuError alone, which goes through a pipe.

    progress: is told seconds simulated, and the share of the bytes that have moved.
    """
    try:
        return import_module(case.computed_by).rows(case, progress)  # type: ignore[no-any-return]
    except TarazuError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        raise CaseFailed(f"{type(error).__name__}: {error} ({where})") from error


def serial(cases: Sequence[Case]) -> Generator[Done]:
    for case in cases:
        yield case, _outcome(lambda case=case: compute(case))  # type: ignore[misc]


def _outcome(answer: Callable[[], Rows]) -> Rows | Exception:
    try:
        return answer()
    except Exception as error:
        return error


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def processes(cases: Sequence[Case], jobs: int, tell: Tell) -> Generator[Done]:
    """On `jobs` processes of this machine, the longest cases first."""
    with _interrupts() as look:
        yield from _on_processes(cases, jobs, tell, look)


def _on_processes(cases: Sequence[Case], jobs: int, tell: Tell, look: Callable[[], None]) -> Generator[Done]:
    waiting = sorted(cases, key=lambda case: -case.weight)
    while waiting:
        suspects: list[Case] = []
        with _pool(min(jobs, len(waiting)), waiting[0].computed_by) as pool:
            running: dict[Future[Rows], Case] = {}
            while waiting or running:
                # No more than there are workers: whoever is in flight when one dies must be asked again.
                while waiting and len(running) < jobs and not suspects:
                    case = waiting.pop(0)
                    try:
                        running[pool.submit(compute, case)] = case
                    except BrokenProcessPool:
                        suspects.append(case)
                look()
                finished, _ = wait(running, LOOK_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    case = running.pop(future)
                    outcome = _outcome(future.result)
                    if isinstance(outcome, BrokenProcessPool):
                        suspects.append(case)
                    else:
                        yield case, outcome
                if suspects and not running:
                    break
        for case in suspects:
            tell(f"a worker died; once more, alone: {case.label}")
            # With others in flight nobody knows whose worker it was.
            yield case, _alone(case, 1 if len(suspects) == 1 else 2, look)


def _alone(case: Case, times: int, look: Callable[[], None]) -> Rows | Exception:
    for _ in range(times):
        with _pool(1, case.computed_by) as pool:
            future = pool.submit(compute, case)
            while not wait([future], LOOK_S).done:
                look()
            outcome = _outcome(future.result)
        if not isinstance(outcome, BrokenProcessPool):
            return outcome
    return WorkerDied(f"{case.label}: its worker died twice (memory?)")


@contextmanager
def _interrupts() -> Iterator[Callable[[], None]]:
    """Ctrl-C raises KeyboardInterrupt only where the function that is given is called.

    Anywhere else it could leave a lock of a pool's future held, for which the pool's own thread then waits for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    seen = threading.Event()

    def look() -> None:
        if seen.is_set():
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: seen.set())
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _pool(workers: int, module: str) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, whatever its end; all have `module` once it is imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        # Ctrl-C and whatever else ends a study: what the workers are at is lost anyway.
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    # Ctrl-C reaches the whole process group; the study's own process decides what is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def dask(cases: Sequence[Case], address: str, tell: Tell) -> Generator[Done]:
    """On the workers of the Dask scheduler at `address`. Raises Unavailable, BadInput for another version there."""
    client = scheduler.connect(address)
    try:
        _same_code(client, address)
        yield from _on_dask(client, cases, tell)
    finally:
        scheduler.close(client)


def _same_code(client: Any, address: str) -> None:
    try:
        codes = client.run(_worker_code, on_error="return")
    except Exception as error:
        raise Unavailable(f"--scheduler: {address}: {scheduler.line(error)}") from None
    if not codes:
        raise Unavailable(f"--scheduler: expected workers at {address}, found none")
    for worker, code in codes.items():
        if code != fingerprint():
            wrong = code if isinstance(code, str) else scheduler.line(code)
            raise BadInput(f"--scheduler: worker {worker}", f"this tarazu ({fingerprint()})", wrong)


def _worker_code() -> str:
    return fingerprint()


def _on_dask(client: Any, cases: Sequence[Case], tell: Tell) -> Generator[Done]:
    import distributed

    ordered = sorted(cases, key=lambda case: -case.weight)
    futures = {client.submit(compute, case, pure=False): case for case in ordered}
    repeated: set[str] = set()
    done = distributed.as_completed(futures, loop=client.loop)
    for future in done:
        case = futures.pop(future)
        outcome = _outcome(future.result)
        if isinstance(outcome, distributed.KilledWorker) and case.id not in repeated:
            tell(f"a worker died; once more: {case.label}")
            repeated.add(case.id)
            again = client.submit(compute, case, pure=False)
            futures[again] = case
            done.add(again)
            continue
        if isinstance(outcome, distributed.KilledWorker):
            outcome = WorkerDied(f"{case.label}: its worker died twice (memory?)")
        future.release()
        yield case, outcome
