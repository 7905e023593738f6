"""Tables as plain columns that `awk` can read, for where nobody looks at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The headings, then a line for each row; columns of numbers to the right."""
    numeric = numeric_columns(columns, rows)
    widths = [max(map(len, (heading, *(row[i] for row in rows)))) for i, heading in enumerate(columns)]
    for row in (columns, *rows):
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        yield "  ".join(cells).rstrip()


def numeric_columns(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which of the columns hold nothing but numbers."""
    return [all(_is_number(row[i]) for row in rows) for i in range(len(columns))]


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").replace(".", "", 1).replace(",", "").isdecimal()
