"""How the broker logs: to stderr, one line per event, `time level logger event key=value`."""

from __future__ import annotations

import logging
import sys
import time


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


def configure(level: str) -> None:
    """Log from this level up, replacing whatever was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # asyncio says little of use to an operator below a warning.
    logging.getLogger("asyncio").setLevel(max(logging.WARNING, logging.getLogger().level))
