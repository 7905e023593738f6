"""What of classic groups the transcripts (tests/scenarios/classic) do not show: versions, odd cases."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.caller import Caller
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.records import read
from ottla.protocol.errors import (
    GroupIdNotFound,
    InvalidGroupId,
    NonEmptyGroup,
    UnknownMemberId,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.testing.shard import Written

HOST = "/127.0.0.1"


def group_of(shard: Any) -> ClassicGroup:
    group = shard.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    return group


def test_a_member_id_is_the_client_id_and_a_uuid_as_java_prints_it(shard: Any) -> None:
    reply = shard.join("my-client", version=9).reply
    assert reply.member_id == "my-client-00000000-0000-0000-0000-000000000001"
    assert (reply.generation_id, reply.leader, reply.protocol_name, reply.members) == (-1, "", None, [])


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_versions_before_4_do_not_ask_for_a_member_id(shard: Any, version: int) -> None:
    ticket = shard.join(version=version)
    assert ticket.waits
    shard.advance(0)
    assert ticket.reply.generation_id == 1


@pytest.mark.parametrize("version", [4, 5, 9])
def test_later_versions_do(shard: Any, version: int) -> None:
    assert shard.join(version=version).reply.error_code == 79


def test_version_0_has_one_timeout_for_sessions_and_rebalances(shard: Any) -> None:
    joined = shard.stable(version=0, rebalance_timeout_ms=-1)
    assert group_of(shard).members[joined.member_id].rebalance_timeout_ms == 10_000


def test_a_refused_join_does_not_make_a_group(shard: Any) -> None:
    wrongs: list[dict[str, Any]] = [{"protocols": []}, {"protocol_type": ""}, {"member_id": "x"}]
    for wrong in [*wrongs, {"session_timeout_ms": 1}]:
        assert shard.join(**wrong).reply.error_code in (23, 25, 26)
    assert shard.machine.groups == {} and shard.log == []


def test_a_protocol_named_twice_counts_once(shard: Any) -> None:
    twice = [JoinGroupRequestProtocol(name="range", metadata=each) for each in (b"first", b"second")]
    joined = shard.stable(protocols=twice)
    assert [member.metadata for member in joined.members] == [b"first"]
    assert group_of(shard).supported == {"range": 1}


def test_the_record_of_a_generation_shows_when_its_members_had_joined(shard: Any) -> None:
    joined = shard.join()
    shard.advance(0)
    began_ms = shard.now.wall_ms
    shard.advance(500)
    shard.sync(joined.reply)
    written = [entry for entry in shard.log if isinstance(entry, Written)][-1]
    entry = read(written.record)
    assert entry is not None and entry.value is not None
    assert entry.value.current_state_timestamp == began_ms
    member = entry.value.members[0]
    assert (member.client_id, member.client_host) == ("c", HOST)
    assert (member.session_timeout, member.rebalance_timeout) == (10_000, 60_000)


def test_members_without_an_assignment_get_nothing(shard: Any) -> None:
    ticket = shard.join()
    shard.advance(0)
    assert shard.sync(ticket.reply, {"somebody else": b"x"}).reply.assignment == b""


def test_a_group_read_from_the_log_supports_what_its_members_had_elected(shard: Any) -> None:
    protocols = [JoinGroupRequestProtocol(name=name, metadata=b"m") for name in ("range", "sticky")]
    joined = shard.stable(protocols=protocols)
    shard.restart()
    group = group_of(shard)
    assert group.state is State.STABLE and group.leader == joined.member_id
    assert group.supported == {"range": 1}
    # Somebody who only knows the other protocol has to wait until the member is back with all of its own.
    other = [JoinGroupRequestProtocol(name="sticky", metadata=b"m")]
    assert shard.join("d", protocols=other).reply.error_code == 23


def test_a_group_whose_subscriptions_cannot_be_read_may_be_subscribed_to_anything(shard: Any) -> None:
    shard.stable(metadata=b"noise")
    assert group_of(shard).subscribed is None
    assert group_of(shard).is_subscribed("whatever")


def test_a_group_of_another_type_is_subscribed_to_nothing(shard: Any) -> None:
    shard.stable(protocol_type="connect", metadata=b"noise")
    assert not group_of(shard).is_subscribed("whatever")


def test_requests_without_a_group_id_are_refused(shard: Any) -> None:
    caller = Caller("c", HOST, 3)
    for command in (
        lambda machine, now, ticket: machine.sync_group(SyncGroupRequest(), caller, now, ticket),
        lambda machine, now, ticket: machine.heartbeat(HeartbeatRequest(), caller, now),
        lambda machine, now, ticket: machine.leave_group(LeaveGroupRequest(), caller, now),
    ):
        with pytest.raises(InvalidGroupId):
            shard.call(command)
    assert shard.join(group_id="").reply.error_code == InvalidGroupId.code


def test_requests_about_an_unknown_group_are_those_of_unknown_members(shard: Any) -> None:
    caller = Caller("c", HOST, 3)
    commands: list[Any] = [
        lambda machine, now, ticket: machine.sync_group(SyncGroupRequest(group_id="x"), caller, now, ticket),
        lambda machine, now, ticket: machine.heartbeat(HeartbeatRequest(group_id="x"), caller, now),
        lambda machine, now, ticket: machine.leave_group(LeaveGroupRequest(group_id="x"), caller, now),
    ]
    for command in commands:
        with pytest.raises(UnknownMemberId):
            shard.call(command)


def test_a_pending_id_may_leave(shard: Any) -> None:
    member_id = shard.join(version=9).reply.member_id
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
    reply = shard.call(lambda machine, now, _: machine.leave_group(request, Caller("", HOST, 5), now))
    assert [each.error_code for each in reply.members] == [0]
    assert group_of(shard).pending == {}


def test_a_pending_id_that_leaves_does_not_disturb_the_members(shard: Any) -> None:
    shard.stable()
    member_id = shard.join("d", version=9).reply.member_id
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
    shard.call(lambda machine, now, _: machine.leave_group(request, Caller("", HOST, 5), now))
    assert group_of(shard).state is State.STABLE


def test_a_rebalance_waits_for_ids_that_were_handed_out(shard: Any) -> None:
    joined = shard.stable()
    pending = shard.join("d", version=9).reply.member_id
    again = shard.join(member_id=joined.member_id)
    assert again.waits
    other = shard.join("d", version=9, member_id=pending)
    assert (again.reply.generation_id, other.reply.generation_id) == (2, 2)


def test_only_empty_groups_are_deleted(shard: Any) -> None:
    def delete(group_id: str) -> None:
        shard.call(lambda machine, now, _: machine.delete_group(group_id))

    joined = shard.stable()
    with pytest.raises(NonEmptyGroup):
        delete("g")
    with pytest.raises(GroupIdNotFound):
        delete("h")
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=joined.member_id)])
    shard.call(lambda machine, now, _: machine.leave_group(request, Caller("", HOST, 5), now))
    delete("g")
    assert shard.machine.groups == {} == shard.replayed().groups


def test_groups_are_listed_by_state_and_type_whatever_the_case(shard: Any) -> None:
    shard.stable()
    shard.commit(group_id="simple")

    def listed(states: list[str], types: list[str]) -> list[str]:
        return sorted(each.group_id for each in shard.machine.list_groups(states, types))

    assert listed([], []) == ["g", "simple"]
    assert listed(["STABLE"], []) == ["g"]
    assert listed(["empty ", "dead"], ["Classic"]) == ["simple"]
    assert listed([], ["consumer"]) == []
    assert listed(["nonsense"], []) == []
    assert listed([], ["nonsense"]) == []


def test_a_group_that_does_not_exist_is_not_described(shard: Any) -> None:
    with pytest.raises(GroupIdNotFound, match=r"Group x not found\."):
        shard.machine.describe_group("x")


def test_metadata_is_described_in_a_stable_group_only(shard: Any) -> None:
    joined = shard.stable(metadata=b"sub")
    described = shard.machine.describe_group("g")
    assert (described.protocol_data, described.members[0].member_metadata) == ("range", b"sub")
    shard.join("d")
    described = shard.machine.describe_group("g")
    assert described.group_state == "PreparingRebalance" and described.protocol_data == ""
    assert {each.member_metadata for each in described.members} == {b""}
    assert joined.member_id in {each.member_id for each in described.members}


def test_a_heartbeat_costs_the_same_in_a_group_of_a_thousand(shard: Any) -> None:
    tickets = [shard.join(f"c{number}") for number in range(1_000)]
    shard.advance(0)
    leader = next(ticket.reply for ticket in tickets if ticket.reply.members)
    assert len(leader.members) == 1_000
    shard.sync(leader)
    # A list of everybody, or of every deadline, would be looked at here.
    group = group_of(shard)
    everybody, group.members = group.members, _CountedDict(group.members)
    for ticket in tickets[:10]:
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id=ticket.reply.member_id)
        shard.call(lambda machine, now, _, r=request: machine.heartbeat(r, Caller("", HOST, 4), now))
    assert isinstance(group.members, _CountedDict) and group.members.walks == 0
    assert len(everybody) == 1_000


class _CountedDict(dict[str, Any]):
    walks = 0

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()

    def values(self) -> Any:
        self.walks += 1
        return super().values()
