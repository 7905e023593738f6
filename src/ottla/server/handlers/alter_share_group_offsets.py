"""AlterShareGroupOffsets, key 91, version 0: let a share group without members begin elsewhere (KIP-932).

Departs from Kafka in the answer for a topic that may not be read, which does not tell the topic's id.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.groups.share import admin
from ottla.groups.share.admin import Alter
from ottla.protocol.errors import InvalidGroupId, KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ottla.server.context import Context
from ottla.server.group_authorization import check_group, split_topics
from ottla.server.share_groups import check_share_groups


async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, ctx: Context
) -> AlterShareGroupOffsetsResponse:
    node, group_id = ctx.node, request.group_id
    try:
        check_share_groups(ctx)
        check_group(ctx, Operation.READ, group_id)
        if not group_id:
            raise InvalidGroupId
        allowed, refused = split_topics(ctx, Operation.READ, request.topics, lambda topic: topic.topic_name)
        alter: Alter = await node.groups.call(
            group_id, lambda machine, now, ticket: admin.alter_offsets(machine, group_id, allowed, now)
        )
        errors = await node.shares.states.initialize(alter.initialize)
        done = {
            topic_id: left
            for topic_id, indices in alter.initialize.indices.items()
            if (left := frozenset(index for index in indices if (topic_id, index) not in errors))
        }
        if done:
            await node.groups.call(
                group_id, lambda machine, now, ticket: admin.initialized(machine, group_id, done, now)
            )
        node.shares.drop_group(group_id)
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))
    for topic in alter.topics:
        for partition in topic.partitions:
            failure = errors.get((topic.topic_id, partition.partition_index))
            if failure is not None:
                partition.error_code, partition.error_message = failure.code, str(failure)
    return AlterShareGroupOffsetsResponse(responses=[_refused(topic) for topic in refused] + alter.topics)


def _refused(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    error = TopicAuthorizationFailed()
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index, error_code=error.code, error_message=str(error)
            )
            for each in topic.partitions
        ],
    )
