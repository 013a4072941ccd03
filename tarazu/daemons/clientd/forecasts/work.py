"""The process of one forecast: it gives up what it does not need, then reads, forecasts and chooses layouts."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from tarazu.daemons.clientd.forecasts import prepared
from tarazu.daemons.clientd.forecasts.frames import (
    FILES_AT_ONCE,
    MOST_TEXTS,
    Begin,
    Choose,
    ChosenLayouts,
    ForecastRefused,
    ForecastSummary,
    ForecastTask,
    Pipe,
    PreparedForecast,
)
from tarazu.errors import TarazuError, WireError
from tarazu.evidence.outcomes import outcomes
from tarazu.model import Forecast, JobStep
from tarazu.part import installed
from tarazu.plan.configure import configure, parents_of
from tarazu.predict import LOOKED_AT, RUNS, aipa, arma, rules
from tarazu.predict.series import SeriesModel
from tarazu.predict.waves import waves
from tarazu.trace.past import read_first_lines, read_past
from tarazu.trace.records import KnownRun
from tarazu.wire import local

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PART_S = 5.0
"""For what a part makes of the runs: files that take longer to read are no reason to delay a job."""
MOST_DESCRIPTORS = local.MAX_DESCRIPTORS + 16
OLDER_BYTES = 32 << 20
"""Of runs before the newest RUNS, which only fits look at, after a run: about a second to read."""
_libc = ctypes.CDLL(None, use_errno=True)


def give_up(begin: Begin, server: int) -> None:
    """Rights, memory and time beyond what this forecast may have. Where clientd is root's it becomes the user's."""
    os.nice(begin.nice)
    if os.geteuid() == 0 and begin.uid != 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(begin.uid, begin.uid, begin.uid)
    for option, value in ((PR_SET_NO_NEW_PRIVS, 1), (PR_SET_DUMPABLE, 0), (PR_SET_PDEATHSIG, signal.SIGKILL)):
        _libc.prctl(option, value, 0, 0, 0)
    if os.getppid() != server:
        os._exit(0)  # the server ended before we asked to end with it
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    limits = {
        resource.RLIMIT_AS: mapped + begin.memory_bytes,
        resource.RLIMIT_CPU: begin.cpu_s,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: MOST_DESCRIPTORS,
    }
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))


def serve(pipe: Pipe) -> None:
    """One conversation."""
    try:
        task = pipe.take()
        if not isinstance(task, ForecastTask):
            raise WireError("forecast", "a task", type(task).__name__)
        if task.step is None:
            pipe.put(_prepared(pipe, task))
            return
        wanted = _forecast(pipe, task, task.step)
        if not wanted:
            return
        choose = pipe.take()
        if not isinstance(choose, Choose):
            raise WireError("forecast", "what layouts are chosen by", type(choose).__name__)
        chosen, stripes = configure(
            wanted,
            choose.targets,
            lambda _: choose.directories,
            choose.policy,
            foreign_defaults=choose.foreign_defaults,
            of_wave=waves(wanted),
        )
        for first in range(0, len(chosen), FILES_AT_ONCE):
            pipe.put(ChosenLayouts(tuple(chosen[first : first + FILES_AT_ONCE]), _line(stripes)))
    except MemoryError:
        pipe.put(ForecastRefused("the forecast needs more memory than it may have"))
    except TarazuError as error:
        pipe.put(ForecastRefused(_line(str(error))))
    except Exception as error:
        pipe.put(ForecastRefused(f"the forecast failed: {_line(f'{type(error).__name__}: {error}')}"))


def _forecast(pipe: Pipe, task: ForecastTask, step: JobStep) -> list[Forecast]:
    """Tell what is expected; the files of the task's time."""
    until = time.monotonic() + task.seconds
    before, problem = prepared.decode(task.prepared)
    expected = before.of(step, task.parts, prepared.stamp(pipe.descriptors)) if before else None
    if expected is None:
        history, problems = read_past(pipe.descriptors, RUNS)
        problems += [problem] if problem else []
        model = SeriesModel(fits=dict(before.fits) if before else {})
        expected = _expected(pipe, task, step, history, problems, model, until)
    pipe.close_descriptors()
    wanted = [f for f in expected.files if task.from_s <= f.at_s < task.until_s or task.in_run]
    pipe.put(
        ForecastSummary(
            files=len(wanted),
            size_bytes=sum(f.size_bytes for f in wanted),
            nothing=not expected.files,
            later=any(f.at_s >= task.until_s for f in expected.files),
            parents=parents_of(wanted),
            problems=_lines(expected.problems),
            warnings=_lines(expected.warnings),
            parts=expected.parts,
            outcomes=expected.outcomes,
        )
    )
    return wanted


def _prepared(pipe: Pipe, task: ForecastTask) -> PreparedForecast:
    """For a run like the newest. ARIMA is fitted to all runs, by statsmodels where it is installed."""
    until = time.monotonic() + task.seconds
    history, problems = read_past(pipe.descriptors, _runs_to_fit(pipe.descriptors))
    if not history:
        return PreparedForecast()
    step, model = history[-1].step, SeriesModel(search=arma.best_search())
    expected = _expected(pipe, task, step, history, problems, model, until)
    stamp = prepared.stamp(pipe.descriptors)
    kept = prepared.Prepared(stamp, step, task.parts, tuple(model.fits.items()), expected)
    return PreparedForecast(step.application, prepared.encode(kept))


def _expected(
    pipe: Pipe,
    task: ForecastTask,
    step: JobStep,
    history: Sequence[KnownRun],
    problems: Sequence[str],
    model: SeriesModel,
    until: float,
) -> prepared.WholeForecast:
    """`until`: when it has to be told, on the monotonic clock."""
    of_runs = () if task.in_run else outcomes(read_first_lines(pipe.descriptors, LOOKED_AT))
    prediction = predicted(history, step, task.horizon_s, model, in_run=task.in_run)
    earlier = history[-RUNS:-1] if task.in_run else history[-RUNS:]
    parts: dict[str, bytes] = {}
    failures: list[str] = []
    for name, by in task.parts.items():
        body, why = limited(partial(installed()[name].plan, by, earlier, step), until - time.monotonic())
        parts |= {name: body} if body else {}
        failures += [f"part {name}: {why}"] if why else []
    return prepared.WholeForecast(
        prediction.files, (*problems, *failures), prediction.warnings, parts, tuple(of_runs)
    )


def _runs_to_fit(descriptors: Sequence[int]) -> int:
    """The newest RUNS, and of the others as many as are read in no time."""
    left_bytes, count = OLDER_BYTES, min(RUNS, len(descriptors))
    for descriptor in reversed(descriptors[: len(descriptors) - count]):
        left_bytes -= os.fstat(descriptor).st_size
        if left_bytes < 0:
            break
        count += 1
    return count


def limited(make: Callable[[], bytes], left_s: float) -> tuple[bytes, str]:
    """What `make` gives, or why it gives nothing: the forecast continues in any case, with time enough to answer."""

    def too_long(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, too_long)
    most_s = min(PART_S, max(left_s, 0.0) / 2)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(most_s, 1e-3))
        try:
            return make(), ""
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeoutError:
        return b"", f"it took longer than {most_s:.1f} s"
    except MemoryError:
        return b"", "it takes more memory than a forecast may have"
    except Exception as error:
        return b"", f"{type(error).__name__}: {error}"
    finally:
        signal.signal(signal.SIGALRM, before)


def predicted(
    history: Sequence[KnownRun],
    step: JobStep,
    horizon_s: float,
    model: SeriesModel | None = None,
    *,
    in_run: bool = False,
) -> aipa.Prediction:
    """The files of the next run, from those before; `in_run`: of the rest of this one, the last of the history."""
    if in_run and history:
        return aipa.extend(history[-1], step, horizon_s=horizon_s)
    decision = rules.decide(history)
    return aipa.forecast(history[decision.since :], step, model=model or "arima")


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_line, texts[:MOST_TEXTS]))


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
