"""A range whose records are not all there, by a broker that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.client.blocking.cluster import BlockingCluster
from ottla.client.blocking.fetch import BATCH_BYTES, fetch
from ottla.client.errors import NoAnswer
from ottla.core.types import TopicPartition
from ottla.protocol.batch import Record, set_base_offset, write_batch
from ottla.protocol.codec import decode
from ottla.protocol.headers import RequestHeader, read_request_header
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted import METADATA, answer
from tests.unit.client.scripted_socket import FETCH, framed, greeting, server

PARTITION = TopicPartition("t", 0)


def batch(base_offset: int, count: int, value: bytes = b"value") -> bytes:
    made = write_batch([Record(0, 1, None, value)] * count)
    set_base_offset(made, base_offset)
    return bytes(made)


@contextmanager
def answering(*data: PartitionData | None, frames: list[bytes] | None = None) -> Iterator[BlockingCluster]:
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

    with server(greeting(script), frames) as port, BlockingCluster(f"127.0.0.1:{port}") as cluster:
        yield cluster


def bytes_asked_for(frames: list[bytes]) -> list[int]:
    heads = [(read_request_header(frame, 0, len(frame)), frame) for frame in frames]
    requests = [
        decode(FetchRequest, header.request_api_version, frame, position)
        for (header, position), frame in heads
        if header.request_api_key == FETCH
    ]
    assert all(each.max_bytes == each.topics[0].partitions[0].partition_max_bytes for each in requests)
    return [each.max_bytes for each in requests]


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


def test_the_last_request_of_a_range_asks_for_little_that_follows_it() -> None:
    value, frames = bytes(100_000), list[bytes]()
    said = [PartitionData(high_watermark=99, records=batch(offset, 10, value)) for offset in (0, 10, 20)]
    with answering(*said, frames=frames) as cluster:
        list(fetch(cluster, PARTITION, 0, 25, max_bytes=2_400_000))
    first, second, third = bytes_asked_for(frames)
    assert first == second == 2_400_000
    assert 500_000 + BATCH_BYTES <= third < 600_000 + BATCH_BYTES


def test_a_batch_that_is_larger_than_those_before_it_is_asked_for_until_it_is_whole() -> None:
    small, large, frames = batch(0, 10), batch(10, 10), list[bytes]()
    cut_off = PartitionData(high_watermark=20, records=large[:-1])
    said = [PartitionData(high_watermark=20, records=each) for each in (small, large)]
    with answering(said[0], cut_off, cut_off, said[1], frames=frames) as cluster:
        fetched = list(fetch(cluster, PARTITION, 0, 20, max_bytes=4 * BATCH_BYTES))
    assert [each.next_offset for each in fetched] == [10, 20]
    first, guessed, *more = bytes_asked_for(frames)
    assert guessed < 2 * BATCH_BYTES < first
    assert more == [2 * first, 4 * first]


def test_a_broker_whose_quota_is_used_up_is_asked_again() -> None:
    with answering(None, None, PartitionData(high_watermark=3, records=batch(0, 3))) as cluster:
        (fetched,) = fetch(cluster, PARTITION, 0, 3)
        assert fetched.next_offset == 3
    with answering(None) as cluster, pytest.raises(NoAnswer, match="quota is used up"):
        list(fetch(cluster, PARTITION, 0, 3, timeout=0))
