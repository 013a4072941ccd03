"""What the end of a run leaves for the start of the next: the forecast of the same command, and the fits of its series.

Made by the process of a forecast from the user's own runs, kept by clientd as bytes (`tarazu.store`), read by the
process of the next forecast. A start of the same command on as many ranks, after no other run, takes the forecast as it
is; any other reads the runs, and has the fits.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Sequence

import msgspec

from tarazu.evidence.outcomes import Outcome
from tarazu.malformed import MALFORMED
from tarazu.model import Forecast, JobStep
from tarazu.predict import LOOKED_AT
from tarazu.predict.name_parts import of_job
from tarazu.predict.series import SeriesFit
from tarazu.trace.past import named

VERSION = 1
MOST_BYTES = 1 << 20
"""Of 100,000 files; a forecast that takes more is made anew at each start."""
MOST_UNPACKED_BYTES = 64 << 20
FASTEST = 1
"""Of zlib's levels: names that differ in a number take a tenth with any of them."""


class WholeForecast(msgspec.Struct, frozen=True):
    """What a forecast finds, with the histories that it was made from."""

    files: tuple[Forecast, ...]
    """In order of creation, whenever that is."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    parts: dict[str, bytes] = {}
    outcomes: tuple[Outcome, ...] = ()


class Prepared(msgspec.Struct, frozen=True):
    """`expected`: None where it is too large to be kept."""

    stamp: str
    step: JobStep
    """The run before, which the next one is likely to be like."""
    by: dict[str, bytes]
    """As `ForecastTask.parts`."""
    fits: tuple[tuple[tuple[float, ...], SeriesFit], ...]
    """As `SeriesModel.fits`."""
    expected: WholeForecast | None

    def of(self, step: JobStep, by: dict[str, bytes], stamp: str) -> WholeForecast | None:
        """The forecast of this step; None where it is to be made."""
        if self.expected is None or (stamp, _command(step), by) != (self.stamp, _command(self.step), self.by):
            return None
        files = tuple(_of_job(file, self.step, step) for file in self.expected.files)
        return msgspec.structs.replace(self.expected, files=files)


def stamp(descriptors: Sequence[int]) -> str:
    """By what one sees that there are the same runs."""
    files = hashlib.sha256()
    for descriptor in descriptors[-LOOKED_AT:]:
        status = os.fstat(descriptor)
        name = os.path.basename(named(descriptor))
        files.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return files.hexdigest()


def encode(prepared: Prepared) -> bytes:
    """Its bytes, of MOST_BYTES at most; none where a name is no UTF-8."""
    try:
        body = zlib.compress(_encoder.encode((VERSION, prepared)), FASTEST)
    except UnicodeEncodeError:
        return b""
    if len(body) <= MOST_BYTES:
        return body
    return encode(msgspec.structs.replace(prepared, expected=None)) if prepared.expected else b""


def decode(body: bytes) -> tuple[Prepared | None, str]:
    """The inverse of `encode`, or why there is none."""
    if not body:
        return None, ""
    try:
        unpacked = zlib.decompressobj().decompress(body, MOST_UNPACKED_BYTES)
        version, raw = _outer.decode(unpacked)
        if version != VERSION:
            return None, f"prepared forecast left out: expected version {VERSION}, found {version}"
        return _decoder.decode(raw), ""
    except (zlib.error, *MALFORMED) as error:
        return None, f"prepared forecast left out: expected one of tarazu, found {error}"


def _command(step: JobStep) -> tuple[object, ...]:
    """Two steps that are alike in it have one forecast; tasks of job arrays never do."""
    task = step.job_id if step.array_index is not None else ""
    return step.application, step.ranks, step.nodes, step.numbers, task


def _of_job(file: Forecast, before: JobStep, step: JobStep) -> Forecast:
    name = file.name
    if "{job}" not in name.precise:
        return file
    key = of_job(name.key, name.precise, before, step)
    return msgspec.structs.replace(file, name=msgspec.structs.replace(name, key=key))


_encoder = msgspec.msgpack.Encoder()
_outer = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_decoder = msgspec.msgpack.Decoder(Prepared)
