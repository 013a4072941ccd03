"""Commands that set something do not while the site is stopped; what takes back always works."""

from __future__ import annotations

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.store.stop import site_stop


def refuse_while_stopped(settings: Settings) -> None:
    """Raises TarazuError while `tarazu disable --site` is in force here."""
    if stop := site_stop(settings.run.stop_file):
        raise TarazuError(f"the whole site is {stop}: nothing is set (undo: tarazu enable --site)")
