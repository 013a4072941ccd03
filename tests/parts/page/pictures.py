"""The pictures of docs/page.md: pages of a generated system, as a headless Chromium shows them.

python -m tests.parts.page.pictures
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests import browser
from tests.parts.page import sample

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = {"page-desk": ("/", 1300), "page-ost": ("/osts/scratch-OST0006", 1240)}
"""Name → address, height."""


def main() -> int:
    if not browser.program():
        print("no Chromium: the pictures of the page stay as they are")
        return 0
    of = sample.system(7, 5)
    with (
        browser.browser() as chromium,
        sample.history_of(of) as kept,
        sample.served(of, now_s=sample.NOW_S + 4, kept=kept) as (url, _),
    ):
        chromium.call("Emulation.setTimezoneOverride", timezoneId="UTC")
        for name, (path, height) in PICTURES.items():
            chromium.view(1200, height)
            chromium.open(f"{url}{path}")
            (DOCS / f"{name}.png").write_bytes(chromium.picture(x=0, y=0, width=1200, height=height))
    return 0


if __name__ == "__main__":
    sys.exit(main())
