r"""Tables and figures to drop into a paper, and a document that has them all.

A paper needs ``booktabs``, ``graphicx`` and ``longtable``. Every file under ``tables`` is a whole
float with its caption and the label ``tab:NAME``; figures are PDF files, ``fig:NAME``.
"""

from __future__ import annotations

import re

from reports.document import (
    Block,
    Document,
    Listing,
    Paragraph,
    Plot,
    Points,
    Table,
    Warned,
    marked,
)

LONG = 45  # rows; more do not fit on a page
WIDE = 80
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "×": r"\texttimes{}",
    "µ": r"\textmu{}",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "ρ": r"$\rho$",
    "−": r"$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"\texttwosuperior{}",
    "⁹": r"$^9$",
    "·": r"\textperiodcentered{}",
    "–": "--",
    "…": r"\dots{}",
}
_PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[a4paper,margin=20mm]{geometry}
\usepackage{booktabs,graphicx,longtable,textcomp}
\usepackage{fancyvrb}
\setlength{\tabcolsep}{4pt}
"""


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is; signs that its fonts lack become ``?``."""
    return "".join(_SIGNS.get(sign, sign if sign.isascii() else _other(sign)) for sign in text)


def inline(text: str) -> str:
    """Marked text."""
    shapes = {"plain": "{}", "code": r"\texttt{{{}}}", "strong": r"\textbf{{{}}}"}
    return "".join(shapes[style].format(escaped(piece)) for style, piece in marked(text))


def table(item: Table) -> str:
    """A float with a booktabs table; a ``longtable`` where it needs several pages."""
    columns = _columns(item)
    heading = " & ".join(inline(cell) for cell in item.headings) + r" \\"
    body = []
    for at, row in enumerate(item.rows):
        if at in item.rules:
            body.append(r"\midrule")
        body.append(" & ".join(inline(cell) for cell in row) + r" \\")
    caption = rf"\caption{{{inline(' '.join(filter(None, (item.caption, item.note))))}}}"
    label = rf"\label{{tab:{item.name}}}"
    if len(item.rows) > LONG:
        lines = [
            r"\begingroup\scriptsize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
            caption + label + r" \\",
            rf"\toprule {heading} \midrule \endfirsthead",
            rf"\toprule {heading} \midrule \endhead",
            r"\bottomrule \endfoot",
            *body,
            r"\end{longtable}\endgroup",
        ]
    else:
        lines = [
            r"\begin{table}[tb]\centering\footnotesize",
            caption + label,
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            heading,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _columns(item: Table) -> str:
    """How columns are aligned; texts longer than ``WIDE`` characters wrap."""
    longest = [max(map(len, cells)) for cells in zip(item.headings, *item.rows, strict=True)]
    wide = [side == "l" and length > WIDE for side, length in zip(item.sides, longest, strict=True)]
    wrapped = rf"p{{{0.78 / max(sum(wide), 1):.2f}\linewidth}}"
    return "".join(wrapped if w else side for w, side in zip(wide, item.sides, strict=True))


def document(item: Document) -> str:
    """A LaTeX document that inputs every table and figure from beside it."""
    lines = [_PREAMBLE, rf"\title{{{inline(item.title)}}}", rf"\date{{{inline(item.subtitle)}}}"]
    lines += [r"\author{}", r"\begin{document}", r"\maketitle"]
    for section in item.sections:
        lines += ["", rf"\section{{{inline(section.title)}}}"]
        lines += [_block(block) for block in section.blocks]
        lines.append(r"\clearpage")
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def _block(block: Block) -> str:
    match block:
        case Table():
            return rf"\input{{tables/{block.name}.tex}}"
        case Plot():
            return "\n".join(
                [
                    r"\begin{figure}[tb]\centering",
                    rf"\includegraphics[width=\linewidth]{{figures/{block.name}.pdf}}",
                    rf"\caption{{{inline(block.caption)}}}\label{{fig:{block.name}}}",
                    r"\end{figure}",
                ]
            )
        case Paragraph():
            return inline(block.text) + "\n"
        case Points() | Warned():
            items = [rf"\item {inline(text)}" for text in block.items]
            return "\n".join([r"\begin{itemize}", *items, r"\end{itemize}"])
        case Listing():
            text = re.sub(r"[^\x09\x0a\x20-\x7e]", "?", block.text).replace(
                r"\end{Verb", r"\end {Verb"
            )
            return "\n".join(
                [
                    rf"\noindent {inline(block.caption)}",
                    r"\begin{Verbatim}[fontsize=\scriptsize,frame=single]",
                    text.rstrip("\n"),
                    r"\end{Verbatim}",
                ]
            )


def _other(sign: str) -> str:
    return sign if "\xa1" <= sign <= "\xff" else "?"
