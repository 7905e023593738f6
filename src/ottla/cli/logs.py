"""How the broker logs: to stderr, one line per event, `time level logger event key=value`."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class LineFormatter(logging.Formatter):
    """One event, one line; only a traceback takes more, indented so that it is seen to belong."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        # What clients send ends up in messages; it must not be able to fake a line of its own.
        message = "".join(c if c.isprintable() else repr(c)[1:-1] for c in record.getMessage())
        line = f"{stamp}.{int(record.msecs):03d}Z {record.levelname:<7} {record.name} {message}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {each}" for each in trace.splitlines())
        return line


@contextmanager
def configured(level: str) -> Iterator[None]:
    """Log from this level up to stderr, and nowhere else, as long as a command runs.

    After it all is as before: a program that calls a command may have replaced stderr just for that.
    """
    root, of_asyncio = logging.getLogger(), logging.getLogger("asyncio")
    before, root_level, asyncio_level = root.handlers[:], root.level, of_asyncio.level
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # asyncio says little of use to an operator below a warning.
    of_asyncio.setLevel(max(logging.WARNING, root.level))
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(root_level)
        of_asyncio.setLevel(asyncio_level)
