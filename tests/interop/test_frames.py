"""What the broker does with a frame before it knows what the frame asks for."""

from __future__ import annotations

import struct

import pytest

from tests.interop.wire import Wire, request_frame

HEADER = struct.Struct(">hhih")  # api key, version, correlation id, client id (-1: null)
API_VERSIONS, METADATA, VOTE, BROKER_REGISTRATION = 18, 3, 52, 62


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        pytest.param(999, 0, id="unknown api key"),
        pytest.param(-1, 0, id="negative api key"),
        pytest.param(METADATA, 99, id="version of the future"),
        pytest.param(METADATA, -1, id="negative version"),
        pytest.param(VOTE, 0, id="Vote belongs to controllers"),
        pytest.param(BROKER_REGISTRATION, 0, id="BrokerRegistration belongs to controllers"),
    ],
)
def test_a_request_that_is_not_served_closes_the_connection(wire: Wire, api_key: int, version: int) -> None:
    wire.send_frame(HEADER.pack(api_key, version, 7, -1) + bytes(64))
    assert wire.is_closed()


@pytest.mark.parametrize("size", [-1, 100 * 1024 * 1024 + 1, 2**31 - 1])
def test_a_frame_of_an_impossible_size_closes_the_connection(wire: Wire, size: int) -> None:
    wire.socket.sendall(struct.pack(">i", size) + HEADER.pack(API_VERSIONS, 0, 7, -1))
    assert wire.is_closed()


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0\x12", id="cut in the header"),
        pytest.param(HEADER.pack(METADATA, 4, 7, 2000) + b"short", id="client id longer than the frame"),
        pytest.param(HEADER.pack(METADATA, 4, 7, -1) + struct.pack(">i", 2**31 - 1), id="two billion topics"),
        pytest.param(
            HEADER.pack(METADATA, 4, 7, -1) + struct.pack(">ih", 1, 2000) + b"x", id="name cut short"
        ),
        pytest.param(HEADER.pack(METADATA, 12, 7, -1) + b"\0" + b"\xff" * 12, id="endless varint"),
    ],
)
def test_a_malformed_frame_closes_the_connection(wire: Wire, frame: bytes) -> None:
    wire.send_frame(frame)
    assert wire.is_closed()


def test_a_malformed_frame_harms_no_other_connection(wire: Wire, bootstrap: str) -> None:
    with Wire(bootstrap) as other:
        other.send_frame(b"garbage, not a request")
        assert other.is_closed()
    assert wire.ask("api_versions", 0).error_code == 0


def test_api_versions_of_an_unknown_version_is_answered_in_the_first_layout(wire: Wire) -> None:
    wire.send_frame(HEADER.pack(API_VERSIONS, 99, 7, -1) + b"\0" + b"\2x\2y\0")
    body = wire.receive_frame()
    correlation_id, error, count = struct.unpack_from(">ihi", body)
    assert (correlation_id, error, count) == (7, 35, 1)
    key, first, last = struct.unpack_from(">hhh", body, 10)
    assert (key, first) == (API_VERSIONS, 0)
    assert last >= 4
    assert len(body) == 16
    assert wire.ask("api_versions", 0).error_code == 0, "the connection goes on with another version"


@pytest.mark.parametrize("name", ["", "-starts-with-a-dash", "spaces are refused", "emoji🙂"])
def test_a_client_software_name_must_be_a_plain_word(wire: Wire, name: str) -> None:
    answer = wire.ask("api_versions", 3, client_software_name=name, client_software_version="1.0")
    assert answer.error_code == 42


def test_every_version_of_api_versions_names_the_same_apis(wire: Wire) -> None:
    words = {"client_software_name": "ottla-tests", "client_software_version": "1.0"}
    answers = [wire.ask("api_versions", version, **(words if version >= 3 else {})) for version in range(5)]
    assert all(answer.error_code == 0 for answer in answers)
    keys = [[key.api_key for key in answer.api_keys] for answer in answers]
    assert all(found == keys[0] for found in keys)
    assert {0, 1, 2, 3, 18, 19, 20, 22} <= set(keys[0])


def test_requests_of_one_connection_are_answered_in_their_order(wire: Wire) -> None:
    asked = [("api_versions", 0), ("metadata", 9), ("describe_cluster", 0), ("metadata", 1)] * 25
    sent = [(api, version, wire.send(api, version)) for api, version in asked]
    for api, version, correlation_id in sent:
        wire.receive(api, version, correlation_id)


def test_a_request_may_arrive_byte_by_byte(wire: Wire) -> None:
    frame = request_frame("metadata", 9, 1, {"topics": []})
    for byte in struct.pack(">i", len(frame)) + frame:
        wire.socket.sendall(bytes([byte]))
    assert wire.receive("metadata", 9, 1).brokers


def test_bytes_after_a_request_body_are_ignored(wire: Wire) -> None:
    """librdkafka 2.16 sends three of them with its request for all topics."""
    sent = wire.send("metadata", 12, topics=None, surplus=b"\1\0\0")
    assert wire.receive("metadata", 12, sent).brokers
    assert wire.ask("api_versions", 0).error_code == 0


def test_a_sasl_handshake_on_a_plain_listener_is_refused(wire: Wire) -> None:
    assert wire.ask("sasl_handshake", 1, mechanism="PLAIN").error_code == 34


def test_a_connection_closed_by_the_client_is_forgotten(bootstrap: str) -> None:
    for _ in range(50):
        with Wire(bootstrap) as wire:
            wire.send("metadata", 9)
    with Wire(bootstrap) as wire:
        assert wire.ask("metadata", 9).brokers
