"""DeleteTopics (key 20). One record is enough: partitions and configs go with their topic."""

from __future__ import annotations

from collections import Counter

from ottla.core.ids import ZERO_UUID
from ottla.metadata.image import MetadataRecord, Topic
from ottla.metadata.state import MAX_RECORDS_PER_REQUEST, Context, ControllerState, Decision
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.stored.metadata import RemoveTopicRecord


def delete_topics(state: ControllerState, request: DeleteTopicsRequest, context: Context) -> Decision:
    wanted = list(request.topics) if context.version >= 6 else []
    wanted += [DeleteTopicState(name=name) for name in request.topic_names]
    names = Counter(topic.name for topic in wanted if topic.name is not None)
    ids = Counter(topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID)
    records: list[MetadataRecord] = []
    results = []
    removed: set[str] = set()
    # A name or an id that was given twice is answered once.
    for asked in {(topic.name, topic.topic_id): topic for topic in wanted}.values():
        name, topic_id = asked.name, asked.topic_id
        try:
            _check_enabled(state, context)
            if len(wanted) > MAX_RECORDS_PER_REQUEST:
                raise PolicyViolation("Excessively large number of topics per request.")
            if name is not None and names[name] > 1:
                raise InvalidRequest("Duplicate topic name.")
            if ids[topic_id] > 1:
                raise InvalidRequest("Duplicate topic id.")
            topic = _find(state, asked)
            if topic.name in removed:
                raise InvalidRequest("The provided topic name maps to an ID that was already supplied.")
        except KafkaError as error:
            results.append(
                DeletableTopicResult(
                    name=name, topic_id=topic_id, error_code=error.code, error_message=str(error)
                )
            )
            continue
        removed.add(topic.name)
        records.append(RemoveTopicRecord(topic_id=topic.id))
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.id))
    return Decision(records, DeleteTopicsResponse(responses=results))


def _check_enabled(state: ControllerState, context: Context) -> None:
    if not state.settings.delete_topic_enable:
        if context.version < 3:
            raise InvalidRequest("Topic deletion is disabled.")
        raise TopicDeletionDisabled


def _find(state: ControllerState, asked: DeleteTopicState) -> Topic:
    if asked.name is None:
        if asked.topic_id == ZERO_UUID:
            raise InvalidRequest("Neither topic name nor id were specified.")
        found = state.image.topic_by_id.get(asked.topic_id)
        if found is None:
            raise UnknownTopicId
        return found
    if asked.topic_id != ZERO_UUID:
        raise InvalidRequest("You may not specify both topic name and topic id.")
    found = state.image.topics.get(asked.name)
    if found is None:
        raise UnknownTopicOrPartition
    return found
