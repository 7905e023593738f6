"""ShareFetch, key 78, versions 1-2: acquire records of share partitions, acknowledge earlier ones (KIP-932).

A response tells of partitions that have records or errors; Kafka's lists some without either.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.core.acl import Operation
from ottla.core.ids import Uuid
from ottla.core.share import SharePartitionKey
from ottla.protocol.errors import (
    InvalidRequest,
    KafkaError,
    ShareSessionLimitReached,
    TopicAuthorizationFailed,
)
from ottla.protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ottla.replication.share_session import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from ottla.runtime.share_fetch import Fetched, Results, Wanted, fetch
from ottla.server.context import Context
from ottla.server.group_authorization import name_by_id, split_topics
from ottla.server.share_groups import (
    RENEW_SINCE,
    Acknowledging,
    Errors,
    check_caller,
    check_share_groups,
    end_session,
    end_with_connection,
)
from ottla.server.share_leaders import Leaders

_ZEROS: Final = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")


async def share_fetch(request: ShareFetchRequest, ctx: Context) -> ShareFetchResponse:
    try:
        check_share_groups(ctx)
        group_id, member_id = check_caller(ctx, request.group_id, request.member_id)
        is_renewal = ctx.version >= RENEW_SINCE and request.is_renew_ack
        if is_renewal:
            _check_renewal(request)
        session = _session(request, group_id, member_id, ctx)
    except ShareSessionLimitReached as error:
        await asyncio.sleep(request.max_wait_ms / 1000)  # it would only ask again at once
        return ShareFetchResponse(error_code=error.code, error_message=str(error))
    except KafkaError as error:
        return ShareFetchResponse(error_code=error.code, error_message=str(error))
    acknowledging = Acknowledging(
        ctx,
        group_id,
        member_id,
        {
            (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
            for topic in request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches
        },
        is_renewal=is_renewal,
    )
    is_closing = request.share_session_epoch == FINAL_EPOCH
    fetched: Results = {}
    if not is_closing and not is_renewal:
        allowed, refused = split_topics(
            ctx,
            Operation.READ,
            [SharePartitionKey(group_id, *place) for place in session.in_turn()],
            lambda key: name_by_id(ctx, key.topic_id),
        )
        if allowed or not refused:  # else there is nothing to wait for
            fetched = await fetch(ctx.node.shares, _wanted(request, group_id, member_id, ctx), allowed)
        for key in refused:
            fetched[key] = TopicAuthorizationFailed()
    acknowledged = await acknowledging.stored()
    if is_closing:
        end_session(ctx, group_id, member_id)
    return _response(ctx, group_id, fetched, acknowledged)


def _check_renewal(request: ShareFetchRequest) -> None:
    """One who renews a lock is not kept waiting for records (KIP-1222)."""
    wrong = [f"{_camel(name)} must be set to 0, " for name in _ZEROS if getattr(request, name)]
    if wrong:
        raise InvalidRequest("".join(wrong) + "if isRenewAck is true.")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _session(request: ShareFetchRequest, group_id: str, member_id: str, ctx: Context) -> ShareSession:
    asked = [(topic.topic_id, one) for topic in request.topics for one in topic.partitions]
    forgotten = [(topic.topic_id, one) for topic in request.forgotten_topics_data for one in topic.partitions]
    session = ctx.node.shares.sessions.fetch(
        group_id,
        member_id,
        request.share_session_epoch,
        partitions=[(topic_id, one.partition_index) for topic_id, one in asked],
        forgotten=forgotten,
        acknowledges=any(one.acknowledgement_batches for _, one in asked),
        owner=ctx.connection,
    )
    if request.share_session_epoch == INITIAL_EPOCH:
        end_with_connection(ctx, group_id, member_id)
    return session


def _wanted(request: ShareFetchRequest, group_id: str, member_id: str, ctx: Context) -> Wanted:
    max_bytes = min(request.max_bytes, ctx.node.settings.fetch_max_bytes)
    return Wanted(
        group_id,
        member_id,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.max_records,
        request.batch_size,
        request.share_acquire_mode,
    )


def _response(ctx: Context, group_id: str, fetched: Results, acknowledged: Errors) -> ShareFetchResponse:
    response = ShareFetchResponse(
        acquisition_lock_timeout_ms=ctx.node.shares.group_settings(group_id).share_record_lock_duration_ms
    )
    partitions: dict[tuple[Uuid, int], PartitionData] = {}
    for key, result in fetched.items():
        data = partitions[key.topic_id, key.partition] = PartitionData(partition_index=key.partition)
        if isinstance(result, Fetched):
            data.records = result.records
            data.acquired_records = [
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in result.acquired
            ]
        else:
            data.error_code, data.error_message = result.code, str(result)
    for place, error in acknowledged.items():
        data = partitions.setdefault(place, PartitionData(partition_index=place[1]))
        if error is not None:
            data.acknowledge_error_code, data.acknowledge_error_message = error.code, str(error)
    leaders = Leaders(ctx)
    topics: dict[Uuid, ShareFetchableTopicResponse] = {}
    for (topic_id, _), data in partitions.items():
        leaders.point(topic_id, data, LeaderIdAndEpoch)
        topic = topics.setdefault(topic_id, ShareFetchableTopicResponse(topic_id=topic_id, partitions=[]))
        topic.partitions.append(data)
    response.responses = list(topics.values())
    response.node_endpoints = leaders.endpoints
    return response
