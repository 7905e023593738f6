"""The column kernel and its twin, where the decoder does not lead them."""

from __future__ import annotations

import mmap
from functools import partial
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from ottla.protocol import _columns_py
from ottla.protocol import columns as column_kernel
from ottla.protocol._columns_py import HEADERS, KEY, MOST_BYTES, VALUE
from ottla.protocol.batch import HEADER_SIZE, Record, write_batch

NO_END = 2**63 - 1


def twins() -> list[ModuleType]:
    return [_columns_py, column_kernel] if column_kernel.compiled else [_columns_py]


@pytest.fixture(params=twins(), ids=lambda module: module.__name__.rpartition(".")[2])
def twin(request: pytest.FixtureRequest) -> Any:
    return request.param


def columns(twin: Any, wanted: int) -> Any:
    return twin.Columns(wanted, partial(pa.allocate_buffer, resizable=True))


def test_no_more_is_taken_than_an_int32_can_count(twin: Any) -> None:
    made = columns(twin, KEY | VALUE | HEADERS)
    section = write_batch([Record(value=b"v")])[HEADER_SIZE:]
    made.add_section(section, 1, 0, 0, 0, 0, NO_END)
    with mmap.mmap(-1, MOST_BYTES) as much, pytest.raises(OverflowError, match="take the columns first"):
        made.add_section(much, 0, 0, 0, 0, 0, NO_END)
    assert made.take().rows == 1
    assert made.size == 0


def test_a_range_that_is_not_of_batches_is_refused(twin: Any) -> None:
    data = write_batch([Record(value=b"v")]) * 2
    size = len(data) // 2
    made = columns(twin, VALUE)
    for start, end in ((0, size - 1), (1, size), (0, 30), (-1, 5), (0, len(data) + 1), (size, 0)):
        with pytest.raises(ValueError, match=r"no whole batch|outside a buffer"):
            made.add(data, start, end, 0, NO_END)
    assert made.add(data, size, 2 * size, 0, NO_END) == (0, 2 * size, -1)
    assert made.take().rows == 1


def test_columns_grow_over_many_sections(twin: Any) -> None:
    made = columns(twin, KEY | VALUE | HEADERS)
    for number in range(300):
        key = None if number % 3 else b"%d" % number
        section = write_batch([Record(key=key, value=bytes(number), headers=[("h", key)])])[HEADER_SIZE:]
        assert made.add_section(section, 1, number, 0, 0, 0, NO_END) == (0, -1)
    taken = made.take()
    assert (taken.rows, taken.key.null_count, taken.value.null_count) == (300, 200, 0)
    assert taken.headers.pairs == 300
    assert bytes(taken.key.data) == b"".join(b"%d" % number for number in range(0, 300, 3))
    assert len(bytes(taken.value.data)) == sum(range(300))
    assert list(memoryview(taken.value.offsets).cast("B").cast("i")[:4]) == [0, 0, 1, 3]
    assert bytes(taken.key.validity)[:2] == bytes([0b01001001, 0b10010010])
