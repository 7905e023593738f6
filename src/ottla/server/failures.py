"""Answers for requests that went wrong in ways a handler does not answer itself."""

from __future__ import annotations

from typing import Any

from ottla.protocol.errors import KafkaStorageError, UnknownServerError
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas


def unknown_server_error(response_class: Any, request: Any) -> Any | None:
    """UNKNOWN_SERVER_ERROR, if the response has a place for an error of the whole request."""
    if "error_code" not in response_class.__slots__:
        return None
    return response_class(error_code=UnknownServerError.code)


def withdraw(response: Any, replicas: Replicas, failed: set[Partition]) -> None:
    """Take back what a Produce answer promised for partitions whose log could not be written after all."""
    for topic in getattr(response, "responses", ()):
        for answer in getattr(topic, "partition_responses", ()):
            if not answer.error_code and replicas.find(topic.name, answer.index) in failed:
                answer.error_code = KafkaStorageError.code
                answer.base_offset = answer.log_start_offset = answer.log_append_time_ms = -1
