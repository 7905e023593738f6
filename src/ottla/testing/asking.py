"""One request to a broker over a socket of its own, for what a test sets up: no client library is needed."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from ottla.protocol import apis, codec, headers
from ottla.protocol.errors import error_class
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

CREATE_TOPICS: Final = 19
TIMEOUT: Final = 30.0


def create_topic(
    bootstrap: str, name: str, partitions: int, config: Mapping[str, str], *, replication_factor: int = 1
) -> None:
    """Create a topic. Raises the broker's error with its message."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
    )
    answer = ask(bootstrap, CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    (result,) = answer.topics
    if result.error_code:
        raise error_class(result.error_code)(f"topic {name}: {result.error_message}")


def ask(bootstrap: str, key: int, version: int, request: Any, *, timeout: float = TIMEOUT) -> Any:
    """Send one request and wait for its answer. Raises OSError, EOFError if the broker hangs up."""
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout) as connection:
        body = headers.request_head(key, version, 1, "ottla-testing") + codec.encode(request, version)
        connection.sendall(len(body).to_bytes(4, "big") + body)
        with connection.makefile("rb") as stream:
            frame = stream.read(int.from_bytes(stream.read(4), "big"))
    if not frame:
        raise EOFError(f"{bootstrap} hung up")
    start = 5 if headers.response_header_version(key, version) else 4
    return codec.decode(apis.api(key).response, version, frame, start)
