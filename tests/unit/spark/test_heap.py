"""What Spark's processes look at when they collect garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ottla.spark.heap import freeze_imports


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_there_is_left_out_of_collections() -> None:
    before = len(gc.get_objects())
    freeze_imports()
    assert gc.get_freeze_count() > before / 2
    assert len(gc.get_objects()) < before / 2


def test_what_comes_later_is_not() -> None:
    freeze_imports()
    count = gc.get_freeze_count()
    kept: list[list[int]] = [[] for _ in range(1000)]
    freeze_imports()
    assert gc.get_freeze_count() <= count
    assert len(gc.get_objects()) >= len(kept)
