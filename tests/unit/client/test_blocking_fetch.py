"""A range whose records are not all there, by a broker that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.fetch import fetch
from ottla.client.errors import NoAnswer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, set_base_offset, write_batch
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted import METADATA, answer
from tests.unit.client.scripted_socket import framed, greeting, server

PARTITION = TopicPartition("t", 0)


def batch(base_offset: int, count: int) -> bytes:
    made = write_batch([Record(0, 1, None, b"value")] * count)
    set_base_offset(made, base_offset)
    return bytes(made)


@contextmanager
def answering(*data: PartitionData | None) -> Iterator[BlockingCluster]:
    """A cluster whose fetches are answered with these, one after the other; the last one again and again."""
    fetched = 0

    def script(header: RequestHeader) -> bytes:
        nonlocal fetched
        if header.request_api_key == METADATA:
            topic = MetadataResponseTopic(name="t", partitions=[MetadataResponsePartition(leader_id=1)])
            brokers = [MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)]
            return framed(answer(header, MetadataResponse(brokers=brokers, topics=[topic])))
        said = data[min(fetched, len(data) - 1)]
        fetched += 1
        topics = [FetchableTopicResponse(topic="t", partitions=[said])] if said is not None else []
        return framed(answer(header, FetchResponse(responses=topics)))

    with server(greeting(script)) as port, BlockingCluster(f"127.0.0.1:{port}") as cluster:
        yield cluster


def test_offsets_that_compaction_took_from_the_end_are_not_waited_for() -> None:
    left = PartitionData(high_watermark=10, records=batch(0, 3))
    gone = PartitionData(high_watermark=10, records=b"")
    with answering(left, gone) as cluster:
        assert [each.next_offset for each in fetch(cluster, PARTITION, 0, 10)] == [3]
    with answering(PartitionData(high_watermark=10, records=None)) as cluster:
        assert list(fetch(cluster, PARTITION, 0, 10)) == []


def test_an_answer_that_begins_behind_the_end_is_the_end() -> None:
    with answering(PartitionData(high_watermark=100, records=batch(50, 2))) as cluster:
        assert list(fetch(cluster, PARTITION, 5, 40)) == []


def test_records_that_a_transaction_holds_back_are_waited_for() -> None:
    nothing = PartitionData(high_watermark=10, last_stable_offset=3, records=b"")
    with answering(nothing) as cluster:
        assert list(fetch(cluster, PARTITION, 3, 10)) == []
        with pytest.raises(NoAnswer, match=r"\(high watermark 10, last stable offset 3\)"):
            list(fetch(cluster, PARTITION, 3, 10, isolation_level=1, timeout=0))
    released = PartitionData(high_watermark=10, last_stable_offset=10, records=batch(3, 7))
    with answering(nothing, nothing, released) as cluster:
        (fetched,) = fetch(cluster, PARTITION, 3, 10, isolation_level=1)
        assert fetched.next_offset == 10


def test_a_first_batch_that_an_old_broker_cuts_off_is_asked_for_again() -> None:
    whole = batch(0, 3)
    cut_off = PartitionData(high_watermark=3, records=whole[:-1])
    with answering(cut_off, cut_off, PartitionData(high_watermark=3, records=whole)) as cluster:
        (fetched,) = fetch(cluster, PARTITION, 0, 3)
        assert bytes(fetched.records) == whole


def test_a_broker_whose_quota_is_used_up_is_asked_again() -> None:
    with answering(None, None, PartitionData(high_watermark=3, records=batch(0, 3))) as cluster:
        (fetched,) = fetch(cluster, PARTITION, 0, 3)
        assert fetched.next_offset == 3
    with answering(None) as cluster, pytest.raises(NoAnswer, match="quota is used up"):
        list(fetch(cluster, PARTITION, 0, 3, timeout=0))
