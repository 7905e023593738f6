"""Small rules of our own: what the table of APIs promises is there, and nothing is left lying about."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path

import pytest

from ottla.protocol import apis
from ottla.server.api import SERVED, SERVED_TO_CONTROLLERS, Served

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
ROWS = sorted({*SERVED.values(), *SERVED_TO_CONTROLLERS.values()})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.package}")
def test_every_served_api_has_a_handler_of_its_name_for_its_messages(row: Served) -> None:
    api = apis.api(row.key)
    assert api.module == row.name
    handler = row.handler()
    assert inspect.iscoroutinefunction(handler)
    hints = inspect.get_annotations(handler)
    assert hints["request"] == api.request.__name__
    assert api.response.__name__ in hints["return"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.package}")
def test_every_stable_version_of_a_served_api_is_served(row: Served) -> None:
    stable = typing.cast(typing.Any, apis.api(row.key).request).stable
    assert (row.first, row.last) == (stable.first, stable.last)


def test_every_handler_is_in_the_table() -> None:
    for package in {row.package for row in ROWS}:
        directory = ROOT / "src" / package.replace(".", "/")
        files = {path.stem for path in directory.glob("*.py")} - {"__init__"}
        assert files == {row.name for row in ROWS if row.package == package}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_lives_in_it_and_nothing_is_left_to_do(path: Path) -> None:
    text = path.read_text()
    if text.strip() and path.name != "__main__.py":
        assert text.startswith(('"""', 'r"""')), "a module starts with what it is about"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


def test_the_project_names_no_path_of_a_machine() -> None:
    for path in [
        *SOURCES,
        *(ROOT / "tests").rglob("*.py"),
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
    ]:
        if path != Path(__file__):
            assert not re.search(r"/(root|home|work)/", path.read_text()), path
