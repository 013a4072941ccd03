"""Draws `docs/headroom.svg`: what slow ranks cost IO500's runs on Lustre, one bar a run."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.whatif.picture import (
    FOOT,
    HEAD,
    HIGH,
    LEFT,
    RIGHT,
    USUAL,
    WIDTH,
    Panels,
    scale,
    svg,
    text,
)  # fmt: skip
from tests.benchmarks.evidence.io500 import PHASES, rows

PICTURE = Path(__file__).parents[3] / "docs" / "headroom.svg"


def main() -> None:
    parts: list[str] = []
    height = HEAD + HIGH + 16
    for number, phase in enumerate(PHASES):
        shares = sorted(
            (row.lost_share, row.at_most_share)
            for row in rows()
            if row.phase == phase and row.lost_share is not None and row.at_most_share is not None
        )
        parts += [f"<g transform='translate(0 {number * height})'>", *_panel(phase, shares), "</g>"]
    words = "dark: lost waiting for the slowest rank; light: were all ranks as fast as the first (a limit)"
    parts.append(text(LEFT, len(PHASES) * height + 6, words, 12))
    PICTURE.write_text(svg([Panels("IO500 on Lustre", len(PHASES) * height + FOOT, parts)]))


def _panel(phase: str, shares: list[tuple[float, float]]) -> list[str]:
    right, floor = WIDTH - RIGHT, HEAD + HIGH
    made = [text(LEFT, HEAD - 16, f"{phase}: {len(shares)} runs of IO500 on Lustre", 16, "font-weight='600'")]
    made += scale(HEAD, ("0%", "50%", "100%"))
    step = (right - LEFT) / len(shares)
    for place, (lost, at_most) in enumerate(shares):
        for share, opacity in ((at_most, ".35"), (lost, "1")):
            high = HIGH * max(share, 0.0)
            made.append(
                f"<rect x='{LEFT + place * step:.2f}' y='{floor - high:.2f}' width='{0.8 * step:.2f}' "
                f"height='{high:.2f}' fill='{USUAL}' fill-opacity='{opacity}'/>"
            )
    return made


if __name__ == "__main__":
    main()
