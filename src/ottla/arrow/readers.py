"""What reads records into columns: our compiled kernel, else aiokafka's reader, else Python.

All give the same columns. Which one it is depends on what could be installed, and is said once in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.protocol import _columns_py
from ottla.protocol import columns as column_kernel
from ottla.protocol._columns_py import Allocate

logger = logging.getLogger("ottla.arrow")


class Reader(NamedTuple):
    name: str
    columns: Callable[[int, Allocate], _columns_py.Columns]
    walk: Callable[..., tuple[int, int, int]]


def compiled_reader() -> Reader | None:
    if not column_kernel.compiled:
        return None
    return Reader("compiled", column_kernel.Columns, column_kernel.walk)


def aiokafka_reader() -> Reader | None:
    try:
        from ottla.arrow import aiokafka_columns
    except ImportError:
        return None
    return Reader("aiokafka", aiokafka_columns.Columns, _columns_py.walk)


def python_reader() -> Reader:
    return Reader("python", _columns_py.Columns, _columns_py.walk)


def choose() -> Reader:
    """The fastest there is."""
    reader = compiled_reader() or aiokafka_reader() or python_reader()
    if reader.name == "compiled":
        logger.info("records become columns by the compiled kernel")
    else:
        logger.warning(
            "records become columns by %s, many times slower than the compiled kernel, which is not there: "
            "it needs a C compiler when ottla is installed, and cannot be loaded from an archive",
            "aiokafka's reader" if reader.name == "aiokafka" else "Python",
        )
    return reader


CHOSEN: Final = choose()
