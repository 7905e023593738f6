"""Classic groups as a state machine: members join, sync, beat, commit, leave, crash and restart in any order.

What holds whatever happens:
- members that are in a generation agree on it: its leader, its protocol, and who is assigned what;
- the assignment of a generation is handed out as its leader gave it, so a partition has one owner in it;
- whoever is not a member of the present generation is refused, and a fenced instance is told so;
- nobody waits for ever: with time, everybody who waits is answered;
- what the log says is what the machine knows: another machine made from the log agrees on it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.config.broker import BrokerSettings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.shard import GroupMachine
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard, Ticket

PARTITIONS = 6
FENCED, UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCING, ID_REQUIRED = 82, 25, 22, 27, 79
SESSION_MS, REBALANCE_MS = 10_000, 20_000


class Client:
    """A consumer: what it has been told. Its process may be gone while the group still counts on it."""

    def __init__(self, name: str, instance_id: str | None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.joined: JoinGroupResponse | None = None
        self.ticket: Ticket | None = None
        self.assigned: bytes | None = None  # in the present generation
        self.former: list[str] = []  # member ids that this instance has had before

    @property
    def waits(self) -> bool:
        return self.ticket is not None and self.ticket.waits


class ClassicGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.settings = BrokerSettings(group_initial_rebalance_delay_ms=3_000, group_max_size=4)
        self.topics = ScenarioTopics()
        self.topics.add("t", PARTITIONS)
        self.ids = 0
        self.shard: MemoryShard[GroupMachine] = MemoryShard(self.make)
        self.clients: list[Client] = []
        self.abandoned: list[Ticket] = []  # of clients that crashed while they waited
        # Generation -> what its leader handed in, by member id. A failover may bring a number back.
        self.handed_in: dict[int, dict[str, bytes]] = {}
        self.committed: dict[int, int] = {}

    def make(self) -> GroupMachine:
        return GroupMachine(settings=lambda: self.settings, topics=self.topics, new_id=self.new_id)

    def new_id(self) -> Uuid:
        self.ids += 1
        return Uuid(self.ids.to_bytes(16, "big"))

    @property
    def group(self) -> ClassicGroup | None:
        group = self.shard.machine.groups.get("g")
        assert group is None or isinstance(group, ClassicGroup)
        return group

    # --- what clients do ---------------------------------------------------------------------

    def pick(self, data: st.DataObject, clients: list[Client]) -> Client:
        return clients[data.draw(st.integers(0, len(clients) - 1))]

    def idle(self) -> list[Client]:
        return [client for client in self.clients if not client.waits]

    @precondition(lambda self: len(self.clients) < 6)
    @rule(static=st.booleans())
    def start(self, static: bool) -> None:
        name = f"c{len(self.clients)}"
        self.clients.append(Client(name, f"i{name}" if static else None))

    @precondition(lambda self: self.idle())
    @rule(data=st.data(), version=st.sampled_from([0, 3, 5, 9]), changed=st.booleans())
    def join(self, data: st.DataObject, version: int, changed: bool) -> None:
        self._join(self.pick(data, self.idle()), version, changed)

    @precondition(lambda self: self.idle())
    @rule(data=st.data(), wait_ms=st.sampled_from([0, 3_000, 6_000, 20_000]))
    def gather(self, data: st.DataObject, wait_ms: int) -> None:
        """Many join and sync: left to chance alone, a group would seldom be complete."""
        for client in data.draw(st.permutations(self.idle())):
            self._join(client, 9, False)
        for client in [each for each in self.idle() if each.member_id and not each.joined]:
            self._join(client, 9, False)
        self.shard.advance(wait_ms)
        self.hear()
        joined = [each for each in self.idle() if each.joined]
        for client in data.draw(st.permutations(joined))[: data.draw(st.integers(0, 6))]:
            self._sync(client)

    def _join(self, client: Client, version: int, changed: bool) -> None:
        if client.instance_id is not None:
            version = max(version, 5)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"changed" if changed else b"same")],
        )
        caller = Caller(client.name, "/127.0.0.1", version)
        client.ticket = self.shard.run(
            lambda machine, now, ticket: machine.join_group(request, caller, now, ticket), owner=client.name
        )
        self.hear()

    @precondition(lambda self: any(client.joined for client in self.idle()))
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        self._sync(self.pick(data, [each for each in self.idle() if each.joined]))

    def _sync(self, client: Client) -> None:
        if client.joined is None:
            return  # it has been told meanwhile that it is out
        leads = client.joined.leader == client.member_id and not client.joined.skip_assignment
        assignments: dict[str, bytes] = {}
        if leads:
            members = [each.member_id for each in client.joined.members]
            for partition in range(PARTITIONS):
                owner = members[partition % len(members)]
                assignments[owner] = assignments.get(owner, b"") + bytes([partition])
        group = self.group
        present = None if group is None else (group.state, group.leader, group.generation)
        request = SyncGroupRequest(
            group_id="g",
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        caller = Caller(client.name, "/127.0.0.1", 5)
        if leads and present == (State.COMPLETING_REBALANCE, client.member_id, client.generation):
            self.handed_in[client.generation] = assignments
        client.ticket = self.shard.run(
            lambda machine, now, ticket: machine.sync_group(request, caller, now, ticket), owner=client.name
        )
        self.hear()

    @precondition(lambda self: any(client.member_id for client in self.idle()))
    @rule(data=st.data(), as_former=st.booleans(), behind=st.sampled_from([0, 0, 1]))
    def beat(self, data: st.DataObject, as_former: bool, behind: int) -> None:
        client = self.pick(data, [each for each in self.idle() if each.member_id])
        member_id = client.former[-1] if as_former and client.former else client.member_id
        generation = client.generation - behind
        request = HeartbeatRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            group_instance_id=client.instance_id,
        )
        caller = Caller(client.name, "/127.0.0.1", 4)
        expected = self.expected(member_id, client.instance_id, generation)
        ticket = self.shard.run(lambda machine, now, _: machine.heartbeat(request, caller, now))
        code = 0 if ticket.error is None else ticket.error.code
        rebalancing = self.group is not None and self.group.state is State.PREPARING_REBALANCE
        assert code == (expected or (REBALANCING if rebalancing else 0))

    @precondition(lambda self: any(client.member_id for client in self.idle()))
    @rule(
        data=st.data(),
        partition=st.integers(0, PARTITIONS - 1),
        as_former=st.booleans(),
        behind=st.sampled_from([0, 0, 1]),
    )
    def commit(self, data: st.DataObject, partition: int, as_former: bool, behind: int) -> None:
        client = self.pick(data, [each for each in self.idle() if each.member_id])
        member_id = client.former[-1] if as_former and client.former else client.member_id
        generation = client.generation - behind
        offset = len(self.shard.log)
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=client.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                    ],
                )
            ],
        )
        caller = Caller(client.name, "/127.0.0.1", 8)
        expected = self.expected(member_id, client.instance_id, generation)
        if generation < 0 and self.group is not None and self.group.is_empty:
            expected = 0  # without a generation it counts as nobody's
        elif not expected and self.group is not None and self.group.state is State.COMPLETING_REBALANCE:
            expected = REBALANCING
        reply = self.shard.call(lambda machine, now, _: machine.offset_commit(request, caller, now))
        assert reply.topics[0].partitions[0].error_code == expected
        if not expected:
            self.committed[partition] = offset

    @precondition(lambda self: any(client.member_id for client in self.clients))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A member leaves, or is made to by somebody else while it waits for an answer."""
        client = self.pick(data, [each for each in self.clients if each.member_id])
        member = MemberIdentity(member_id=client.member_id, group_instance_id=client.instance_id)
        request = LeaveGroupRequest(group_id="g", members=[member])
        caller = Caller(client.name, "/127.0.0.1", 5)
        known = self.is_known(client.member_id)
        ticket = self.shard.run(lambda machine, now, _: machine.leave_group(request, caller, now))
        if ticket.error is None:
            assert (ticket.reply.members[0].error_code == 0) == known
        else:
            assert ticket.error.code == UNKNOWN_MEMBER and not known
        self.hear()
        self.reset(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """The process is gone; a static one is started again and does not know who it was."""
        client = self.pick(data, self.clients)
        if client.waits and client.ticket is not None:
            self.abandoned.append(client.ticket)
        client.ticket = None
        self.reset(client)

    # --- what happens to all -------------------------------------------------------------------

    @rule(ms=st.sampled_from([0, 1, 2_999, 3_000, 9_999, 10_001]))
    def time_passes(self, ms: int) -> None:
        self.shard.advance(ms)
        self.hear()

    @rule()
    def fail_over(self) -> None:
        self.shard.restart()
        for client in self.clients:
            if client.waits:
                client.ticket = None  # its connection broke
        self.abandoned.clear()
        # Generations after the last that is in the log did not happen.
        generation = 0 if self.group is None else self.group.generation
        self.handed_in = {g: each for g, each in self.handed_in.items() if g <= generation}

    # --- what they know --------------------------------------------------------------------------

    def reset(self, client: Client) -> None:
        if client.instance_id is not None and client.member_id:
            client.former.append(client.member_id)
        client.member_id, client.generation, client.joined, client.assigned = "", -1, None, None

    def is_known(self, member_id: str) -> bool:
        group = self.group
        return group is not None and (member_id in group.members or member_id in group.pending)

    def expected(self, member_id: str, instance_id: str | None, generation: int) -> int:
        """What a caller is to be told, states aside."""
        group = self.group
        if group is None or group.is_empty:
            return UNKNOWN_MEMBER
        if instance_id is not None:
            registered = group.static.get(instance_id)
            if registered is None:
                return UNKNOWN_MEMBER
            if registered != member_id:
                return FENCED
        if member_id not in group.members:
            return UNKNOWN_MEMBER
        return 0 if generation == group.generation else ILLEGAL_GENERATION

    def hear(self) -> None:
        """Clients take in the answers that have come."""
        for client in self.clients:
            ticket, client.ticket = client.ticket, client.ticket
            if ticket is None or ticket.waits:
                continue
            client.ticket = None
            reply: Any = ticket.reply
            code = reply.error_code if ticket.error is None else ticket.error.code
            if isinstance(reply, JoinGroupResponse):
                client.joined, client.assigned = None, None
                if code == ID_REQUIRED:
                    client.member_id = reply.member_id
                elif code == 0:
                    client.member_id, client.generation = reply.member_id, reply.generation_id
                    client.joined = reply
            elif isinstance(reply, SyncGroupResponse) and code == 0:
                client.assigned = reply.assignment
                given = self.handed_in.get(client.generation, {})
                # A static member that came back has what was given to its predecessor.
                owners = [client.member_id, *client.former]
                expected = [given[each] for each in owners if each in given] or [b""]
                assert reply.assignment in expected, "not what the leader gave it"
            if code in (UNKNOWN_MEMBER, FENCED):
                self.reset(client)
            elif code == ILLEGAL_GENERATION:
                client.generation, client.joined = -1, None

    @invariant()
    def members_of_a_generation_agree(self) -> None:
        group = self.group
        if group is None:
            return
        present = [
            client
            for client in self.clients
            if client.joined is not None
            and client.member_id in group.members
            and client.generation == group.generation
        ]
        assert len({client.member_id for client in present}) == len(present)
        owned: set[int] = set()
        for client in present:
            if client.assigned is not None and group.state is State.STABLE:
                partitions = set(client.assigned)
                assert not partitions & owned, "a partition has two owners"
                owned |= partitions

    @invariant()
    def counts_are_right(self) -> None:
        group = self.group
        if group is None:
            return
        members = list(group.members.values())
        assert group.joining_count == sum(member.joining is not None for member in members)
        assert {name: count for name, count in group.supported.items() if count} == (
            {"range": len(members)} if members else {}
        )
        assert group.static == {m.instance_id: m.member_id for m in members if m.instance_id is not None}
        assert (group.leader in group.members) if members else group.leader is None
        assert (group.state is State.EMPTY) <= (not members)
        if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            assert members and not any(member.joining for member in members)
        if group.state is not State.COMPLETING_REBALANCE:
            assert not any(member.syncing for member in members)
        assert group.joining_count <= self.settings.group_max_size
        for member in members:
            assert member.session is not None and member.session.at > 0, "nobody would notice its death"

    @invariant()
    def the_log_says_what_is_known(self) -> None:
        again = self.shard.replayed()
        assert again.offsets.by_group == self.shard.machine.offsets.by_group
        assert again.groups.keys() == self.shard.machine.groups.keys()
        positions = {p: c.offset for p, c in again.offsets.of_group("g").get("t", {}).items()}
        assert positions == self.committed
        group, other = self.group, again.groups.get("g")
        if group is None:
            return
        assert isinstance(other, ClassicGroup)
        assert other.logged == group.logged
        if group.state in (State.STABLE, State.EMPTY):
            assert other.state is group.state
            assert (other.generation, other.leader, other.protocol) == (
                group.generation,
                group.leader,
                group.protocol,
            )
            assert {m: each.assignment for m, each in other.members.items()} == {
                m: each.assignment for m, each in group.members.items()
            }

    def teardown(self) -> None:
        """Nobody waits for ever: everyone who waits is answered once the longest timeout is over."""
        self.shard.advance(400_000)
        waiting = [each.ticket for each in self.clients if each.waits] + [
            ticket for ticket in self.abandoned if ticket.waits
        ]
        assert not waiting


TestClassicGroups = ClassicGroups.TestCase
TestClassicGroups.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
