"""What a command's exit code says."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2
INTERRUPTED: Final = 130
TERMINATED: Final = 143
