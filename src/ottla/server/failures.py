"""Answers for requests that went wrong in ways a handler does not answer itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.protocol import codec
from ottla.protocol.errors import KafkaError, KafkaStorageError, UnknownServerError
from ottla.replication.partition import Partition

if TYPE_CHECKING:
    from ottla.protocol.messages.produce import TopicProduceResponse
    from ottla.server.routes import Route


def failed(response_class: Any, error: BaseException) -> Any | None:
    """The error as an answer, if the response has a place for one that concerns the whole request.

    Kafka's errors keep their code; anything else is a mistake of ours, UNKNOWN_SERVER_ERROR.
    """
    if "error_code" not in response_class.__slots__:
        return None
    return response_class(error_code=error.code if isinstance(error, KafkaError) else UnknownServerError.code)


def withdrawn(response: Any, route: Route, failed: set[Partition]) -> Any:
    """A Produce answer without what it promised for partitions whose log could not be written after all."""
    if type(response) is bytes:  # a whole frame, from the produce lane
        head = 9 if route.tagged_reply else 8
        response = codec.decode(route.response_class, route.version, response, head)
    for topic in getattr(response, "responses", ()):
        for answer in getattr(topic, "partition_responses", ()):
            if not answer.error_code and any(_is_of(partition, topic, answer.index) for partition in failed):
                answer.error_code = KafkaStorageError.code
                answer.base_offset = answer.log_start_offset = answer.log_append_time_ms = -1
    return response


def _is_of(partition: Partition, topic: TopicProduceResponse, index: int) -> bool:
    """Answers name their topic before version 13, and its id from then on."""
    name, number = partition.partition
    return number == index and (topic.name == name or topic.topic_id == partition.topic_id)
