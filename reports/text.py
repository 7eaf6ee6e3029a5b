"""How numbers are written, everywhere alike."""

from __future__ import annotations

from reports.intervals import Figure


def number(value: float | None) -> str:
    """A ratio: two decimals, fewer from ten on, two digits below a tenth."""
    if value is None:
        return ""
    if 0 < value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def microseconds(value: float | None) -> str:
    """A time, with three digits."""
    if value is None:
        return ""
    return number(value) if value < 1000 else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """Whole per cent, rounded so that only all reads as 100 % and only none as 0 %."""
    if value is None:
        return ""
    rounded = round(value * 100)
    rounded = 99 if rounded == 100 and value < 1 else 1 if rounded == 0 and value > 0 else rounded
    return f"{rounded} %"


def interval(figure: Figure | None) -> str:
    """A number with its 95 % interval: ``1.24 [1.13, 1.35]``, ``87 % [80, 93]``."""
    if figure is None:
        return ""
    if figure.unit == "share":
        ends = [percent(end).removesuffix(" %") for end in (figure.low, figure.high)]
        return f"{percent(figure.value)} [{ends[0]}, {ends[1]}]"
    return f"{number(figure.value)} [{number(figure.low)}, {number(figure.high)}]"


def quoted(figure: Figure) -> str:
    """The same in a sentence: ``1.24 (1.13 to 1.35)``."""
    if figure.unit == "share":
        return f"{percent(figure.value)} ({percent(figure.low)} to {percent(figure.high)})"
    return f"{number(figure.value)} ({number(figure.low)} to {number(figure.high)})"


def several(count: int, one: str, many: str = "") -> str:
    """``1 matrix``, ``2 matrices``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def codes(names: list[str]) -> str:
    """Names in code, as a list."""
    return ", ".join(f"`{name}`" for name in names)


def bytes_of(count: float) -> str:
    """An amount of memory."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def titled(label: str) -> str:
    """An operation's name for a person: ``SpMV``, ``SpMM, 32 columns``."""
    if label == "spmv":
        return "SpMV"
    columns = label.removeprefix("spmm")
    return f"SpMM, {columns} column{'' if columns == '1' else 's'}"
