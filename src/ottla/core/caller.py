"""Who sent a command, as far as a machine remembers or shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Caller(NamedTuple):
    client_id: str
    client_host: str  # as Java prints an address: "/127.0.0.1"
    version: int  # of the API in which it speaks
    # Which topics it may see, by their names; None where it may see all. Not to be kept.
    may_describe: Callable[[str], bool] | None = None
