from __future__ import annotations

import pytest

from ottla.protocol.wire import MalformedFrame, put_uvarint, put_varint, rest_of_uvarint, uvarint, varint


@pytest.mark.parametrize(
    "value, encoded",
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_an_unsigned_varint(value: int, encoded: str) -> None:
    out = bytearray()
    put_uvarint(out, value)
    assert out.hex() == encoded
    assert uvarint(out, 0, len(out)) == (value, len(out))


@pytest.mark.parametrize(
    "value, encoded", [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (-(2**31), "ffffffff0f")]
)
def test_a_signed_varint(value: int, encoded: str) -> None:
    out = bytearray()
    put_varint(out, value)
    assert out.hex() == encoded
    assert varint(out, 0, len(out)) == (value, len(out))


def test_a_varint_stops_at_the_end_though_the_buffer_goes_on() -> None:
    with pytest.raises(MalformedFrame):
        uvarint(b"\x80\x01", 0, 1)


def test_a_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(MalformedFrame):
        uvarint(b"\x80\x80\x80\x80\x80\x01", 0, 6)
    with pytest.raises(MalformedFrame):
        rest_of_uvarint(b"\x80\x80\x80\x80\x80\x01", 1, 0x80)


def test_the_rest_of_a_varint() -> None:
    assert rest_of_uvarint(b"\xac\x02", 1, 0xAC) == (300, 2)
