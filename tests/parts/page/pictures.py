"""The pictures of docs/page.md: the page of a generated system, as a headless Chromium shows it.

    python -m tests.parts.page.pictures

Each picture says in itself of which page it is: a test compares that with the page as it is now.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tarazu.parts.page.pages import Pages
from tests import browser
from tests.parts.page import sample
from tests.parts.page.test_results import REPORT, WHATIF, put

DOCS = Path(__file__).parents[3] / "docs"
KEY = b"page"


class Picture(NamedTuple):
    servers: int
    each: int
    width: int
    height: int
    phone: bool
    dark: bool
    path: str = "/"

    def page(self, directory: Path) -> bytes:
        """The document, which is the same each time."""
        with self._served(directory) as (_, pages):
            found = pages.get(self.path)
        assert found
        return found.plain

    @contextlib.contextmanager
    def _served(self, directory: Path) -> Iterator[tuple[str, Pages]]:
        put(directory, "week.json", REPORT, sample.NOW_S - 86400)
        put(directory, "hacc.json", WHATIF, sample.NOW_S - 3600)
        of = sample.system(self.servers, self.each)
        with (
            sample.past_of(of) as kept,
            sample.served(of, sample.history(), directory, now_s=sample.NOW_S + 4, kept=kept) as served,
        ):
            yield served

    def mark(self, directory: Path) -> str:
        return hashlib.sha256(repr(self).encode() + self.page(directory)).hexdigest()


PICTURES = {
    "page-desk": Picture(7, 5, 1200, 1060, False, False),
    "page-ost": Picture(7, 5, 1200, 1240, False, False, "/osts/scratch-OST0006"),
    "page-phone": Picture(7, 5, 390, 1230, True, True),
    "page-3600": Picture(450, 8, 1200, 1300, False, True),
}


def here() -> None:
    """Times are of one zone, whatever this machine's is."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def chunks(png: bytes) -> dict[bytes, bytes]:
    """Text chunks of a PNG, by their keys."""
    found, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"tEXt":
            key, _, value = data.partition(b"\0")
            found[key] = value
        at += length + 12
    return found


def marked(png: bytes, mark: str) -> bytes:
    """With what it is of, behind its header."""
    body = b"tEXt" + KEY + b"\0" + mark.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    end = 8 + 25  # the signature, and IHDR
    return png[:end] + chunk + png[end:]


def main() -> int:
    if not browser.program():
        print("no Chromium: the pictures of the page stay as they are")
        return 0
    here()
    with browser.browser() as chromium, tempfile.TemporaryDirectory() as directory:
        chromium.call("Emulation.setTimezoneOverride", timezoneId="UTC")
        for name, of in PICTURES.items():
            with of._served(Path(directory)) as (url, _):
                chromium.view(of.width, of.height, phone=of.phone, dark=of.dark)
                chromium.open(f"{url}{of.path}")
                picture = chromium.picture(x=0, y=0, width=of.width, height=of.height)
            path = DOCS / f"{name}.png"
            path.write_bytes(marked(picture, of.mark(Path(directory))))
            print(f"{path}: {path.stat().st_size >> 10} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
