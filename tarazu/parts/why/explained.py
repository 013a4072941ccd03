"""Why a remembered run was slow: it, the application's runs before it, and how the system was."""

from __future__ import annotations

import contextlib

import msgspec

from tarazu.cli.job.own import Ended
from tarazu.config import Settings, own_path
from tarazu.daemons.asking import then_of
from tarazu.errors import TarazuError
from tarazu.parts.why.facts import Explanation, Run
from tarazu.parts.why.summed import before, summary
from tarazu.run.meanwhile import when
from tarazu.then import System
from tarazu.trace.history import SUFFIX, History
from tarazu.trace.runfile import read_run

PAD_S = 2.0
"""So much later servers still count what was written until then."""


def explained(settings: Settings, run: Ended) -> Explanation:
    """Raises TraceError for a run that cannot be read, or not any more."""
    from tarazu.parts.why.causes import causes

    history = History(own_path(settings.run.history_dir))
    path = history.folder(run.fs_name, run.application) / f"{run.id}{SUFFIX}"
    record = read_run(path)
    from_s, to_s = when(record)
    this = summary(record, path.stem)
    if fresh := _then(settings, record.step.fs_name, this, from_s, to_s + PAD_S):
        this = msgspec.structs.replace(this, system=fresh, usable_osts=fresh.usable_osts)
    return causes(this, before(history, run.fs_name, run.application, path))


def sentence(settings: Settings, run: Ended) -> str:
    """Whether it was slow, and why; empty for one that can be compared with nothing."""
    with contextlib.suppress(TarazuError):
        if (found := explained(settings, run)).expected_s is not None:
            return found.sentence
    return ""


def _then(settings: Settings, fs_name: str, run: Run, from_s: float, to_s: float) -> System | None:
    """As mdsd knows it now, where it knows more of it than what is kept with the run."""
    if not run.ost_bytes:
        return None
    try:
        now = then_of(settings, fs_name, list(run.ost_bytes), from_s, to_s)
    except TarazuError:
        return None
    return now if now and (run.system is None or now.seconds >= run.system.seconds) else None
