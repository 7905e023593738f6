"""A cluster in one thread: machines, a network that misbehaves, disks that forget, and one clock.

Everything is drawn from one seed, so a run can be repeated. First things go wrong, then everything is mended,
and the cluster has to come back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from ottla.core.ids import Uuid
from ottla.protocol.control import ControlRecord
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from ottla.protocol.messages.vote import VoteRequest
from ottla.raft.effects import Persist, Send, Sync
from ottla.raft.election_state import ElectionState
from ottla.raft.log import SnapshotId
from ottla.raft.machine import Raft
from ottla.raft.membership import Address, ControlValue, Membership, VoterKey, initial
from ottla.raft.settings import RaftSettings
from tests.simulation.raft.invariants import Invariants, Violation
from tests.simulation.raft.log import SimulatedLog, Snapshot

CLUSTER_ID = "simulated"
# After everything is mended, the cluster has this long to elect a leader and to commit something everywhere.
RECOVERY_MS = 20_000


class PowerLoss(Exception):
    """A node dies in the middle of what it does."""


@dataclass(slots=True)
class Plan:
    """What a seed has drawn: the cluster, its settings, and what goes wrong."""

    voters: int
    observers: int
    kraft_version: int
    settings: RaftSettings
    duration_ms: int
    append_every_ms: int
    snapshot_every: int  # records; 0 for never
    latency_ms: int
    slow_share: float  # of messages that take much longer
    lost_share: float
    twice_share: float
    sync_ms: int
    crash_every_ms: int  # 0 for never
    restart_ms: int  # a crashed node is back within this time
    cut_every_ms: int
    resign_every_ms: int
    change_every_ms: int  # a voter is added or removed
    fuse_share: float  # of writes in whose middle the power fails

    @classmethod
    def draw(cls, random: Random) -> Plan:
        def maybe(chance: float, low: int, high: int) -> int:
            return random.randint(low, high) if random.random() < chance else 0

        kraft_version = random.choice((0, 1))
        change_every_ms = maybe(0.5, 50, 500) if kraft_version else 0
        election_ms = random.choice((60, 100, 150, 300))
        fetch_ms = random.choice((100, 200, 300, 600))
        settings = RaftSettings(
            election_timeout_ms=election_ms,
            election_backoff_max_ms=random.choice((20, 100, 300)),
            fetch_timeout_ms=fetch_ms,
            fetch_max_bytes=random.choice((1, 3, 10, 1000)),
            fetch_snapshot_max_bytes=random.choice((1, 2, 1000)),
            fetch_max_wait_ms=random.choice((0, 20, 50, fetch_ms // 3)) or 20,
            request_timeout_ms=random.choice((50, 150, 300)),
            retry_backoff_ms=random.choice((5, 20)),
        )
        return cls(
            voters=random.choice((1, 2, 3, 3, 3, 3, 4, 5)),
            observers=random.choice((1, 2)) if change_every_ms else random.choice((0, 0, 0, 1, 2)),
            kraft_version=kraft_version,
            settings=settings,
            duration_ms=random.choice((2_000, 4_000)),
            append_every_ms=random.choice((5, 20, 50, 200)),
            snapshot_every=maybe(0.5, 3, 40),
            latency_ms=random.choice((1, 3, 10)),
            slow_share=random.choice((0.0, 0.05, 0.2)),
            lost_share=random.choice((0.0, 0.02, 0.1, 0.3)),
            twice_share=random.choice((0.0, 0.05)),
            sync_ms=random.choice((0, 2, 10, 40)),
            crash_every_ms=random.choice((0, 50, 100, 300, 700, 1_500)),
            restart_ms=random.choice((20, 100, 600)),
            cut_every_ms=maybe(0.6, 100, 1_500),
            resign_every_ms=maybe(0.2, 300, 2_000),
            change_every_ms=change_every_ms,
            fuse_share=random.choice((0.0, 0.0, 0.01, 0.05)),
        )


class Parked(NamedTuple):
    """A fetch that waits at the leader."""

    request: FetchRequest
    reply: Callable[[Any], None]


class Node:
    """A machine, and what the shell around it would do."""

    def __init__(self, cluster: Cluster, id: int, *, can_vote: bool) -> None:
        self.cluster = cluster
        self.id = id
        self.key = VoterKey(id, Uuid(bytes(15) + bytes([id])))
        self.address = Address("CONTROLLER", "sim", id)
        self.can_vote = can_vote
        self.log = SimulatedLog(cluster.burn_fuse)
        if cluster.first_voters:
            # What formatting makes.
            self.log.snapshots[SnapshotId(0, 0)] = Snapshot(0, cluster.first_voters, 1)
        self.election: ElectionState | None = None
        self.machine: Raft
        self.is_up = False
        self.life = 0
        self.seen_mark = 0
        self.seen_batches = 0
        self.is_syncing = False
        self.parked: list[Parked] = []
        self.appended: list[tuple[int, int, int]] = []  # epoch, offset, value
        self._timer_at: int | None = None
        self._clock_ms = 0
        self._seen: tuple[Any, ...] = ()

    def now_ms(self) -> int:
        """Every node has a monotonic clock of its own, which starts anywhere."""
        return self.cluster.now_ms + self._clock_ms

    # --- life and death ------------------------------------------------------------------------

    def start(self) -> None:
        self.life += 1
        self.is_up = True
        self._clock_ms = self.cluster.random.randrange(1_000_000)
        self._timer_at = None
        self.is_syncing = False
        self.parked.clear()
        self.appended.clear()
        self.seen_mark = self.seen_batches = 0
        membership = Membership()
        latest = self.log.latest_snapshot
        if latest is not None:
            for record in self.log.snapshot_control(latest):
                membership.apply(record, in_log=latest.end_offset > 0)
        for batch in self.log.batches:
            if latest is None or batch.base_offset >= latest.end_offset:
                for place, (type, value) in enumerate(batch.control):
                    membership.apply(ControlRecord(batch.base_offset + place, 0, type, value))
        self.membership = membership
        try:
            self.machine = self.cluster.raft(
                self.cluster.settings_of(self),
                self.key,
                self.log,
                membership,
                self.election,
                CLUSTER_ID,
                self.now_ms(),
                self.cluster.random.random,
                can_vote=self.can_vote,
            )
        except PowerLoss:
            self.crash()
            return
        self.after()

    def crash(self) -> None:
        self.is_up = False
        self.log.crash(self.cluster.random)
        self.cluster.later(self.cluster.random.randint(1, self.cluster.plan.restart_ms), self.restart)

    def restart(self) -> None:
        if not self.is_up:
            self.start()

    # --- the shell -----------------------------------------------------------------------------

    def call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call the machine, and do what it wants done before its answer leaves. None if that was the end."""
        try:
            answer = method(*args, **options)
        except PowerLoss:
            self.crash()
            return None
        return answer if self.after() else None

    def ask_until_done(self, method: Callable[..., Any], request: Any) -> None:
        """A change of the voters, which takes its time."""
        life = self.life

        def again() -> None:
            if self.life == life and self.is_up:
                answer = self.call(method, request, self.now_ms())
                if answer is None and self.is_up:
                    self.cluster.later(5, again)
                elif answer is not None and not answer.error_code:
                    self.cluster.changes += 1

        again()

    def after(self) -> bool:
        """Carry out the effects in their order; false if the power failed in between."""
        cluster = self.cluster
        for effect in self.machine.take_effects():
            if isinstance(effect, Persist):
                try:
                    cluster.burn_fuse()
                except PowerLoss:
                    self.crash()
                    return False
                self.election = effect.election
            elif isinstance(effect, Send):
                cluster.send(self, effect)
            elif isinstance(effect, Sync):
                self._sync()
        cluster.check(self)
        self._set_timer()
        seen = (self.machine.epoch, self.machine.role, self.log.end_offset, self.machine.high_watermark)
        if seen != self._seen:
            self._seen = seen
            self._acknowledge()
            self._ask_again()
        return self.is_up

    def _sync(self) -> None:
        if self.is_syncing:
            return
        self.is_syncing = True
        changes, end_offset = self.log.sync_begun()
        cluster = self.cluster
        life = self.life

        def done() -> None:
            if self.life == life and self.is_up:
                self.is_syncing = False
                self.log.sync_done(changes)
                if self.log.sync_begun()[0]:
                    self._sync()
                self.call(self.machine.synced, end_offset, self.now_ms())

        cluster.later(cluster.random.randint(0, cluster.plan.sync_ms), done)

    def _set_timer(self) -> None:
        deadline = self.machine.deadline()
        if deadline is None or (self._timer_at is not None and self._timer_at <= deadline):
            return
        self._timer_at = deadline
        life = self.life

        def expire() -> None:
            if self.life == life and self.is_up and self._timer_at == deadline:
                self._timer_at = None
                self.call(self.machine.expire, self.now_ms())
                due = self.machine.deadline()
                if self.is_up and due is not None and due <= self.now_ms():
                    raise Violation(f"node {self.id} is busy: it has done nothing about what is due")

        # A timer is never early, and not busy: the next millisecond at the soonest.
        self.cluster.later(max(deadline - self.now_ms(), 1), expire)

    def _ask_again(self) -> None:
        for parked in self.parked[:]:
            if parked in self.parked and self.is_up:
                answer = self.call(self.machine.fetch, parked.request, self.now_ms())
                if answer is not None and parked in self.parked:
                    self.parked.remove(parked)
                    parked.reply(answer)

    def _acknowledge(self) -> None:
        """Clients hear of their records once they are committed, from the leader that took them."""
        mark = self.machine.high_watermark or 0
        while self.appended and self.machine.is_leader and self.appended[0][1] < mark:
            epoch, offset, value = self.appended.pop(0)
            if epoch == self.machine.epoch:
                self.cluster.invariants.acknowledged(offset, value)

    def append(self, count: int, value: int) -> None:
        try:
            offset = self.machine.append(bytearray([count]) + value.to_bytes(4, "big"))
        except PowerLoss:
            self.crash()
            return
        self.appended.append((self.machine.epoch, offset, value))
        self.after()

    def receive(self, request: Any, reply: Callable[[Any], None]) -> None:
        """A request has arrived from another node."""
        machine, now_ms = self.machine, self.now_ms()
        if isinstance(request, FetchRequest):
            answer = self.call(machine.fetch, request, now_ms)
            if answer is None and self.is_up:
                self._park(Parked(request, reply))
        elif isinstance(request, VoteRequest):
            answer = self.call(machine.vote, request, now_ms)
            asked = request.topics[0].partitions[0]
            if answer is not None and answer.topics[0].partitions[0].vote_granted and not asked.pre_vote:
                self.cluster.invariants.voted(self.id, asked.replica_epoch, asked.replica_id)
        elif isinstance(request, ApiVersionsRequest):
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            answer = ApiVersionsResponse(supported_features=[feature])
        elif isinstance(request, UpdateRaftVoterRequest):
            answer = self.call(machine.update_voter, request, now_ms)
        elif isinstance(request, BeginQuorumEpochRequest):
            answer = self.call(machine.begin_quorum_epoch, request, now_ms)
        elif isinstance(request, EndQuorumEpochRequest):
            answer = self.call(machine.end_quorum_epoch, request, now_ms)
        else:
            assert isinstance(request, FetchSnapshotRequest)
            answer = self.call(machine.fetch_snapshot, request, now_ms)
        if answer is not None:
            reply(answer)

    def _park(self, parked: Parked) -> None:
        self.parked.append(parked)
        life = self.life

        def give_up() -> None:
            if self.life == life and self.is_up and parked in self.parked:
                self.parked.remove(parked)
                answer = self.call(self.machine.fetch, parked.request, self.now_ms(), waited=True)
                if answer is not None:
                    parked.reply(answer)

        self.cluster.later(parked.request.max_wait_ms, give_up)

    def maybe_snapshot(self) -> None:
        """Snapshot what is committed, once it is enough, and forget the log before it now and then."""
        every, mark = self.cluster.plan.snapshot_every, self.machine.high_watermark or 0
        latest = self.log.latest_snapshot
        since = mark - max(latest.end_offset if latest else 0, self.log.start_offset)
        if every and since >= every:
            self.log.take_snapshot(mark, self._control_at(mark), self.cluster.random.randint(1, 5))
            if self.cluster.random.random() < 0.7:
                before = len(self.log.batches)
                self.log.clean()
                self.seen_batches -= before - len(self.log.batches)

    def _control_at(self, offset: int) -> tuple[ControlValue, ...]:
        return tuple(self.membership.at(offset).records())


class Cluster:
    def __init__(self, seed: int, raft: type[Raft] = Raft) -> None:
        self.raft = raft
        self.random = Random(seed)
        self.plan = Plan.draw(self.random)
        self.invariants = Invariants()
        self.now_ms = 0
        self.events = 0
        self.changes = 0  # of voters, that were committed
        self.trace = 0
        self._order = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._is_mended = False
        self._value = 0
        self._cuts: set[tuple[int, int]] = set()
        count = self.plan.voters + self.plan.observers
        self._addresses = {id: Address("CONTROLLER", "sim", id) for id in range(1, count + 1)}
        self.first_voters: tuple[ControlValue, ...] = ()
        if self.plan.kraft_version == 1:
            keys = {
                VoterKey(id, Uuid(bytes(15) + bytes([id]))): self._addresses[id]
                for id in range(1, self.plan.voters + 1)
            }
            self.first_voters = tuple(initial(keys).records())
        self.nodes = {
            id: Node(
                self,
                id,
                can_vote=id <= self.plan.voters
                or self.plan.change_every_ms > 0
                or self.random.random() < 0.5,
            )
            for id in self._addresses
        }

    def settings_of(self, node: Node) -> RaftSettings:
        voters = tuple((id, self._addresses[id]) for id in range(1, self.plan.voters + 1))
        return self.plan.settings._replace(
            voters=voters if self.plan.kraft_version == 0 else (),
            # Where voters come and go, everybody who may be one is listed.
            bootstrap_servers=tuple(self._addresses.values())
            if self.plan.change_every_ms
            else tuple(address for _, address in voters)
            if self.plan.kraft_version == 1 or node.id > self.plan.voters
            else (),
            endpoints=(node.address,) if node.can_vote else (),
        )

    # --- time and chance -----------------------------------------------------------------------

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._queue, (self.now_ms + delay_ms, self._order, what))

    def run_until(self, end_ms: int, is_done: Callable[[], bool] | None = None) -> bool:
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, what = heappop(self._queue)
            self.events += 1
            what()
            if is_done is not None and is_done():
                return True
        self.now_ms = end_ms
        return False

    def burn_fuse(self) -> None:
        if self.plan.fuse_share and not self._is_mended and self.random.random() < self.plan.fuse_share:
            raise PowerLoss

    def check(self, node: Node) -> None:
        self.invariants.check(node, [self.nodes[id] for id in node.machine.voters.ids])
        machine = node.machine
        mark = -1 if machine.high_watermark is None else machine.high_watermark
        position = (self.now_ms, node.id, machine.epoch, machine.leader_id, node.log.end_offset, mark)
        self.trace = hash((self.trace, position))

    # --- the network ---------------------------------------------------------------------------

    def send(self, sender: Node, sent: Send) -> None:
        """A request, its answer, and the end of the wait for it."""
        if isinstance(sent.request, VoteRequest) and not sent.request.topics[0].partitions[0].pre_vote:
            # Who asks for votes has given its own.
            self.invariants.voted(sender.id, sender.machine.epoch, sender.id)
        life = sender.life
        is_settled = False

        def settle(answer: Any, is_gone: bool = False) -> None:
            nonlocal is_settled
            if not is_settled and sender.life == life and sender.is_up:
                is_settled = True
                if answer is None:
                    sender.call(sender.machine.failed, sent, sender.now_ms(), is_gone=is_gone)
                else:
                    sender.call(sender.machine.answered, sent, answer, sender.now_ms())

        receiver = self.nodes[sent.to.port]

        def reply(answer: Any) -> None:
            for delay_ms in self._delays(receiver.id, sender.id)[:1]:
                self.later(delay_ms, lambda: settle(answer))

        def arrive() -> None:
            if receiver.is_up:
                receiver.receive(sent.request, reply)
            else:
                # Nobody listens there.
                self.later(1, lambda: settle(None, is_gone=True))

        for delay_ms in self._delays(sender.id, receiver.id):
            self.later(delay_ms, arrive)
        self.later(sent.timeout_ms, lambda: settle(None))

    def _delays(self, sender: int, receiver: int) -> list[int]:
        """When a message arrives: once, twice, or never."""
        random, plan = self.random, self.plan
        if self._is_mended:
            return [random.randint(1, 3)]
        if (sender, receiver) in self._cuts or random.random() < plan.lost_share:
            return []
        times = 2 if random.random() < plan.twice_share else 1
        return [self._delay() for _ in range(times)]

    def _delay(self) -> int:
        longest = self.plan.latency_ms
        if self.random.random() < self.plan.slow_share:
            longest *= 30
        return self.random.randint(1, longest)

    # --- what goes wrong -----------------------------------------------------------------------

    def _every(self, interval_ms: int, what: Callable[[], None]) -> None:
        """Now and then, until everything is mended."""
        if not interval_ms:
            return

        def again() -> None:
            if not self._is_mended:
                what()
                self._every(interval_ms, what)

        self.later(self.random.randint(1, 2 * interval_ms), again)

    def _crash_one(self) -> None:
        """Any node; but leaders have more to lose."""
        up = [node for node in self.nodes.values() if node.is_up]
        leaders = [node for node in up if node.machine.is_leader]
        if up:
            self.random.choice(leaders if leaders and self.random.random() < 0.4 else up).crash()

    def _cut_some(self) -> None:
        """Cut links, in one direction or both, or isolate a node; or mend everything."""
        ids = list(self.nodes)
        kind = self.random.randrange(4)
        if kind == 0 or len(ids) == 1:
            self._cuts.clear()
        elif kind == 1:
            one = self.random.choice(ids)
            self._cuts |= {(one, other) for other in ids} | {(other, one) for other in ids}
        elif kind == 2:
            one = self.random.choice(ids)
            towards = self.random.random() < 0.5
            self._cuts |= {(one, other) if towards else (other, one) for other in ids}
        else:
            one, other = self.random.sample(ids, 2)
            self._cuts |= {(one, other), (other, one)} if self.random.random() < 0.5 else {(one, other)}

    def _resign_one(self) -> None:
        for node in self.nodes.values():
            if node.is_up and node.machine.is_leader:
                node.call(node.machine.resign, node.now_ms())
                return

    def _change_voters(self) -> None:
        """Somebody asks a leader to take a vote away, or to give one to a node that has none."""
        leaders = [node for node in self.nodes.values() if node.is_up and node.machine.is_leader]
        if not leaders:
            return
        leader, node = self.random.choice(leaders), self.random.choice(list(self.nodes.values()))
        if node.id in leader.machine.voters.nodes:
            removal = RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID, voter_id=node.id, voter_directory_id=node.key.directory_id
            )
            leader.ask_until_done(leader.machine.remove_voter, removal)
        else:
            addition = AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                voter_id=node.id,
                voter_directory_id=node.key.directory_id,
                listeners=[Listener(name="CONTROLLER", host="sim", port=node.id)],
                ack_when_committed=self.random.random() < 0.8,
            )
            leader.ask_until_done(leader.machine.add_voter, addition)

    def _append_some(self) -> None:
        """Clients write to whoever thinks that it leads, be it right or not."""
        for node in self.nodes.values():
            if node.is_up and node.machine.is_leader and self.random.random() < 0.8:
                self._value += 1
                node.append(self.random.choice((1, 1, 1, 2, 5)), self._value)
        for node in self.nodes.values():
            if node.is_up:
                node.maybe_snapshot()

    # --- a run ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Raises `Violation`, or an assertion of the machine itself."""
        plan = self.plan
        for node in self.nodes.values():
            self.later(self.random.randint(0, 100), node.restart)
        self._every(plan.append_every_ms, self._append_some)
        self._every(plan.crash_every_ms, self._crash_one)
        self._every(plan.cut_every_ms, self._cut_some)
        self._every(plan.resign_every_ms, self._resign_one)
        self._every(plan.change_every_ms, self._change_voters)
        self.run_until(plan.duration_ms)
        self._recover()

    def _recover(self) -> None:
        """With everything mended, there has to be a leader, and a record that everybody has."""
        self._is_mended = True
        self._cuts.clear()
        for node in self.nodes.values():
            node.restart()
        written_in = written = -1

        def is_well() -> bool:
            nonlocal written_in, written
            leaders = [node for node in self.nodes.values() if node.is_up and node.machine.is_leader]
            top = max(leaders, key=lambda node: node.machine.epoch, default=None)
            if top is None or (top.machine.high_watermark or 0) <= top.machine.epoch_start_offset:
                return False
            if written_in != top.machine.epoch:  # what an earlier leader took may have been lost with it
                self._value += 1
                written_in, written = top.machine.epoch, self._value
                top.append(1, self._value)
            if not any(batch.value == written for batch in self.invariants.committed[-50:]):
                return False
            end = self.invariants.committed_end
            return all(node.is_up and node.seen_mark == end for node in self.nodes.values())

        if not self.run_until(self.now_ms + RECOVERY_MS, is_well):
            state = ", ".join(
                f"{node.id}: {node.machine.role.value} in {node.machine.epoch} of {node.machine.leader_id}, "
                f"{node.machine.high_watermark}/{node.log.end_offset}"
                for node in self.nodes.values()
            )
            raise Violation(f"the cluster did not recover within {RECOVERY_MS} ms: {state}")


def run(seed: int, raft: type[Raft] = Raft) -> Cluster:
    """A whole run. Raises with the seed if something is wrong."""
    cluster = Cluster(seed, raft)
    try:
        cluster.run()
    except (Violation, AssertionError) as error:
        raise Violation(f"seed {seed} at {cluster.now_ms} ms: {error}") from error
    return cluster
