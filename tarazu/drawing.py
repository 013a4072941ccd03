"""Pictures for light and dark pages, and a page of HTML around them that needs nothing else."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from tarazu.errors import BadInput, Unavailable

DPI = 110
FORMATS = (".png", ".svg", ".pdf")
"""Endings of the file of a picture."""

THEMES = {
    "light": {"ground": "#ffffff", "ink": "#222222", "grid": "#dddddd"},
    "dark": {"ground": "#15181d", "ink": "#d8dbe0", "grid": "#3a3f47"},
}


STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 75rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif;
       background: #ffffff; color: #222222; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; }
figcaption, .quiet { color: #666666; font-size: 0.9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.85rem; white-space: nowrap; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #dddddd; text-align: right; }
th.left, td.left { text-align: left; } th { position: sticky; top: 0; }
pre { overflow-x: auto; padding: 0.8rem; background: #f4f4f4; font-size: 0.8rem; }
.warning { border-left: 4px solid #c0504d; padding-left: 0.8rem; }
@media (prefers-color-scheme: dark) {
  body { background: #15181d; color: #d8dbe0; } pre { background: #1f242b; }
  th, td { border-color: #3a3f47; } figcaption, .quiet { color: #9aa0a8; }
}
"""


class Picture(msgspec.Struct, frozen=True):
    """One figure as PNG."""

    name: str
    """Of the file, without its ending."""
    title: str
    caption: str
    light: bytes
    dark: bytes


Draw = Callable[[Any], Any]
"""Makes the figure with the pyplot that it is given."""


def pyplot() -> Any:
    """matplotlib's pyplot, drawing to memory. Raises Unavailable without it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise Unavailable("pictures: expected matplotlib (pip install matplotlib), found none") from None
    mpl.use("Agg")
    from matplotlib import pyplot as found

    return found


def pyplot_for(path: Path) -> Any:
    """matplotlib's pyplot, for a picture of that name. Raises BadInput, Unavailable."""
    if path.suffix.lower() not in FORMATS:
        raise BadInput(str(path), f"a picture's name that ends in one of {', '.join(FORMATS)}", path.suffix)
    return pyplot()


def saved(plt: Any, figure: Any, path: Path) -> Path:
    try:
        figure.savefig(path, dpi=DPI)
    except OSError as error:
        raise BadInput(str(path), "a file that can be written", error.strerror) from None
    finally:
        plt.close(figure)
    return path


def picture(plt: Any, name: str, title: str, caption: str, draw: Draw) -> Picture:
    drawn = {}
    for theme, colours in THEMES.items():
        with plt.rc_context(_style(**colours)):
            drawn[theme] = _content(plt, draw(plt), "png", {"Software": None})
    return Picture(name, title, caption, drawn["light"], drawn["dark"])


def svg(plt: Any, title: str, draw: Draw) -> str:
    """One drawing for any page: no ground of its own, middle tones, text that is text; the same each time."""
    style = _style("none", "#7a838e", "#8a939e40")
    style |= {"svg.fonttype": "none", "svg.hashsalt": "tarazu", "path.simplify": False}
    with plt.rc_context(style):
        return _content(plt, draw(plt), "svg", {"Date": None, "Title": title}).decode()


def _content(plt: Any, figure: Any, format: str, metadata: dict[str, str | None]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=format, dpi=DPI, metadata=metadata)
    plt.close(figure)
    return buffer.getvalue()


def _style(ground: str, ink: str, grid: str) -> dict[str, Any]:
    return {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), ground),
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), ink),
        **dict.fromkeys(("xtick.color", "ytick.color", "legend.labelcolor"), ink),
        "grid.color": grid,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 9,
        "legend.fontsize": 8,
    }


def panels(plt: Any, lines: int, columns: int, width: float = 3.6, sharey: bool = True) -> tuple[Any, Any]:
    return plt.subplots(  # type: ignore[no-any-return]
        lines,
        columns,
        figsize=(max(5.5, width * columns), 2.9 * lines),
        squeeze=False,
        sharey="row" if sharey else False,
        layout="constrained",
    )


def legend(figure: Any, axes: Any) -> None:
    """Below all panels, where it covers none of what they show."""
    by_label: dict[str, Any] = {}
    for panel in axes.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            by_label.setdefault(label, handle)
    labels = sorted(by_label, key=lambda label: label in ("bound", "limit"))
    handles = [by_label[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(by_label), 5), frameon=False)


def figure(picture: Picture) -> str:
    """Both forms of a picture, in the page itself."""

    def inline(png: bytes) -> str:
        return "data:image/png;base64," + base64.b64encode(png).decode()

    return (
        f"<h2>{escape(picture.title)}</h2><figure><picture>"
        f'<source media="(prefers-color-scheme: dark)" srcset="{inline(picture.dark)}">'
        f'<img alt="{escape(picture.title)}" src="{inline(picture.light)}"></picture>'
        f"<figcaption>{escape(picture.caption)} ({escape(picture.name)}.png)</figcaption></figure>"
    )


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page around parts that are HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
