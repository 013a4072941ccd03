"""tarazu.toml(5): every setting, as declared."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tarazu import config
from tarazu.cli.manual import roff

MANUAL = "File formats"
READ_AT = {
    "start": "Read when a daemon starts.",
    "SIGHUP": "Taken over by a running daemon on SIGHUP.",
    "step": "Read for each job step.",
}


def page(version: str) -> str:
    return roff.document(_page(version))


def _page(version: str) -> Iterator[str]:
    yield from roff.heading("tarazu.toml", 5, version, "settings of tarazu's daemons and commands", MANUAL)
    yield roff.section("SYNOPSIS")
    yield from ("/etc/tarazu/tarazu.toml", ".br", "/etc/tarazu/conf.d/*.toml")
    yield roff.section("DESCRIPTION")
    yield from roff.text(
        "TOML, in UTF-8: a table for each section, in it `name = value`. One file serves all nodes. What it does not "
        "say has its default. The files of conf.d beside it are read after it, in the order of their names; a later "
        "value counts. Before all of them count the variables of the environment: `TARAZU_RUN_MODE` is run.mode.\n\n"
        "`tarazu config check` names each mistake with its file and line, `tarazu config` prints what is in force, "
        "`tarazu config default` a file with every setting as a comment."
    )
    yield roff.section("SETTINGS")
    yield from roff.text("Sizes are bytes, or are written as 64M or 1G; names in _s are seconds.")
    for section, cls in config.SECTIONS.items():
        yield roff.subsection(f"[{section}]")
        for item in dataclasses.fields(cls):
            tag = f"{roff.bold(item.name)} = {roff.escape(config.shown_default(item))}"
            check = item.metadata["check"]
            parts = [item.metadata["help"], f"Must be: {check.expected}." if check else ""]
            text = ". ".join(filter(None, (parts[0].rstrip("."), parts[1]))).rstrip(".") + "."
            yield from roff.term(tag, f"{text} {READ_AT[config.read_at(section, item.name)]}")
    yield roff.section("SEE ALSO")
    yield ", ".join(map(roff.bold, ("tarazu(1)", "tarazu-config(1)", "tarazu-doctor(1)")))
