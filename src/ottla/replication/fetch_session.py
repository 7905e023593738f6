"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only says what changed.

Pure: the cache is told the time and the session ids it may hand out. A session remembers what the client
last heard of each partition, so that an answer carries only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.core.ids import ZERO_UUID, Uuid
from ottla.protocol.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0

# A session nobody used for this long gives way to a new one when the cache is full.
EVICTABLE_AFTER_MS: Final = 120_000


class SessionPartition:
    """One partition of a fetch: what the client asked for, and what it was last told."""

    __slots__ = ("_told_log_start", "_told_watermark", "asked", "partition", "quiet", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: Uuid, asked: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = asked.partition
        self.asked = asked
        # What a follower is answered that asks this and has everything; None if it was not asked yet.
        self.quiet: PartitionData | None = None
        self._told_watermark = -1
        self._told_log_start = -1

    def ask(self, asked: FetchPartition) -> None:
        """The client asks for something else now."""
        self.asked = asked
        self.quiet = None
        if asked.high_watermark < self._told_watermark:
            # A follower that did not take what it was told, as it may: it would be answered at once, to hear
            # of the watermark, and not hear of it.
            self._told_watermark = -1

    def is_news(self, answer: PartitionData) -> bool:
        """Whether an incremental answer must carry this partition; remembers what it was told."""
        news = bool(answer.records) or answer.error_code != 0
        if answer.high_watermark != self._told_watermark:
            self._told_watermark = answer.high_watermark
            news = True
        if answer.log_start_offset != self._told_log_start:
            self._told_log_start = answer.log_start_offset
            news = True
        if answer.error_code:
            # The next answer must reach the client whatever it says: it clears the error.
            self._told_watermark = -1
        elif answer.diverging_epoch.end_offset >= 0 or answer.preferred_read_replica >= 0:
            news = True
        return news


class Fetch:
    """The partitions of one fetch request, in the order they are to be read."""

    session_id = NO_SESSION

    def __init__(self, partitions: Iterable[SessionPartition]) -> None:
        self._partitions = list(partitions)

    def wanted(self) -> Iterable[SessionPartition]:
        return self._partitions

    def changed(
        self, answers: list[tuple[SessionPartition, PartitionData]]
    ) -> list[tuple[SessionPartition, PartitionData]]:
        """What to send: a full fetch answers for every partition."""
        return answers


class FetchSession(Fetch):
    """A fetch that later requests may refer to by number."""

    def __init__(self, session_id: int, by_topic_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.by_topic_id = by_topic_id
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.full = True  # the answer to the request that opened the session carries every partition
        self._by_key: dict[tuple[str | Uuid, int], SessionPartition] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def update(self, request: FetchRequest) -> None:
        for partition in _partitions(request):
            key = self._key(partition.topic, partition.topic_id, partition.partition)
            known = self._by_key.get(key)
            if known is None:
                self._by_key[key] = partition
            else:
                known.ask(partition.asked)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self._by_key.pop(self._key(topic.topic, topic.topic_id, index), None)

    def wanted(self) -> Iterable[SessionPartition]:
        return list(self._by_key.values())

    def changed(
        self, answers: list[tuple[SessionPartition, PartitionData]]
    ) -> list[tuple[SessionPartition, PartitionData]]:
        send = []
        for partition, answer in answers:
            news = partition.is_news(answer)
            if news or self.full:
                send.append((partition, answer))
            if answer.records:
                # Whoever had data goes to the end, so that a busy partition cannot starve the others.
                key = self._key(partition.topic, partition.topic_id, partition.partition)
                if key in self._by_key:
                    self._by_key[key] = self._by_key.pop(key)
        self.full = False
        return send

    def _key(self, topic: str, topic_id: Uuid, index: int) -> tuple[str | Uuid, int]:
        return (topic_id if self.by_topic_id else topic, index)


class FetchSessions:
    """The broker's sessions, bounded in number."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int, random_id: int) -> Fetch:
        """The partitions to read for this request, or the top-level error Kafka gives.

        `random_id` is a number above 0 that a new session may take; one that is in use counts as full.
        """
        by_topic_id = version >= 13
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            if request.session_epoch == INITIAL_EPOCH and version >= 7:
                return self._open(request, by_topic_id, now_ms, random_id)
            return Fetch(_partitions(request))
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound
        if session.by_topic_id != by_topic_id:
            raise FetchSessionTopicIdError
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.used_ms = now_ms
        # Sessions stand in the order of use, so that the idlest is the first.
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        session.update(request)
        if not len(session):
            del self._sessions[session.session_id]
            return Fetch(())
        return session

    def _open(self, request: FetchRequest, by_topic_id: bool, now_ms: int, random_id: int) -> Fetch:
        if not request.topics or random_id in self._sessions or not self._room(request, now_ms):
            return Fetch(_partitions(request))
        session = FetchSession(random_id, by_topic_id, now_ms)
        session.update(request)
        self._sessions[random_id] = session
        return session

    def _room(self, request: FetchRequest, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._slots:
            return False
        idlest = next(iter(self._sessions.values()))
        if now_ms - idlest.used_ms > EVICTABLE_AFTER_MS:
            del self._sessions[idlest.session_id]
            return True
        # All are in use: a larger fetch gains more from a session than a small one, once that had its time.
        size = sum(len(topic.partitions) for topic in request.topics)
        smallest = min(self._sessions.values(), key=len)
        if len(smallest) < size and now_ms - smallest.created_ms > EVICTABLE_AFTER_MS:
            del self._sessions[smallest.session_id]
            return True
        return False


def _partitions(request: FetchRequest) -> Iterator[SessionPartition]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield SessionPartition(topic.topic, topic.topic_id or ZERO_UUID, partition)
