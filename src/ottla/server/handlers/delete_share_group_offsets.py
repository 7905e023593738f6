"""DeleteShareGroupOffsets, key 92, version 0: let a share group without members forget topics (KIP-932)."""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.groups.share import admin
from ottla.groups.share.admin import Delete
from ottla.protocol.errors import InvalidGroupId, KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, split_topics
from ottla.server.share_groups import check_share_groups


async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, ctx: Context
) -> DeleteShareGroupOffsetsResponse:
    node, group_id = ctx.node, request.group_id
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    try:
        check_share_groups(ctx)
        check_group(ctx, Operation.DELETE, group_id)
        if not group_id:
            raise InvalidGroupId
        allowed, refused = split_topics(ctx, Operation.READ, names, lambda name: name)
        delete: Delete = await node.groups.call(
            group_id, lambda machine, now, ticket: admin.delete_offsets(machine, group_id, allowed)
        )
        node.shares.drop_group(group_id)
        failed = {
            topic_id: error
            for (topic_id, _), error in (await node.shares.states.delete(group_id, delete.topics)).items()
        }
        done = [topic_id for topic_id in delete.topics if topic_id not in failed]
        if done:
            await node.groups.call(
                group_id, lambda machine, now, ticket: admin.offsets_deleted(machine, group_id, done)
            )
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))
    responses = [_refused(name) for name in refused] + delete.errors
    for topic_id in delete.topics:
        topic = node.image.topic_by_id.get(topic_id)
        answer = DeleteShareGroupOffsetsResponseTopic(
            topic_name="" if topic is None else topic.name, topic_id=topic_id
        )
        failure = failed.get(topic_id)
        if failure is not None:
            answer.error_code, answer.error_message = failure.code, str(failure)
        responses.append(answer)
    return DeleteShareGroupOffsetsResponse(responses=responses)


def _refused(name: str) -> DeleteShareGroupOffsetsResponseTopic:
    error = TopicAuthorizationFailed()
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=error.code, error_message=str(error)
    )
