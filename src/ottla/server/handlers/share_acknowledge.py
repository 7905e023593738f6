"""ShareAcknowledge, key 79, versions 1-2: acknowledge the delivery of acquired records (KIP-932)."""

from __future__ import annotations

from ottla.core.ids import Uuid
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ottla.replication.share_session import FINAL_EPOCH
from ottla.server.context import Context
from ottla.server.share_groups import (
    RENEW_SINCE,
    Acknowledging,
    check_caller,
    check_share_groups,
    end_session,
)
from ottla.server.share_leaders import Leaders


async def share_acknowledge(request: ShareAcknowledgeRequest, ctx: Context) -> ShareAcknowledgeResponse:
    shares = ctx.node.shares
    try:
        check_share_groups(ctx)
        group_id, member_id = check_caller(ctx, request.group_id, request.member_id)
        shares.sessions.acknowledge(group_id, member_id, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=str(error))
    acknowledging = Acknowledging(
        ctx,
        group_id,
        member_id,
        {
            (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
            for topic in request.topics
            for partition in topic.partitions
        },
        is_renewal=ctx.version >= RENEW_SINCE and request.is_renew_ack,
    )
    results = await acknowledging.stored()
    if request.share_session_epoch == FINAL_EPOCH:
        end_session(ctx, group_id, member_id)
    leaders = Leaders(ctx)
    topics: dict[Uuid, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, index), failure in results.items():
        data = PartitionData(partition_index=index)
        if failure is not None:
            data.error_code, data.error_message = failure.code, str(failure)
            leaders.point(topic_id, data, LeaderIdAndEpoch)
        topic = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[]))
        topic.partitions.append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=shares.group_settings(group_id).share_record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=[
            NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
            for one in leaders.endpoints
        ],
    )
