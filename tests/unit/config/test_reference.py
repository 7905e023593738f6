"""The reference page of settings."""

from __future__ import annotations

from pathlib import Path

from ottla.config.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m ottla.config.reference > docs/reference/settings.md"
    )


def test_every_row_has_as_many_cells_as_its_table() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("|")]

    assert len(rows) > 390
    assert {row.replace("\\|", "").count("|") for row in rows} == {7}
