"""Numbers inside names: take a template apart, extrapolate its digits, put a name together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from tarazu.model import ANY_RANK
from tarazu.trace.records import FileRecord

_FIELD = re.compile(r"(\{host\}|\{job\}|\{date\}|\{pid\}|\{rank\}|[0-9]+)")
_JOB_NUMBER = re.compile(r"[0-9]{3,}")

_PATTERNS = {
    "#": r"([0-9]+)",
    "{host}": r"([^/]+?)",
    "{job}": r"([^/]+?)",
    "{date}": r"([0-9][-0-9_.:T]*?[0-9])",
    "{pid}": r"([0-9]+)",
}


class Name(msgspec.Struct, frozen=True):
    """A key taken apart. `parts` alternates literal text and fields: `#` a number, or a token."""

    parts: tuple[str, ...]
    texts: tuple[str, ...]
    """Text of each field in the key."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Value of each field; 0 for tokens."""
        return tuple(
            int(text) if kind == "#" else 0 for kind, text in zip(self.parts[1::2], self.texts, strict=True)
        )


def take_apart(file: FileRecord) -> Name:
    """The fields of a file's name. `{rank}` is a number like any other; `put_together` restores it."""
    pieces = _FIELD.split(file.precise)
    parts = tuple(
        piece if i % 2 == 0 else ("#" if piece == "{rank}" or piece[0] != "{" else piece)
        for i, piece in enumerate(pieces)
    )
    match = _pattern(parts).fullmatch(file.key)
    if match:
        return Name(parts, match.groups())
    rank = file.creators[0] if file.creators else max(file.rank, 0)
    texts = tuple(str(rank) if piece == "{rank}" else piece for piece in pieces[1::2])
    return Name(parts, texts)


@lru_cache(maxsize=4096)
def _pattern(parts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        "".join(re.escape(p) if i % 2 == 0 else _PATTERNS[p] for i, p in enumerate(parts)), re.DOTALL
    )


def put_together(
    name: Name, numbers: Sequence[int], widths: Sequence[int], rank: int, old_job: str, new_job: str
) -> tuple[str, str]:
    """(key, precise template) with other numbers, for the process of that rank (ANY_RANK: no `{rank}`).

    A job id in the key becomes the new one; dates, pids and hosts keep their old text in the key.
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
            precise.append("{rank}" if rank != ANY_RANK and number == rank else text)
        else:
            key.append(_new_job_text(old_text, old_job, new_job) if part == "{job}" else old_text)
            precise.append(part)
    return "".join(key), "".join(precise)


def _new_job_text(text: str, old_job: str, new_job: str) -> str:
    if text == old_job or not new_job:
        return new_job or text
    number = _JOB_NUMBER.match(new_job)
    return number.group() if number else new_job


def widths(names: Sequence[Name]) -> tuple[int, ...]:
    """Zero-padded width of each field over names with equal parts; 1 where nothing is padded."""
    columns = zip(*(n.texts for n in names))
    return tuple(max((len(t) for t in column if len(t) > 1 and t[0] == "0"), default=1) for column in columns)


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
