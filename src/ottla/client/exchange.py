"""What is said on one connection, apart from the socket: versions, correlation ids, frames.

The first exchange is ApiVersions: every later request goes in the newest version that both sides know. The
asyncio connection and the blocking one both speak through this.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from ottla.client.errors import ClientError, NotKafka, UnsupportedRequest
from ottla.core.files import Buffer
from ottla.protocol.apis import api
from ottla.protocol.codec import decode, encode_chunks
from ottla.protocol.headers import read_response_header, request_head, response_header_version
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.schema import Versions
from ottla.protocol.wire import MalformedFrame, UnwritableMessage

VERSION: Final = "1"
"""What brokers are told that this client is: its own count, since it must not know the package it is in."""

MAX_RESPONSE_BYTES: Final = 1 << 30
"""A size beyond this is not Kafka's: an HTTP server's first four letters, for one, are larger."""

NEWEST_API_VERSIONS: Final = 4
TRANSACTION_VERSION: Final = "transaction.version"

_ERROR_CODE: Final = struct.Struct(">h").unpack_from
_UNSUPPORTED_VERSION: Final = 35
_API_VERSIONS: Final = 18


class Asked(NamedTuple):
    """A request that waits for its response."""

    key: int
    version: int
    correlation_id: int

    @property
    def name(self) -> str:
        return api(self.key).name


class Exchange:
    """One side of the conversation with the broker called `peer`."""

    def __init__(self, peer: str, client_id: str) -> None:
        self.peer, self.client_id = peer, client_id
        self.features: dict[str, int] = {}
        self._served: dict[int, Versions] = {}
        self._correlation_id = 0

    def version_of(self, request: Any, at_most: int | None = None) -> int:
        """The newest version of a request that both sides know, or `UnsupportedRequest`."""
        ours, theirs = request.stable, self._served.get(request.api_key)
        name = api(request.api_key).name
        if theirs is None:
            raise UnsupportedRequest(f"the broker at {self.peer} has no {name} request")
        last: int = min(ours.last, theirs.last)
        if at_most is not None:
            last = min(last, at_most)
        if last < max(ours.first, theirs.first):
            raise UnsupportedRequest(
                f"the broker at {self.peer} knows {name} {theirs}, which is not {ours} as this client does"
            )
        return last

    def ask(self, request: Any, version: int) -> tuple[Asked, list[Buffer]]:
        """The frame of a request, and what its response will be recognised by."""
        self._correlation_id = correlation_id = self._correlation_id + 1 & 0x7FFF_FFFF
        head = request_head(request.api_key, version, correlation_id, self.client_id)
        try:
            frame = encode_chunks(request, version, head)
        except UnwritableMessage as error:
            if isinstance(error.__cause__, UnicodeEncodeError):
                raise ClientError(f"{error.__cause__.object!a} is not UTF-8, as names have to be") from None
            raise UnsupportedRequest(f"the broker at {self.peer} is too old for this: {error}") from None
        return Asked(request.api_key, version, correlation_id), frame

    def hello(self) -> ApiVersionsRequest:
        return ApiVersionsRequest(client_software_name="ottla", client_software_version=VERSION)

    def hello_again_in(self, response: ApiVersionsResponse) -> int | None:
        """The version in which an older broker has to be asked again what it serves; None if it has said."""
        if response.error_code != _UNSUPPORTED_VERSION:
            return None
        # It has answered in version 0, with the versions that it does know.
        theirs = {each.api_key: each.max_version for each in response.api_keys}
        return min(NEWEST_API_VERSIONS, theirs.get(_API_VERSIONS, 0))

    def agree(self, response: ApiVersionsResponse) -> None:
        if response.error_code:
            raise NotKafka(f"{self.peer} refuses to say what it serves (error {response.error_code})")
        self._served = {k.api_key: Versions(k.min_version, k.max_version) for k in response.api_keys}
        self.features = {each.name: each.max_version_level for each in response.finalized_features}


def read_answer(asked: Asked, frame: Buffer) -> Any:
    """The response in a frame. Its records are views of the frame. Raises nothing but `MalformedFrame`."""
    key, version = asked.key, asked.version
    header, body = read_response_header(frame, 0, len(frame), response_header_version(key, version))
    if header.correlation_id != asked.correlation_id:
        raise MalformedFrame(f"correlation id {header.correlation_id} instead of {asked.correlation_id}")
    if (
        key == _API_VERSIONS
        and len(frame) >= body + 2
        and _ERROR_CODE(frame, body)[0] == _UNSUPPORTED_VERSION
    ):
        version = 0
    return decode(api(key).response, version, frame, body)
