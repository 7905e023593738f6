"""Java's arithmetic and its way to write addresses, where Kafka's behaviour rests on them."""

from __future__ import annotations

from functools import lru_cache
from struct import unpack
from typing import Final

_MASK: Final = 0xFFFF_FFFF
_SIGN: Final = 0x8000_0000


@lru_cache(1024)  # the same groups and transactions come again and again
def hash_code(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in wrapping 32-bit arithmetic."""
    encoded = text.encode("utf-16-le", "surrogatepass")  # Java's strings may hold half a pair
    value = 0
    for unit in unpack(f"<{len(encoded) // 2}H", encoded):
        value = value * 31 + unit & _MASK
    return (value ^ _SIGN) - _SIGN


def absolute(value: int) -> int:
    """Kafka's `Utils.abs`: the one 32-bit number without a positive counterpart becomes 0."""
    return 0 if value == -_SIGN else abs(value)


def host_address(address: str) -> str:
    """`InetAddress.getHostAddress`, which access rules and descriptions of groups have: IPv6 in full."""
    if ":" not in address:
        return address
    from ipaddress import IPv6Address  # 10 ms, for those who use it

    number, percent, scope = address.partition("%")
    parsed = IPv6Address(number)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = unpack(">8H", parsed.packed)
    return ":".join(f"{group:x}" for group in groups) + percent + scope
