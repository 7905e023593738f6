"""What precedes the body in every frame.

A request's header is of version 2 where its API is flexible and of version 1 where it is not; a response's
is 1 or 0. There are two exceptions. A response to ApiVersions always has header version 0, because the
client that reads it may have asked in a version that the broker does not know. And the removed
ControlledShutdown v0 had a header without client id, version 0.
"""

from __future__ import annotations

import struct
from functools import cache

from ottla.core.files import Buffer
from ottla.protocol.apis import api
from ottla.protocol.codec import encode, reader
from ottla.protocol.schema import LATEST, field, i16, i32, message
from ottla.protocol.wire import MalformedFrame

API_VERSIONS = 18
CONTROLLED_SHUTDOWN = 7

_KEY_AND_VERSION = struct.Struct(">hh").unpack_from
_CORRELATION_ID = struct.Struct(">i").pack
_CORRELATION_ID_AND_NO_TAGS = struct.Struct(">ix").pack


@message(versions="0-2", flexible="2+")
class RequestHeader:
    request_api_key: i16 = 0
    request_api_version: i16 = 0
    correlation_id: i32 = 0
    # The length stays an int16 even in version 2, so that a broker can read the header of an ApiVersions
    # request from the future.
    client_id: str | None = field("1+", default="", ignorable=True, compact=False)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    correlation_id: i32 = 0


_read_header_1 = reader(RequestHeader, 1)
_read_header_2 = reader(RequestHeader, 2)


@cache
def flexible_since(key: int) -> int:
    """The first flexible version of an API."""
    try:
        flexible = api(key).request.flexible
    except KeyError:
        raise MalformedFrame(f"there is no api key {key}") from None
    return flexible.first if flexible is not None else LATEST + 1


def request_header_version(key: int, version: int) -> int:
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if version >= flexible_since(key) else 1


def response_header_version(key: int, version: int) -> int:
    return 1 if version >= flexible_since(key) and key != API_VERSIONS else 0


def read_request_header(buf: Buffer, pos: int, end: int) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body starts.

    The version is not looked at beyond the kind of header that it implies; the api key has to be one of
    Kafka's. Raises nothing but `MalformedFrame`.
    """
    if end - pos < 8:
        raise MalformedFrame("the frame is too short for a request header")
    key, version = _KEY_AND_VERSION(buf, pos)
    if version >= flexible_since(key):
        return _read_header_2(buf, pos, end)
    return _read_header_1(buf, pos, end)


def read_response_header(buf: Buffer, pos: int, end: int, header_version: int) -> tuple[ResponseHeader, int]:
    return reader(ResponseHeader, header_version)(buf, pos, end)


def request_head(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The bytes of a request's header."""
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    return encode(header, request_header_version(key, version))


def response_head(key: int, version: int, correlation_id: int) -> bytes:
    """The bytes of a response's header."""
    if version >= flexible_since(key) and key != API_VERSIONS:
        return _CORRELATION_ID_AND_NO_TAGS(correlation_id)
    return _CORRELATION_ID(correlation_id)
