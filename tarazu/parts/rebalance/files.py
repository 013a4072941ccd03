"""Existing files as arrays: sizes, layouts, the OSTs of their objects. A million of them are some 150 MB."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Collection
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from tarazu.allocate.problem import Array, many_object_bytes
from tarazu.lustre import LCME_FL_EXTENSION
from tarazu.model import Layout
from tarazu.native import Decoded

Why = Literal[
    "small", "being written", "mirrored", "on the MDT (DoM)", "self-extending", "overstriped", "not striped as RAID 0",
    "without objects", "sparse", "layout unreadable", "excluded", "on an OST that mdsd does not show", "gone",
    "servers that do not answer",
    "where a directory's default names OSTs", "erasure-coded", "compressed", "of an unknown kind",
]  # fmt: skip
"""Why a file is left where it is."""

SPARSE = 0.1
"""A file that takes less than this share of its size has few bytes, and the layout does not tell where. Not 0.9: ZFS
compresses."""


class Shape(msgspec.Struct, frozen=True):
    """What files of one kind have in common: the layout, and which of its components have objects."""

    layout: Layout
    placed: tuple[bool, ...]


class Stat(NamedTuple):
    """Of a file, as `stat` has it."""

    size_bytes: int
    stored_bytes: int
    """Blocks that it takes."""
    uid: int
    accessed_s: int
    """Unix time of the last read; Lustre keeps it to the minute."""
    modified_s: int
    """Unix time of the last write."""


class FileObjects(NamedTuple):
    """Every object of every file, file after file in stripe order; arrays of one length."""

    file: Array
    ost: Array
    """OST index."""
    stored: Array
    """Bytes."""


class Files:
    """Files that may be moved, and how many may not, by reason."""

    def __init__(self, osts: Collection[int] | None = None) -> None:
        """osts: indices that are known; a file with an object elsewhere, as on one that `mdsd.exclude` names, stays."""
        self._known = None if osts is None else frozenset(osts)
        self.left: Counter[Why] = Counter()
        self.left_bytes: Counter[Why] = Counter()
        self.shapes: list[Shape] = []
        self._number: dict[Shape, int] = {}
        self._names, self._ends = bytearray(), array("Q", [0])
        self._stat = {name: array("q") for name in Stat._fields}
        self._shape = array("i")
        self._osts, self._first = array("H"), array("Q", [0])

    def __len__(self) -> int:
        return len(self._shape)

    def add(self, path: str, stat: Stat, decoded: Decoded) -> Why | None:
        """Take a file with its layout; why not, where it can only stay."""
        why = why_not(stat, decoded)
        if (
            not why
            and self._known is not None
            and not all(self._known.issuperset(c.osts) for c in decoded.components)
        ):
            why = "on an OST that mdsd does not show"
        if why:
            self.leave(why, stat.size_bytes)
            return why
        osts = [c.osts for c in decoded.components]
        shape = Shape(decoded.layout(), tuple(map(bool, osts)))
        self._names += os.fsencode(path)
        self._ends.append(len(self._names))
        for name, value in zip(Stat._fields, stat, strict=True):
            self._stat[name].append(value)
        number = self._number.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
        self._shape.append(number)
        for of_component in osts:
            self._osts.extend(of_component)
        self._first.append(len(self._osts))
        return None

    def leave(self, why: Why, size_bytes: int = 0) -> None:
        """Count a file that stays."""
        self.left[why] += 1
        self.left_bytes[why] += size_bytes

    def path(self, file: int) -> str:
        return os.fsdecode(bytes(self._names[self._ends[file] : self._ends[file + 1]]))

    def stat(self, file: int) -> Stat:
        return Stat(*(self._stat[name][file] for name in Stat._fields))

    def shape(self, file: int) -> Shape:
        return self.shapes[self._shape[file]]

    def osts(self, file: int) -> tuple[int, ...]:
        """OST indices of its objects, component after component."""
        return tuple(self._osts[self._first[file] : self._first[file + 1]])

    @property
    def sizes(self) -> Array:
        """(files,) bytes; a copy, as all arrays here."""
        return np.array(self._stat["size_bytes"], np.int64)

    @property
    def accessed_s(self) -> Array:
        return np.array(self._stat["accessed_s"], np.int64)

    @property
    def modified_s(self) -> Array:
        return np.array(self._stat["modified_s"], np.int64)

    @property
    def first(self) -> Array:
        """(files + 1,) where the objects of each begin in `objects()`."""
        return np.array(self._first, np.int64)

    def objects(self) -> FileObjects:
        first, sizes, shape = self.first, self.sizes, np.array(self._shape, np.int64)
        stored = np.zeros(len(self._osts), np.int64)
        for number, of_shape in enumerate(self.shapes):
            members = np.flatnonzero(shape == number)
            at = first[members]
            for component, placed in zip(of_shape.layout, of_shape.placed, strict=True):
                if placed:
                    where = at[:, None] + np.arange(component.stripe_count)
                    stored[where] = many_object_bytes(component, sizes[members])
                    at = at + component.stripe_count
        file = np.repeat(np.arange(len(self), dtype=np.int64), np.diff(first))
        return FileObjects(file, np.array(self._osts, np.int64), stored)


def why_not(stat: Stat, decoded: Decoded) -> Why | None:
    """Why a file of that layout is not moved.

    Layouts that `lfs migrate` would change or refuse stay: mirrors, EC, compression, DoM, self-extending components. A
    file that HSM has released has no objects: opening it would bring it back.
    """
    components = decoded.components
    for kind in decoded.odd:
        return "without objects" if kind == "released by HSM" else kind
    if any(c.flags & LCME_FL_EXTENSION or c.component.extension_bytes for c in components):
        return "self-extending"
    patterns = {c.component.pattern for c in components}
    if "mdt" in patterns:
        return "on the MDT (DoM)"
    if "overstriped" in patterns:
        return "overstriped"
    if patterns != {"raid0"}:
        return "not striped as RAID 0"
    if not any(c.osts for c in components):
        return "without objects"
    if any(c.osts and len(c.osts) != c.component.stripe_count for c in components):
        return "layout unreadable"
    reached = max(c.component.end_bytes for c in components if c.osts)
    if stat.stored_bytes < SPARSE * stat.size_bytes or reached < stat.size_bytes:
        return "sparse"
    return None
