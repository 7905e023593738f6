"""FindCoordinator, key 10, versions 0-6: which broker coordinates a group, a transactional id or the state
of a share partition.

Departs from Kafka the first time: where Kafka answers COORDINATOR_NOT_AVAILABLE and creates the internal
topic meanwhile, this waits for the creation, which is short and bounded, so that a client's first group does
not begin with an error and a pause.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.core.acl import Operation, ResourceType
from ottla.core.ids import Uuid
from ottla.protocol.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.runtime import coordinator
from ottla.server.authorization import check, check_cluster
from ottla.server.context import Context

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
# From this version on a request may ask for several keys.
BATCHED: Final = 4
SHARE_SINCE: Final = 6
# What old versions say where there is nothing to say: the name of Kafka's error 0.
NO_ERROR: Final = "NONE"


class Found(NamedTuple):
    node_id: int = -1
    host: str = ""
    port: int = -1


NOBODY: Final = Found()


async def find_coordinator(request: FindCoordinatorRequest, ctx: Context) -> FindCoordinatorResponse:
    if ctx.version < BATCHED:
        return await _find_one(request, ctx)
    answers = []
    for key in request.coordinator_keys:
        answer = Coordinator(key=key)
        try:
            found = await _find(request.key_type, key, ctx)
        except KafkaError as error:
            found = NOBODY
            answer.error_code, answer.error_message = error.code, str(error)
        answer.node_id, answer.host, answer.port = found
        answers.append(answer)
    return FindCoordinatorResponse(coordinators=answers)


async def _find_one(request: FindCoordinatorRequest, ctx: Context) -> FindCoordinatorResponse:
    response = FindCoordinatorResponse(error_message=NO_ERROR)
    try:
        found = await _find(request.key_type, request.key, ctx)
    except KafkaError as error:
        found = NOBODY
        response.error_code, response.error_message = error.code, str(error)
    response.node_id, response.host, response.port = found
    return response


async def _find(key_type: int, key: str, ctx: Context) -> Found:
    node = ctx.node
    kind = _kind(key_type, key, ctx)
    await kind.prepare()
    topic = node.image.topics.get(kind.topic)
    state = None if topic is None else topic.partitions.get(kind.partition_for(key))
    leader = None if state is None else node.image.brokers.get(state.leader)
    if leader is None or leader.fenced or leader.endpoint(ctx.connection.listener_name) is None:
        raise CoordinatorNotAvailable
    return Found(leader.id, *node.broker_endpoint(leader, ctx.connection))


def _kind(key_type: int, key: str, ctx: Context) -> coordinator.Coordinator[Any]:
    if key_type == GROUP:
        check(ctx, Operation.DESCRIBE, ResourceType.GROUP, key)
        return ctx.node.groups
    if key_type == TRANSACTION:
        check(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
        return ctx.node.transactions
    if key_type != SHARE or ctx.version < SHARE_SINCE:
        raise InvalidRequest(f"Unknown coordinator type received: {key_type}")
    check_cluster(ctx, Operation.CLUSTER_ACTION)
    _check_share_key(key)
    return ctx.node.share_state


def _check_share_key(key: str) -> None:
    """The key is group:topic-id:partition."""
    group, topic_id, partition = ("", "", "", *key.rsplit(":", 2))[-3:]
    try:
        Uuid.parse(topic_id)
        if not group.strip() or int(partition) < 0:
            raise ValueError
    except ValueError:
        raise InvalidRequest(f"Invalid share partition key: {key}") from None
