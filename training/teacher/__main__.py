"""``python -m training.teacher``: the space as a table, in Markdown."""

from __future__ import annotations

from training.teacher.space import table

if __name__ == "__main__":
    print("\n".join(table()))
