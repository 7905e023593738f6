"""Records to columns and back: the compiled version where there is one, else its Python twin.

What everything promises is written in `_columns_py` and `_rows_py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.protocol import _columns_py, _rows_py

if TYPE_CHECKING:
    from ottla.protocol._columns_py import Columns, walk
    from ottla.protocol._rows_py import Rows, partition_keys, rows_by_partition

    compiled: bool
else:
    try:
        from ottla.protocol import _columns
    except ImportError:
        _columns = None
    compiled = _columns is not None
    Columns = (_columns or _columns_py).Columns
    walk = (_columns or _columns_py).walk
    Rows = (_columns or _rows_py).Rows
    partition_keys = (_columns or _rows_py).partition_keys
    rows_by_partition = (_columns or _rows_py).rows_by_partition

__all__ = ["Columns", "Rows", "compiled", "partition_keys", "rows_by_partition", "walk"]
