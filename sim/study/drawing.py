"""How the pictures of studies are made: each for a light and a dark page, panels in rows, one legend below them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import msgspec

from tarazu.errors import Unavailable

THEMES = {
    "light": {"ground": "#ffffff", "ink": "#222222", "grid": "#dddddd"},
    "dark": {"ground": "#15181d", "ink": "#d8dbe0", "grid": "#3a3f47"},
}


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
        raise Unavailable("pictures: expected matplotlib (pip install 'tarazu[viz]'), found none") from None
    mpl.use("Agg")
    from matplotlib import pyplot as found

    return found


def picture(plt: Any, name: str, title: str, caption: str, draw: Draw) -> Picture:
    drawn = {}
    for theme, colours in THEMES.items():
        ink = colours["ink"]
        style = {
            **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), colours["ground"]),
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), ink),
            **dict.fromkeys(("xtick.color", "ytick.color", "legend.labelcolor"), ink),
            "grid.color": colours["grid"],
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 9,
            "legend.fontsize": 8,
        }
        with plt.rc_context(style):
            figure = draw(plt)
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
            plt.close(figure)
        drawn[theme] = buffer.getvalue()
    return Picture(name, title, caption, drawn["light"], drawn["dark"])


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
    found: dict[str, Any] = {}
    for panel in axes.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    labels = sorted(found, key=lambda label: label in ("bound", "limit"))
    handles = [found[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(found), 5), frameon=False)
