"""From Kafka's errors to the status codes of gRPC."""

from __future__ import annotations

from typing import Final

import grpc

from ottla.protocol.errors import KafkaError

_STATUS: Final = {
    "OFFSET_OUT_OF_RANGE": grpc.StatusCode.OUT_OF_RANGE,
    "UNKNOWN_TOPIC_OR_PARTITION": grpc.StatusCode.NOT_FOUND,
    "UNKNOWN_TOPIC_ID": grpc.StatusCode.NOT_FOUND,
    "GROUP_ID_NOT_FOUND": grpc.StatusCode.NOT_FOUND,
    "TOPIC_ALREADY_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
    "REQUEST_TIMED_OUT": grpc.StatusCode.DEADLINE_EXCEEDED,
    "POLICY_VIOLATION": grpc.StatusCode.FAILED_PRECONDITION,
    "UNKNOWN_MEMBER_ID": grpc.StatusCode.FAILED_PRECONDITION,
    "THROTTLING_QUOTA_EXCEEDED": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "MESSAGE_TOO_LARGE": grpc.StatusCode.INVALID_ARGUMENT,
    "RECORD_LIST_TOO_LARGE": grpc.StatusCode.INVALID_ARGUMENT,
    "OFFSET_METADATA_TOO_LARGE": grpc.StatusCode.INVALID_ARGUMENT,
    "CORRUPT_MESSAGE": grpc.StatusCode.DATA_LOSS,
    "UNSUPPORTED_VERSION": grpc.StatusCode.UNIMPLEMENTED,
    "UNKNOWN_SERVER_ERROR": grpc.StatusCode.INTERNAL,
    "KAFKA_STORAGE_ERROR": grpc.StatusCode.UNAVAILABLE,
}


def status_of(error: KafkaError) -> grpc.StatusCode:
    """The status that tells a gRPC client the same: above all, whether to try again."""
    found = _STATUS.get(error.name)
    if found is not None:
        return found
    if error.name.endswith("AUTHORIZATION_FAILED"):
        return grpc.StatusCode.PERMISSION_DENIED
    if error.name.startswith("INVALID_"):
        return grpc.StatusCode.INVALID_ARGUMENT
    return grpc.StatusCode.UNAVAILABLE if error.retriable else grpc.StatusCode.INTERNAL
