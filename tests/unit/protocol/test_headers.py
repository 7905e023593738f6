from __future__ import annotations

from ottla.protocol.apis import all_apis
from ottla.protocol.codec import decode, encode
from ottla.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    read_request_header,
    read_response_header,
    request_head,
    request_header_version,
    response_head,
    response_header_version,
)


def test_a_flexible_request_has_header_version_2_and_its_response_1() -> None:
    assert [request_header_version(0, version) for version in (8, 9)] == [1, 2]
    assert [response_header_version(0, version) for version in (8, 9)] == [0, 1]


def test_a_response_to_api_versions_always_has_header_version_0() -> None:
    assert [request_header_version(18, version) for version in (2, 3, 99)] == [1, 2, 2]
    assert [response_header_version(18, version) for version in (2, 3, 99)] == [0, 0, 0]
    assert response_head(18, 3, 5) == bytes.fromhex("00000005")


def test_an_api_that_is_never_flexible_keeps_its_header() -> None:
    assert request_header_version(17, 1) == 1
    assert response_header_version(17, 1) == 0


def test_the_client_id_keeps_its_wide_length_in_header_version_2() -> None:
    assert request_head(0, 9, 5, "me") == bytes.fromhex("0000 0009 00000005 0002 6d65 00")
    assert request_head(0, 8, 5, None) == bytes.fromhex("0000 0008 00000005 ffff")


def test_a_header_is_read_wherever_it_is_in_the_buffer() -> None:
    for key, version, client_id in ((0, 9, "me"), (0, 8, None), (18, 4, "")):
        head = request_head(key, version, 77, client_id)
        scratch = bytearray(b"??" + head + b"\xff" * 20)
        header, pos = read_request_header(scratch, 2, 2 + len(head))
        assert (header.request_api_key, header.request_api_version) == (key, version)
        assert (header.correlation_id, header.client_id) == (77, client_id)
        assert pos == 2 + len(head)


def test_a_header_from_the_future_is_read() -> None:
    """A client may ask for ApiVersions in a version that we do not know; it is told which ones we do."""
    head = request_head(18, 99, 1, "new")
    header, pos = read_request_header(head, 0, len(head))
    assert (header.request_api_version, pos) == (99, len(head))


def test_response_heads_are_what_the_declaration_says() -> None:
    for api in all_apis():
        for version in range(api.request.versions.first, api.request.versions.last + 1):
            kind = response_header_version(api.key, version)
            head = response_head(api.key, version, 1234)
            assert head == encode(ResponseHeader(correlation_id=1234), kind)
            assert read_response_header(head, 0, len(head), kind)[0].correlation_id == 1234


def test_the_oldest_header_has_no_client_id() -> None:
    assert request_header_version(7, 0) == 0
    head = encode(RequestHeader(request_api_key=7, correlation_id=1, client_id="ignored"), 0)
    assert head == bytes.fromhex("0007 0000 00000001")
    assert decode(RequestHeader, 0, head).client_id == ""
