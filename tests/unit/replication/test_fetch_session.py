"""Fetch sessions: who gets one, what an incremental answer carries, and when a session has to go."""

from __future__ import annotations

import pytest

from ottla.core.ids import Uuid
from ottla.protocol.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ottla.replication.fetch_session import EVICTABLE_AFTER_MS, Fetch, FetchSessions

VERSION = 12


def request(epoch: int, session_id: int = 0, **topics: list[int]) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=name, partitions=[FetchPartition(partition=p, fetch_offset=7) for p in partitions]
            )
            for name, partitions in topics.items()
        ],
    )


def names(fetch: Fetch) -> list[tuple[str, int]]:
    return [(wanted.topic, wanted.partition) for wanted in fetch.wanted()]


def answer(fetch: Fetch, **special: PartitionData) -> list[tuple[str, int]]:
    """Answer every partition with nothing new but what is given by name, as `a0=PartitionData(...)`."""
    answers = [
        (w, special.get(f"{w.topic}{w.partition}", PartitionData(high_watermark=10, log_start_offset=0)))
        for w in fetch.wanted()
    ]
    return [(w.topic, w.partition) for w, _ in fetch.changed(answers)]


def test_a_full_fetch_opens_a_session_and_answers_every_partition() -> None:
    sessions = FetchSessions(slots=2)
    opened = sessions.begin(request(0, a=[0, 1]), VERSION, now_ms=0, random_id=5)
    assert opened.session_id == 5
    assert answer(opened) == [("a", 0), ("a", 1)]


def test_a_fetch_that_wants_no_session_gets_none() -> None:
    sessions = FetchSessions(slots=2)
    fetch = sessions.begin(request(-1, a=[0]), VERSION, now_ms=0, random_id=5)
    assert fetch.session_id == 0
    assert len(sessions) == 0


def test_versions_before_sessions_never_open_one() -> None:
    sessions = FetchSessions(slots=2)
    assert sessions.begin(request(0, a=[0]), 6, now_ms=0, random_id=5).session_id == 0


def test_an_incremental_fetch_reads_everything_and_answers_what_is_new() -> None:
    sessions = FetchSessions(slots=2)
    opened = sessions.begin(request(0, a=[0, 1], b=[0]), VERSION, now_ms=0, random_id=5)
    answer(opened)
    again = sessions.begin(request(1, 5), VERSION, now_ms=0, random_id=6)
    assert names(again) == [("a", 0), ("a", 1), ("b", 0)]
    news = PartitionData(high_watermark=11, log_start_offset=0, records=b"x")
    assert answer(again, a0=news) == [("a", 0)]


@pytest.mark.parametrize(
    "news",
    [
        PartitionData(high_watermark=12, log_start_offset=0),
        PartitionData(high_watermark=10, log_start_offset=3),
        PartitionData(high_watermark=10, log_start_offset=0, error_code=6),
        PartitionData(high_watermark=10, log_start_offset=0, preferred_read_replica=2),
        PartitionData(
            high_watermark=10, log_start_offset=0, diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)
        ),
    ],
)
def test_each_kind_of_news_is_told(news: PartitionData) -> None:
    sessions = FetchSessions(slots=1)
    answer(sessions.begin(request(0, a=[0], b=[0]), VERSION, now_ms=0, random_id=5))
    assert answer(sessions.begin(request(1, 5), VERSION, now_ms=0, random_id=6), a0=news) == [("a", 0)]


def test_after_an_error_the_next_answer_is_always_told() -> None:
    sessions = FetchSessions(slots=1)
    answer(sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5))
    failed = PartitionData(high_watermark=-1, log_start_offset=-1, error_code=6)
    answer(sessions.begin(request(1, 5), VERSION, now_ms=0, random_id=6), a0=failed)
    assert answer(sessions.begin(request(2, 5), VERSION, now_ms=0, random_id=6)) == [("a", 0)]


def test_a_partition_that_had_data_goes_to_the_end() -> None:
    sessions = FetchSessions(slots=1)
    opened = sessions.begin(request(0, a=[0, 1, 2]), VERSION, now_ms=0, random_id=5)
    answer(opened, a0=PartitionData(high_watermark=10, log_start_offset=0, records=b"x"))
    assert names(sessions.begin(request(1, 5), VERSION, now_ms=0, random_id=6)) == [
        ("a", 1),
        ("a", 2),
        ("a", 0),
    ]


def test_partitions_are_added_changed_and_forgotten() -> None:
    sessions = FetchSessions(slots=1)
    answer(sessions.begin(request(0, a=[0, 1]), VERSION, now_ms=0, random_id=5))
    change = request(1, 5, a=[1], b=[0])
    change.topics[0].partitions[0].fetch_offset = 99
    change.forgotten_topics_data = [ForgottenTopic(topic="a", partitions=[0])]
    fetch = sessions.begin(change, VERSION, now_ms=0, random_id=6)
    assert [(w.topic, w.partition, w.asked.fetch_offset) for w in fetch.wanted()] == [
        ("a", 1, 99),
        ("b", 0, 7),
    ]


def test_a_session_without_partitions_is_closed() -> None:
    sessions = FetchSessions(slots=1)
    answer(sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5))
    last = request(1, 5)
    last.forgotten_topics_data = [ForgottenTopic(topic="a", partitions=[0])]
    assert sessions.begin(last, VERSION, now_ms=0, random_id=6).session_id == 0
    assert len(sessions) == 0


def test_a_wrong_epoch_or_session_is_refused() -> None:
    sessions = FetchSessions(slots=1)
    sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5)
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.begin(request(2, 5), VERSION, now_ms=0, random_id=6)
    with pytest.raises(FetchSessionIdNotFound):
        sessions.begin(request(1, 77), VERSION, now_ms=0, random_id=6)
    with pytest.raises(FetchSessionTopicIdError):
        sessions.begin(request(1, 5), 13, now_ms=0, random_id=6)


def test_an_epoch_after_the_largest_is_one() -> None:
    sessions = FetchSessions(slots=1)
    session = sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5)
    session.epoch = 2**31 - 1  # type: ignore[attr-defined]
    sessions.begin(request(2**31 - 1, 5), VERSION, now_ms=0, random_id=6)
    assert sessions.begin(request(1, 5), VERSION, now_ms=0, random_id=6).session_id == 5


def test_closing_by_the_final_epoch_frees_the_slot() -> None:
    sessions = FetchSessions(slots=1)
    sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5)
    assert sessions.begin(request(-1, 5, a=[0]), VERSION, now_ms=0, random_id=6).session_id == 0
    assert sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=6).session_id == 6


def test_a_full_cache_gives_no_session_until_one_is_idle() -> None:
    sessions = FetchSessions(slots=1)
    sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5)
    assert sessions.begin(request(0, b=[0]), VERSION, now_ms=EVICTABLE_AFTER_MS, random_id=6).session_id == 0
    late = EVICTABLE_AFTER_MS + 1
    assert sessions.begin(request(0, b=[0]), VERSION, now_ms=late, random_id=6).session_id == 6
    assert len(sessions) == 1


def test_a_larger_fetch_takes_the_slot_of_a_smaller_old_one_in_use() -> None:
    sessions = FetchSessions(slots=1)
    sessions.begin(request(0, a=[0]), VERSION, now_ms=0, random_id=5)
    late = EVICTABLE_AFTER_MS + 1
    sessions.begin(request(1, 5), VERSION, now_ms=late, random_id=9)
    assert sessions.begin(request(0, b=[0]), VERSION, now_ms=late, random_id=6).session_id == 0
    assert sessions.begin(request(0, b=[0, 1]), VERSION, now_ms=late, random_id=6).session_id == 6


def test_topics_are_told_apart_by_id_from_version_13() -> None:
    sessions = FetchSessions(slots=1)
    one, two = Uuid(b"1" * 16), Uuid(b"2" * 16)
    opening = FetchRequest(
        session_epoch=0,
        topics=[
            FetchTopic(topic_id=one, partitions=[FetchPartition(partition=0)]),
            FetchTopic(topic_id=two, partitions=[FetchPartition(partition=0)]),
        ],
    )
    assert len(list(sessions.begin(opening, 13, now_ms=0, random_id=5).wanted())) == 2


def test_a_follower_that_did_not_take_a_watermark_is_told_again() -> None:
    sessions = FetchSessions(slots=1)
    answer(sessions.begin(request(0, a=[0], b=[0]), VERSION, now_ms=0, random_id=5))
    again = request(1, 5, a=[0], b=[0])
    again.topics[0].partitions[0].high_watermark = 9
    again.topics[1].partitions[0].high_watermark = 10
    assert answer(sessions.begin(again, VERSION, now_ms=0, random_id=6)) == [("a", 0)]
    assert answer(sessions.begin(request(2, 5), VERSION, now_ms=0, random_id=6)) == []
