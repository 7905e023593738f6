"""What commands print: tables for people, JSON for scripts.

On a terminal tables are rich's, with colour; elsewhere they are plain columns that `awk` can read.
FORCE_COLOR asks for colour anyway, NO_COLOR for none.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ottla.core.plain_table import numeric_columns, plain_table


def print_json(value: object) -> None:
    """The whole answer of a command as one JSON document."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_json_line(value: object) -> None:
    """One of many answers: a line of its own."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def for_people() -> bool:
    """Whether somebody looks at a terminal, or asked for what a terminal would show."""
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "") -> None:
    """Rows under their headings; columns of numbers to the right."""
    texts = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    if not texts:
        if empty:
            print(empty, file=sys.stderr)
        return
    if for_people():
        _print_rich(columns, texts, numeric_columns(columns, texts))
        return
    for line in plain_table([heading.upper() for heading in columns], texts):
        print(line)


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Names and what they are, below each other."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        label = f"{name}:".ljust(width + 2)
        if for_people():
            label = f"\x1b[1m{label}\x1b[0m" if not os.environ.get("NO_COLOR") else label
        print(f"{label}{'-' if value is None else value}")


def _print_rich(columns: Sequence[str], rows: list[list[str]], numeric: list[bool]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table: Any = Table(box=SIMPLE, header_style="bold cyan", pad_edge=False)
    for heading, right in zip(columns, numeric, strict=True):
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def in_bytes(count: float) -> str:
    """A number of bytes as people say it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
