"""Share sessions: opened, continued in order, bounded and ended."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import Uuid
from ottla.protocol.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from ottla.replication.share_session import ShareSession, ShareSessions

TOPIC = Uuid(b"t" * 16)


class Sessions(ShareSessions):
    """With everything filled in but the point of the test."""

    def __init__(self, most: int = 10) -> None:
        super().__init__(lambda: most)

    def go(self, epoch: int, *indices: int, member: str = "m", group: str = "g", **how: Any) -> ShareSession:
        forgotten = how.pop("forgotten", ())
        given = {"acknowledges": False, "owner": "connection"} | how
        return self.fetch(
            group,
            member,
            epoch,
            partitions=[(TOPIC, index) for index in indices],
            forgotten=[(TOPIC, index) for index in forgotten],
            **given,
        )


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


def test_a_session_goes_on_with_the_next_epoch(sessions: Sessions) -> None:
    session = sessions.go(0, 0, 1)
    assert sessions.go(1) is session
    assert sessions.acknowledge("g", "m", 2) is session
    assert sessions.go(3) is session


@pytest.mark.parametrize("epoch", [1, 3])
def test_an_epoch_out_of_order_is_refused(sessions: Sessions, epoch: int) -> None:
    sessions.go(0)
    sessions.go(1)
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.go(epoch)
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.acknowledge("g", "m", epoch)
    sessions.go(2)


def test_a_session_that_is_not_there_is_refused(sessions: Sessions) -> None:
    for epoch in (1, -1):
        with pytest.raises(ShareSessionNotFound):
            sessions.go(epoch)
        with pytest.raises(ShareSessionNotFound):
            sessions.acknowledge("g", "m", epoch)


def test_a_session_cannot_begin_with_an_acknowledgement(sessions: Sessions) -> None:
    with pytest.raises(InvalidRequest):
        sessions.go(0, 0, acknowledges=True)
    assert len(sessions) == 0
    sessions.go(0, 0)
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.acknowledge("g", "m", 0)


def test_opening_again_begins_anew(sessions: Sessions) -> None:
    old = sessions.go(0, 0, 1)
    new = sessions.go(0, 2)
    assert new is not old
    assert list(new.partitions) == [(TOPIC, 2)]
    assert len(sessions) == 1


def test_partitions_are_added_and_forgotten(sessions: Sessions) -> None:
    session = sessions.go(0, 0, 1)
    sessions.go(1, 2, forgotten=[0])
    assert list(session.partitions) == [(TOPIC, 1), (TOPIC, 2)]
    sessions.go(2, forgotten=[0, 7])
    assert list(session.partitions) == [(TOPIC, 1), (TOPIC, 2)]


def test_each_fetch_begins_with_another_partition(sessions: Sessions) -> None:
    session = sessions.go(0, 0, 1, 2)
    firsts = [session.in_turn()[0]]
    for epoch in (1, 2):
        sessions.go(epoch)
        firsts.append(session.in_turn()[0])
    assert sorted(firsts) == [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)]
    assert sorted(session.in_turn()) == sorted(session.partitions)


def test_closing_leaves_the_session_until_it_is_ended(sessions: Sessions) -> None:
    session = sessions.go(0, 0)
    assert sessions.go(-1) is session
    assert sessions.acknowledge("g", "m", -1) is session
    assert sessions.end("g", "m") is session
    assert sessions.end("g", "m") is None


def test_only_its_owner_ends_a_session_when_it_goes(sessions: Sessions) -> None:
    sessions.go(0, owner="first")
    session = sessions.go(0, owner="second")
    assert sessions.end("g", "m", "first") is None
    assert sessions.end("g", "m", "second") is session


def test_there_are_only_so_many_sessions() -> None:
    sessions = Sessions(most=2)
    sessions.go(0, member="a")
    sessions.go(0, member="b")
    with pytest.raises(ShareSessionLimitReached):
        sessions.go(0, member="c")
    sessions.go(0, member="a")  # instead of its old one
    sessions.end("g", "b")
    sessions.go(0, member="c")


def test_a_group_has_members_as_long_as_it_has_sessions(sessions: Sessions) -> None:
    sessions.go(0, member="a")
    sessions.go(0, member="b")
    sessions.go(0, member="a")
    sessions.end("g", "a")
    assert sessions.has_members("g")
    sessions.end("g", "b")
    assert not sessions.has_members("g")


def test_epochs_wrap_around_without_zero(sessions: Sessions) -> None:
    session = sessions.go(0)
    session.epoch = 2**31 - 1
    sessions.go(2**31 - 1)
    assert session.epoch == 1
