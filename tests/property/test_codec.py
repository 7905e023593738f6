"""What was written reads back, equal values give equal bytes, and noise is refused and does nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.core.ids import Uuid
from ottla.protocol.codec import encode, encode_chunks, reader
from ottla.protocol.headers import read_request_header, request_head
from ottla.protocol.schema import Field, fields_of
from ottla.protocol.wire import MalformedFrame
from tests.unit.protocol.message_values import api_messages, filled, stored_messages, versions_of

MESSAGES = api_messages() + stored_messages()
PAIRS = [(message, version) for message in MESSAGES for version in versions_of(message)]

RANGES = {
    "b": (-(2**7), 2**7 - 1),
    "h": (-(2**15), 2**15 - 1),
    "H": (0, 2**16 - 1),
    "i": (-(2**31), 2**31 - 1),
    "I": (0, 2**32 - 1),
    "q": (-(2**63), 2**63 - 1),
}
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "str": st.one_of(st.text(max_size=12), st.sampled_from(["x" * 126, "x" * 127, "ä" * 8192])),
    "bytes": st.one_of(st.binary(max_size=12), st.just(bytes(20_000))),
    "records": st.one_of(st.binary(max_size=12), st.just(bytes(20_000))),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "d": st.floats(allow_nan=False),
    **{letter: st.integers(*limits) for letter, limits in RANGES.items()},
}


@cache
def messages(cls: Any, version: int) -> st.SearchStrategy[Any]:
    """Any value of a message in a version. Every field is drawn with its default in the running."""
    present = (field for field in fields_of(cls) if version in field.versions)
    return st.builds(cls, **{field.name: _values(field, version) for field in present})


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    one = messages(field.struct, version) if field.kind == "struct" else PLAIN[field.kind]
    values = st.lists(one, max_size=2) if field.repeated else one
    if field.nullable is not None and version in field.nullable:
        values = st.none() | values
    if not isinstance(field.default, list) and (field.default is not None or field.nullable is not None):
        values = st.just(field.default) | values
    return values


few = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
@given(data=st.data())
@few
def test_what_is_written_reads_back_in_every_version(message: Any, data: st.DataObject) -> None:
    for version in versions_of(message):
        value = data.draw(messages(message, version))
        encoded = encode(value, version)
        scratch = bytearray(b"\xff\xff" + encoded + b"\xff" * 8)
        read, pos = reader(message, version)(scratch, 2, 2 + len(encoded))
        assert read == value
        assert pos == 2 + len(encoded)
        assert encode(read, version) == encoded
        assert b"".join(encode_chunks(read, version, b"head"))[8:] == encoded


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_a_message_that_is_cut_off_is_refused_though_the_buffer_goes_on(message: Any) -> None:
    for version in versions_of(message):
        encoded = encode(filled(message, version, seed=7), version)
        scratch = bytearray(encoded * 2)
        read = reader(message, version)
        for end in range(0, len(encoded), 1 + len(encoded) // 60):
            with pytest.raises(MalformedFrame):
                read(scratch, 0, end)


@given(pair=st.sampled_from(PAIRS), noise=st.binary(max_size=200))
@many
def test_noise_is_read_or_refused(pair: tuple[Any, int], noise: bytes) -> None:
    read_or_refused(*pair, noise)


@given(pair=st.sampled_from(PAIRS), seed=st.integers(0, 3), data=st.data())
@many
def test_a_damaged_message_is_read_or_refused(pair: tuple[Any, int], seed: int, data: st.DataObject) -> None:
    """Damage to a real message gets further into the reader than noise does."""
    damaged = bytearray(encode(filled(*pair, seed), pair[1]))
    if not damaged:
        return
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.sampled_from([0x00, 0x01, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        )
    read_or_refused(*pair, bytes(damaged))


def read_or_refused(message: Any, version: int, frame: bytes) -> None:
    """Reads, as if more of the same came behind; what is read can be written and read again."""
    try:
        value, pos = reader(message, version)(bytearray(frame * 2), 0, len(frame))
    except MalformedFrame:
        return
    assert pos <= len(frame)
    encoded = encode(value, version)
    again, _ = reader(message, version)(encoded, 0, len(encoded))
    assert encode(again, version) == encoded


@given(noise=st.binary(max_size=60))
@many
def test_a_header_of_noise_is_read_or_refused(noise: bytes) -> None:
    try:
        header, pos = read_request_header(bytearray(noise * 2), 0, len(noise))
    except MalformedFrame:
        return
    assert pos <= len(noise)
    head = request_head(
        header.request_api_key, max(header.request_api_version, 1), header.correlation_id, header.client_id
    )
    assert read_request_header(head, 0, len(head))[0].client_id == header.client_id
