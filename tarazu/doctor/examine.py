"""Run the checks, topic by topic. An error in a check is a finding too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from tarazu.doctor import (
    capacity,
    directories,
    estimate,
    key_files,
    left_behind,
    lustre,
    peers,
    preload,
    settings,
    units,
)
from tarazu.doctor.node import AS_ROOT, Finding, Node, skip, warn
from tarazu.part import installed

Look = Callable[[Node], Iterable[Finding]]


class Topic(NamedTuple):
    name: str
    look: Look
    roles: frozenset[str] = frozenset()
    """That it concerns; empty: every node."""


TOPICS = (
    Topic("settings", settings.look),
    Topic("Lustre", lustre.look),
    Topic("keys", key_files.look, frozenset({"oss", "router", "mdsd", "launch"})),
    Topic("units", units.look, frozenset({"oss", "router", "mdsd", "launch", "mgs"})),
    Topic("peers", peers.look, frozenset({"oss", "router", "mdsd", "launch"})),
    Topic("preload", preload.look, frozenset({"launch", "client"})),
    Topic("directories", directories.look, frozenset({"launch", "client"})),
    Topic("stop file", settings.look_at_stop_file),
    Topic("space and limits", capacity.look),
    Topic("estimate", estimate.look, frozenset({"launch"})),
    Topic("left behind", left_behind.look),
)


def examine(node: Node) -> Iterator[Finding]:
    """Every finding, with its topic. Changes nothing, raises nothing."""
    of_parts = (Topic(f"part {name}", part.examine) for name, part in installed().items())
    for topic in (*TOPICS, *of_parts):
        if topic.roles and not topic.roles & node.roles:
            continue
        for finding in _guarded(topic, node):
            yield msgspec.structs.replace(finding, topic=topic.name)


def _guarded(topic: Topic, node: Node) -> Iterator[Finding]:
    try:
        yield from topic.look(node)
    except PermissionError as error:
        yield Finding(topic.name, "skip", f"{error.filename}: {error.strerror}", AS_ROOT)
    except ModuleNotFoundError as error:
        yield skip(
            topic.name, f"needs {error.name}, which is not installed here", "install the package tarazu"
        )
    except Exception as error:
        text = f"the check itself failed: {type(error).__name__}: {error}"
        yield warn(topic.name, text, "report this fault to tarazu's developers; the other checks are valid")
