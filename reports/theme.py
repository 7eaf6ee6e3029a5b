"""How every drawing looks: one type, one set of colours, one look for an author everywhere.

Colours are Okabe and Ito's and Tol's muted set, which colour-blind readers can tell apart; a dash
and a marker go with each, so that a page printed in grey can be read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing

from suite.metrics import BEST

WIDTH = 6.7  # inches between the margins of an A4 page
FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"
INK = "#1a1a1a"
FAINT = "#c8c8c8"
SHADES = "cividis"  # of heat maps: even in lightness, and the same to every eye


@dataclass(frozen=True)
class Look:
    """How an author is drawn."""

    colour: str
    dash: Any = "-"
    marker: str = "o"

    @property
    def line(self) -> dict[str, Any]:
        """For a line."""
        return {"color": self.colour, "linestyle": self.dash}

    @property
    def dots(self) -> dict[str, Any]:
        """For markers alone."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": "none",
            "markersize": 3.2,
            "markeredgewidth": 0.0,
        }


_DOTTED, _DASHED, _MIXED = (0, (1, 1.2)), (0, (4, 1.5)), (0, (5, 1.2, 1, 1.2))
_KNOWN: Mapping[str, Look] = {
    BEST: Look("#000000", "-", "D"),
    "cusparse_best": Look("#808080", _DASHED, "s"),
    "cusparse": Look("#a6a6a6", _DOTTED, "X"),
    "sparserl": Look("#d55e00", "-", "o"),
    "sft_only": Look("#0072b2", _DASHED, "s"),
    "no_embedding": Look("#009e73", _MIXED, "^"),
    "correctness_only": Look("#cc79a7", _DOTTED, "v"),
    "heuristic": Look("#e69f00", (0, (6, 1.2, 1, 1.2, 1, 1.2)), "P"),
}
_OTHERS = (
    Look("#332288", _MIXED, "^"),
    Look("#56b4e9", "-", "v"),
    Look("#117733", _DASHED, "<"),
    Look("#882255", _DOTTED, ">"),
    Look("#999933", "-", "p"),
    Look("#cc6677", _MIXED, "h"),
    Look("#44aa99", _DASHED, "d"),
    Look("#aa4499", _DOTTED, "8"),
)
_STYLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,  # text stays text; publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "reports",
    "savefig.dpi": 200,
}


@dataclass(frozen=True)
class Theme:
    """The look of each author of one report."""

    looks: Mapping[str, Look]

    @classmethod
    def of(cls, authors: Iterable[str]) -> Theme:
        """Looks for these authors: those that everyone knows are the same in every report."""
        names = list(dict.fromkeys(authors))
        others = sorted(name for name in names if name not in _KNOWN)
        given = {name: _OTHERS[at % len(_OTHERS)] for at, name in enumerate(others)}
        return cls({name: _KNOWN.get(name) or given[name] for name in names})

    def __getitem__(self, author: str) -> Look:
        return self.looks[author]


def styled() -> AbstractContextManager[None]:
    """Within it, matplotlib draws in this style."""
    return mpl.rc_context(_STYLE)  # type: ignore[arg-type]  # its keys are a closed list


def panels(count: int, height: float, **more: Any) -> tuple[Drawing, Sequence[Any]]:
    """A drawing of text width with panels beside each other; at most three fill it."""
    width = WIDTH if count > 1 else WIDTH * 0.62
    drawing = Drawing(figsize=(width, height), layout="constrained")
    axes = drawing.subplots(1, count, squeeze=False, **more)[0]
    return drawing, list(axes)


def legend_below(drawing: Drawing, axes: Sequence[Any], columns: int = 5) -> None:
    """One legend for all panels, under them, with every name once."""
    shown: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            shown.setdefault(name, handle)
    if shown:
        drawing.legend(
            list(shown.values()),
            list(shown),
            loc="outside lower center",
            ncols=min(columns, len(shown)),
        )
