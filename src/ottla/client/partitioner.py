"""Which partition a record goes to, as Kafka's own producer decides it.

Records with a key go where the murmur2 hash of the key says, so every client that keeps to it sends a key to
the same partition. Records without one go round.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

_MASK: Final = 0xFFFF_FFFF
_M: Final = 0x5BD1_E995
_SEED: Final = 0x9747_B28C
_WORD: Final = Struct("<I")


def murmur2(data: bytes) -> int:
    """The hash as a signed 32-bit number, as Java has it."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for (k,) in _WORD.iter_unpack(data[:whole]):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return (h ^ 0x8000_0000) - 0x8000_0000


def partition_of_key(key: bytes, partitions: int) -> int:
    """Where a key belongs among so many partitions."""
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


class RoundRobin:
    """One partition after the other, of those that have a leader."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, available: Sequence[int]) -> int:
        chosen = available[self._next % len(available)]
        self._next += 1
        return chosen
