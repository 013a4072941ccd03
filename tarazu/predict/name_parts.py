"""The parts of one name, text and numbers: taken apart, each number continued, put together again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from tarazu.model import ANY_RANK, JobStep
from tarazu.trace.records import KnownFile

_FIELD = re.compile(r"(\{host\}|\{job\}|\{date\}|\{pid\}|\{rank\}|\{array\}|[0-9]+)")
_NUMBERS = ("{rank}", "{array}")
_JOB_NUMBER = re.compile(r"[0-9]{3,}")

_PATTERNS = {
    "#": r"([0-9]+)",
    "{host}": r"([^/]+?)",
    "{job}": r"([^/]+?)",
    "{date}": r"([0-9][-0-9_.:T]*?[0-9])",
    "{pid}": r"([0-9]+)",
}
_MOST_TOKENS = 2
_LONGEST_KEY = 512
"""Beyond, each field takes the first text that fits: trying all of them would take too long on some names."""


class NameParts(msgspec.Struct, frozen=True):
    """A key taken apart. `parts` alternates literal text and fields: `#` a number, or a token."""

    parts: tuple[str, ...]
    texts: tuple[str, ...]
    """Text of each field in the key."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Value of each field; 0 for tokens."""
        kinds = self.parts[1::2]
        return tuple([int(text) if kind == "#" else 0 for kind, text in zip(kinds, self.texts, strict=True)])


def take_apart(file: KnownFile) -> NameParts:
    """The fields of a file's name. `{rank}` and `{array}` are numbers like any other; `put_together` restores them."""
    pieces, parts = _pieces(file.precise)
    if len(parts) == 1:
        return NameParts(parts, ())
    texts = None
    if file.key != file.precise:
        texts = _texts(file.key, parts)
    elif "{" not in file.precise:
        return NameParts(parts, pieces[1::2])
    if texts:
        return NameParts(parts, texts)
    rank = str(file.creator if file.creator_count else max(file.rank, 0))
    known = {"{rank}": rank, "{array}": "0"}
    return NameParts(parts, tuple(known.get(piece, piece) for piece in pieces[1::2]))


def index_fields(file: KnownFile) -> tuple[bool, ...]:
    """Which fields hold the index of a task of a job array."""
    return tuple(piece == "{array}" for piece in _pieces(file.precise)[0][1::2])


def numbers_like(file: KnownFile, name: NameParts) -> tuple[int, ...] | None:
    """The numbers of a file whose name has the same parts as `name`; else None."""
    if _pieces(file.precise)[1] != name.parts:
        return None
    return take_apart(file).numbers


def _texts(key: str, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """What the fields of these parts are in a key; None where it has other parts."""
    careful = len(key) > _LONGEST_KEY or sum(p[0] == "{" for p in parts[1::2]) > _MOST_TOKENS
    match = _pattern(parts, careful).fullmatch(key)
    return match.groups() if match else None


@lru_cache(maxsize=4096)
def _pieces(precise: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The template split at its fields, and the parts of its NameParts."""
    pieces = _FIELD.split(precise)
    parts = pieces.copy()
    parts[1::2] = ["#" if piece in _NUMBERS or piece[0] != "{" else piece for piece in pieces[1::2]]
    return tuple(pieces), tuple(parts)


@lru_cache(maxsize=512)
def _pattern(parts: tuple[str, ...], careful: bool) -> re.Pattern[str]:
    """`careful`: what a field and the text behind it have taken is never given back, but by the last field."""
    texts = [re.escape(p) if i % 2 == 0 else _PATTERNS[p] for i, p in enumerate(parts)]
    if careful:
        for i in range(1, len(texts) - 2, 2):
            texts[i], texts[i + 1] = f"(?>{texts[i]}{texts[i + 1]})", ""
    return re.compile("".join(texts), re.DOTALL)


def put_together(
    name: NameParts, numbers: Sequence[int], widths: Sequence[int], rank: int, old: JobStep, new: JobStep
) -> tuple[str, str]:
    """(key, precise template) with other numbers, for the process of that rank (ANY_RANK: no `{rank}`).

    Ids of job and array in the key become the new step's; dates, pids and hosts keep their old text in the key.
    """
    key: list[str] = []
    precise: list[str] = []
    fields = iter(zip(name.texts, numbers, widths, strict=True))
    for i, part in enumerate(name.parts):
        if i % 2 == 0:
            key.append(part)
            precise.append(part)
            continue
        old_text, number, width = next(fields)
        if part == "#":
            text = str(number).zfill(width)
            key.append(text)
            of_rank = rank != ANY_RANK and number == rank
            precise.append("{rank}" if of_rank else "{array}" if number == new.array_index else text)
        else:
            key.append(_new_job_text(old_text, old, new) if part == "{job}" else old_text)
            precise.append(part)
    text = "".join(key)
    return text, text if key == precise else "".join(precise)


def of_job(key: str, precise: str, old: JobStep, new: JobStep) -> str:
    """The key of a volatile name with the ids of the new step's job."""
    parts = _pieces(precise)[1]
    texts = _texts(key, parts)
    if texts is None:
        return key
    name = NameParts(parts, texts)
    return put_together(name, name.numbers, [len(text) for text in texts], ANY_RANK, old, new)[0]


def _new_job_text(text: str, old: JobStep, new: JobStep) -> str:
    if text == old.array_job != old.job_id:
        return new.array_job or text
    if text == old.job_id or not new.job_id:
        return new.job_id or text
    number = _JOB_NUMBER.match(new.job_id)
    return number.group() if number else new.job_id


def widen(widths: dict[tuple[str, ...], list[int]], name: NameParts) -> None:
    """Note the zero-padded width of each field, by the name's parts; 1 where nothing is padded."""
    known = widths.get(name.parts)
    if known is None:
        known = widths[name.parts] = [1] * len(name.texts)
    for i, text in enumerate(name.texts):
        if text[0] == "0" and len(text) > known[i]:
            known[i] = len(text)


def next_number(values: Sequence[int]) -> int:
    """Continue a number over runs or steps: constant, or by the usual difference of the last ones."""
    recent = values[-5:]
    if len(recent) < 2 or recent[-1] == recent[-2]:
        return values[-1]
    differences = Counter(b - a for a, b in pairwise(recent))
    most = max(differences.values())
    if most == 1 and len(recent) > 3:
        return values[-1]
    candidates = [d for d, times in differences.items() if times == most]
    step = min(candidates, key=lambda d: (d <= 0, abs(d)))
    return max(values[-1] + step, 0)


def index_number(values: Sequence[int], indices: Sequence[int | None], index: int | None) -> int | None:
    """The index of the next task of a job array where a number was that of each task before; else None."""
    same = len(set(values)) > 1 and list(values) == list(indices)
    return index if same else None


def rank_number(values: dict[int, int], rank: int) -> int:
    """Value of a field for a rank that was never seen, from those of other ranks (rank → value).

    Equal for all, or an affine function of the rank, else that of the nearest rank.
    """
    ranks = sorted(values)
    nearest = min(ranks, key=lambda r: abs(r - rank))
    if len(ranks) < 2:
        return rank if values[nearest] == nearest and nearest > 0 else values[nearest]
    low, high = ranks[0], ranks[-1]
    slope, rest = divmod(values[high] - values[low], high - low)
    if rest == 0 and all(values[r] == values[low] + slope * (r - low) for r in ranks):
        return max(values[low] + slope * (rank - low), 0)
    return values[nearest]
