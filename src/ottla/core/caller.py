"""Who sent a command, as far as a machine remembers or shows it."""

from __future__ import annotations

from typing import NamedTuple


class Caller(NamedTuple):
    client_id: str
    client_host: str  # as Java prints an address: "/127.0.0.1"
    version: int  # of the API in which it speaks
