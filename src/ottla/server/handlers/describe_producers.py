"""DescribeProducers, key 61, version 0: the producers that a partition remembers.

Any replica answers from its own log, leader or not.
"""

from __future__ import annotations

from ottla.core.acl import Operation
from ottla.metadata.topic_names import check_topic_name
from ottla.protocol.errors import KafkaError, UnknownTopicOrPartition
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from ottla.server.authorization import check_topic
from ottla.server.context import Context
from ottla.server.hosting import hosted


async def describe_producers(request: DescribeProducersRequest, ctx: Context) -> DescribeProducersResponse:
    return DescribeProducersResponse(topics=[_topic(topic, ctx) for topic in request.topics])


def _topic(asked: TopicRequest, ctx: Context) -> TopicResponse:
    answer = TopicResponse(name=asked.name)
    try:
        check_topic_name(asked.name)
        check_topic(ctx, Operation.READ, asked.name)
        if asked.name not in ctx.node.image.topics:
            raise UnknownTopicOrPartition
    except KafkaError as error:
        code, message = error.code, str(error)
        answer.partitions = [
            PartitionResponse(partition_index=index, error_code=code, error_message=message)
            for index in asked.partition_indexes
        ]
    else:
        answer.partitions = [_partition(asked.name, index, ctx) for index in asked.partition_indexes]
    return answer


def _partition(topic: str, index: int, ctx: Context) -> PartitionResponse:
    try:
        producers = hosted(ctx.node, topic, index).log.producers
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in producers
        ],
    )
