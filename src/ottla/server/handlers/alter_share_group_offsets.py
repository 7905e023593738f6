"""AlterShareGroupOffsets, key 91, version 0: let a share group without members begin elsewhere (KIP-932)."""

from __future__ import annotations

from ottla.groups.share import admin
from ottla.groups.share.admin import Alter
from ottla.protocol.errors import InvalidGroupId, KafkaError
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from ottla.server.context import Context
from ottla.server.share_groups import check_share_groups


async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, ctx: Context
) -> AlterShareGroupOffsetsResponse:
    node, group_id = ctx.node, request.group_id
    try:
        check_share_groups(ctx)
        if not group_id:
            raise InvalidGroupId
        alter: Alter = await node.groups.call(
            group_id, lambda machine, now, ticket: admin.alter_offsets(machine, group_id, request.topics, now)
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
    return AlterShareGroupOffsetsResponse(responses=alter.topics)
