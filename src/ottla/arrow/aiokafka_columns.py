"""Columns filled by aiokafka's compiled reader, for an install where ours could not be compiled.

Its wheels have that reader for most machines, and it is several times as fast as Python. Whatever it stumbles
over goes to the Python twin of our kernel, which says what is wrong, or knows better.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from aiokafka.record._crecords import DefaultRecordBatch

from ottla.protocol import _columns_py
from ottla.protocol._columns_py import (
    HEADERS,
    KEY,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    OFFSET,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    microseconds,
)
from ottla.protocol._kernel_py import NO_FAULT

_HEADER: Final = Struct(">qiibIhiqqqhii")
_STAMPED: Final = 0x08
_SMALLEST_RECORD: Final = 7


class Columns(_columns_py.Columns):
    """As `_columns_py.Columns`, except for who reads the records."""

    def _add(
        self,
        section: memoryview,
        count: int,
        base_offset: int,
        base_timestamp: int,
        timestamp_type: int,
        first_offset: int,
        end_offset: int,
    ) -> tuple[int, int]:
        given = (section, count, base_offset, base_timestamp, timestamp_type, first_offset, end_offset)
        if timestamp_type == NO_TIMESTAMP_TYPE or not 0 <= count <= len(section) // _SMALLEST_RECORD:
            return super()._add(*given)
        try:
            records = _read(section, count, base_offset, base_timestamp, timestamp_type)
        except Exception:
            return super()._add(*given)
        if len(records) != count:
            return super()._add(*given)
        self._keep([each for each in records if first_offset <= each.offset < end_offset], timestamp_type)
        return NO_FAULT, -1

    def _keep(self, records: list[Any], timestamp_type: int) -> None:
        self.rows += len(records)
        if self.wanted & OFFSET:
            self._offsets.extend([each.offset for each in records])
        if self.wanted & TIMESTAMP:
            self._timestamps.extend([microseconds(each.timestamp) for each in records])
        if self.wanted & TIMESTAMP_TYPE:
            self._timestamp_types.extend([timestamp_type] * len(records))
        if self.wanted & KEY:
            self._keys += [each.key for each in records]
        if self.wanted & VALUE:
            self._values += [each.value for each in records]
        if self.wanted & HEADERS:
            for each in records:
                self._header_counts.append(len(each.headers))
                self._header_keys += [key.encode() for key, _ in each.headers]
                self._header_values += [value for _, value in each.headers]


def _read(
    section: memoryview, count: int, base_offset: int, base_timestamp: int, timestamp_type: int
) -> list[Any]:
    """It wants a batch, so the section gets a header that says what there is to say."""
    header = _HEADER.pack(
        base_offset,
        _HEADER.size - 12 + len(section),
        -1,
        2,
        0,
        _STAMPED if timestamp_type == LOG_APPEND_TIME else 0,
        max(count - 1, 0),
        base_timestamp,
        base_timestamp,
        -1,
        -1,
        -1,
        count,
    )
    return list(DefaultRecordBatch(header + section))
