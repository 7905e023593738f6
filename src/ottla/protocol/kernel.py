"""All work that is done per record: the compiled kernel where there is one, else its Python twin.

A batch is otherwise opaque bytes to the broker. What the functions promise is written in `_kernel_py` and
`_offset_map_py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.protocol import _kernel_py, _offset_map_py
from ottla.protocol._kernel_py import (
    BAD_BATCH_LENGTH,
    BAD_COUNT,
    BAD_HEADER_COUNT,
    BAD_HEADER_KEY,
    BAD_HEADER_VALUE,
    BAD_KEY,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_VALUE,
    BAD_VARINT,
    COMPRESSED,
    NO_FAULT,
    TRAILING_BYTES,
    TRUNCATED,
    WRONG_SIZE,
    BatchCheck,
    Columns,
    Scan,
    wrapped,
)
from ottla.protocol._offset_map_py import Retained

if TYPE_CHECKING:
    from ottla.protocol._kernel_py import check_batch, columns, first_at_or_after, scan
    from ottla.protocol._offset_map_py import OffsetMap

    compiled: bool
else:
    try:
        from ottla.protocol import _kernel
    except ImportError:
        _kernel = _kernel_py
    compiled = _kernel is not _kernel_py
    scan = _kernel.scan
    check_batch = _kernel.check_batch
    columns = _kernel.columns
    first_at_or_after = _kernel.first_at_or_after
    try:
        from ottla.protocol import _offset_map
    except ImportError:
        _offset_map = _offset_map_py
    OffsetMap = _offset_map.OffsetMap

__all__ = [
    "BAD_BATCH_LENGTH",
    "BAD_COUNT",
    "BAD_HEADER_COUNT",
    "BAD_HEADER_KEY",
    "BAD_HEADER_VALUE",
    "BAD_KEY",
    "BAD_LENGTH",
    "BAD_MAGIC",
    "BAD_VALUE",
    "BAD_VARINT",
    "COMPRESSED",
    "NO_FAULT",
    "TRAILING_BYTES",
    "TRUNCATED",
    "WRONG_SIZE",
    "BatchCheck",
    "Columns",
    "OffsetMap",
    "Retained",
    "Scan",
    "check_batch",
    "columns",
    "compiled",
    "describe",
    "first_at_or_after",
    "scan",
    "wrapped",
]

_WORDS: Final = {
    BAD_COUNT: "the record count cannot be right",
    BAD_LENGTH: "its length is out of bounds",
    BAD_VARINT: "a varint in it is cut off or too long",
    BAD_KEY: "its key is out of bounds",
    BAD_VALUE: "its value is out of bounds",
    BAD_HEADER_COUNT: "its number of headers cannot be right",
    BAD_HEADER_KEY: "a header key is null or out of bounds",
    BAD_HEADER_VALUE: "a header value is out of bounds",
    WRONG_SIZE: "it does not end where its length says",
    TRAILING_BYTES: "bytes follow the last record",
    COMPRESSED: "the records are compressed",
    TRUNCATED: "the batch is cut off",
    BAD_MAGIC: "the batch is not of version 2",
    BAD_BATCH_LENGTH: "the batch length is too small for a header",
}


def describe(fault: int, error_index: int = -1) -> str:
    """A fault in words, for the message of an error."""
    if BAD_LENGTH <= fault <= WRONG_SIZE:
        return f"record {error_index}: {_WORDS[fault]}"
    return _WORDS[fault]
