"""One replicated partition in one thread: real partitions on logs that forget, and a perfect controller.

Brokers crash (some lose what they had not synced), messages are lost, delayed and overtake each other, and
the metadata log reaches each broker when it does. Everything is drawn from one seed, so a run can be
repeated. First things go wrong, then everything is mended, and the partition has to come back.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from ottla.core.ids import Uuid
from ottla.core.types import TopicPartition
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.controller import Controller
from ottla.metadata.image import TOPIC_RESOURCE, Image
from ottla.metadata.partition import PartitionState
from ottla.metadata.state import Context, ControllerSettings
from ottla.metadata.versions import DEFAULT_FEATURES
from ottla.protocol.batch import HEADER_SIZE
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from ottla.protocol.stored import metadata as stored
from ottla.replication.following import Answered, Asked, Backoff, Reaction, reaction, reset
from ottla.replication.isr import NOT_REGISTERED, Outcome, Proposal, Standing
from ottla.replication.partition import Partition
from tests.simulation.replication.invariants import Invariants, Violation
from tests.simulation.replication.log import SimulatedLog, batch_of

TOPIC = "t"
TOPIC_ID = Uuid(bytes(15) + b"\x77")
NOTHING = PartitionState((), (), -1)
CONTROLLER = 0
FETCH_TIMEOUT_MS = 2000
ALTER_TIMEOUT_MS = 1500
LONGEST_BACKOFF_MS = 300


@dataclass
class Tunables:
    replicas: int
    min_insync_replicas: int
    durable: bool
    max_lag_ms: int
    fetch_wait_ms: int
    fetch_batches: int
    session_timeout_ms: int
    heartbeat_ms: int
    delay_ms: int
    slow: float  # how often a message takes much longer
    loss: float
    metadata_delay_ms: int
    sync_ms: int
    produce_ms: int
    crash_every_ms: int
    cut_every_ms: int
    move_every_ms: int
    acks_one: float
    deletes: bool
    checkpoint_ms: int

    @classmethod
    def drawn(cls, random: Random) -> Tunables:
        replicas = random.choice((2, 3, 3, 3, 4))
        return cls(
            replicas=replicas,
            min_insync_replicas=random.randint(1, replicas),
            durable=random.random() < 0.5,
            max_lag_ms=random.choice((200, 500, 1500, 5000)),
            fetch_wait_ms=random.choice((0, 20, 100, 500)),
            fetch_batches=random.choice((1, 1, 3, 50)),
            session_timeout_ms=random.choice((500, 1500, 4000)),
            heartbeat_ms=random.choice((100, 300)),
            delay_ms=random.choice((1, 5, 20, 60)),
            slow=random.choice((0, 0, 0.02, 0.1)),
            loss=random.choice((0, 0, 0.01, 0.1)),
            metadata_delay_ms=random.choice((1, 20, 200, 1000)),
            sync_ms=random.choice((0, 5, 50)),
            produce_ms=random.choice((2, 10, 50)),
            crash_every_ms=random.choice((700, 2000, 6000, 10**9)),
            cut_every_ms=random.choice((700, 3000, 10**9)),
            move_every_ms=random.choice((100, 700, 10**9, 10**9)),
            acks_one=random.choice((0, 0.3)),
            deletes=random.random() < 0.2,
            checkpoint_ms=random.choice((100, 1000, 5000)),
        )


class Directory:
    """A log directory that never fails."""

    id = Uuid(bytes(15) + b"\x01")

    def fail(self, error: Exception) -> Exception:
        raise AssertionError("no disk fails here") from error


@dataclass(eq=False)
class Parked:
    """A fetch that waits at the leader."""

    wake: Callable[[], None]

    def readable(self, size: int) -> None:
        self.wake()


@dataclass(eq=False)
class Process:
    """A broker from its start to its end."""

    id: int
    incarnation: int
    disk: SimulatedLog
    partition: Partition
    previous_epoch: int
    image: Image = field(default_factory=Image)
    applied: int = 0
    broker_epoch: int = -1
    is_up: bool = True
    is_serving: bool = False
    fetch_number: int = 0
    backoff: Backoff = field(default_factory=Backoff)
    members_before: frozenset[int] = frozenset()
    is_syncing: bool = False
    checked_up_to: int = 0
    settled: tuple[int, int, int] = (0, 0, 0)
    waits: list[tuple[asyncio.Future[None], int, int]] = field(default_factory=list)


class Cluster:
    def __init__(self, seed: int, *, tunables: Tunables | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.tunables = tunables or Tunables.drawn(self.random)
        self.now = 0
        self.events = 0
        self.trace: list[str] = []
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._values = itertools.count(1)
        self._incarnations = itertools.count(1)
        self.is_healed = False
        self._cut: set[tuple[int, int]] = set()
        t = self.tunables
        self.invariants = Invariants(t.min_insync_replicas, t.replicas, t.durable)
        self.records: list[Any] = []
        settings = ControllerSettings(
            node_id=100, cluster_id="c", session_timeout_ms=t.session_timeout_ms, min_insync_replicas=1
        )
        self.controller = Controller(settings, ConfigRules({}, 100))
        self.disks = {broker: SimulatedLog() for broker in range(1, t.replicas + 1)}
        self.processes: dict[int, Process] = {}  # everybody, also who is down at the moment
        self.epochs: dict[int, int] = {}
        # Brokers that crashed and are not in sync again yet, and those of them that lost something.
        self.unclean: set[int] = set()
        self.lossy: set[int] = set()

    # --- time and messages -----------------------------------------------------------------

    def at(self, delay_ms: float, act: Callable[..., None], *args: Any) -> None:
        heappush(self._queue, (self.now + max(int(delay_ms), 0), next(self._order), act, args))

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now:>7} {text}")

    def send(self, source: int, target: int, act: Callable[..., None], *args: Any) -> None:
        t = self.tunables
        if not self.is_healed:
            if (source, target) in self._cut or self.random.random() < t.loss:
                return
            slow = self.random.random() < t.slow
            delay = self.random.randint(0, 4000 if slow else t.delay_ms)
        else:
            delay = 1
        self.at(delay, act, *args)

    def run(self, until: int) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, act, args = heappop(self._queue)
            for process in self.processes.values():
                process.members_before = process.partition.isr.members
            act(*args)
            self.events += 1
            running = self.up()
            for process in running:
                members = process.partition.isr.members
                if members is not process.members_before:
                    process.members_before |= members
                self._settle(process)
            self.invariants.check(running, self.state, self.epochs)
        self.now = until

    def up(self) -> list[Process]:
        return [self.processes[broker] for broker in self.disks if self.processes[broker].is_up]

    @property
    def state(self) -> PartitionState:
        topic = self.controller.image.topics.get(TOPIC)
        return NOTHING if topic is None else topic.partitions[0]

    # --- the controller --------------------------------------------------------------------

    def write(self, records: list[Any]) -> None:
        for record in records:
            self.controller.apply(record, len(self.records))
            self.records.append(record)
        self.controller.image.take_delta()
        if records:
            self.epochs = {b.id: b.epoch for b in self.controller.image.brokers.values()}
            # Back in sync, in a life that began after the crash.
            back = {b for b in self.unclean if b in self.state.isr and self._is_registered(b)}
            self.unclean -= back
            self.lossy -= back
            for process in self.up():
                self._tell(process)

    def _is_registered(self, broker: int) -> bool:
        process = self.processes[broker]
        return process.is_up and self.epochs.get(broker) == process.broker_epoch

    def _tell(self, process: Process) -> None:
        delay = 1 if self.is_healed else self.random.randint(0, self.tunables.metadata_delay_ms)
        self.at(delay, self._hear, process, len(self.records))

    def _hear(self, process: Process, end: int) -> None:
        """The metadata log has reached a broker, up to `end`."""
        if not process.is_up or end <= process.applied:
            return
        if not self.is_healed and (CONTROLLER, process.id) in self._cut:
            self.at(100, self._hear, process, end)
            return
        for offset in range(process.applied, end):
            process.image.apply(self.records[offset], offset)
        process.applied = end
        process.image.take_delta()
        self._apply(process)

    def decide(self, request: Any, version: int) -> Any:
        context = Context(version, self.now, len(self.records), lambda size: self.random.randbytes(size))
        decision = self.controller.decide(request, context)
        self.write(decision.records)
        return decision.response

    def _expire(self) -> None:
        records = self.controller.expire(self.now)
        if records:
            self.note(f"fenced: {self._brief()}")
        self.write(records)
        self.at(50, self._expire)

    def _brief(self) -> str:
        s = self.state
        return f"leader={s.leader} e={s.leader_epoch} p={s.partition_epoch} isr={s.isr} elr={s.elr}"

    # --- brokers ---------------------------------------------------------------------------

    def begin(self) -> None:
        t = self.tunables
        ids = list(self.disks)
        features = [stored.FeatureLevelRecord(name=n, feature_level=v) for n, v in DEFAULT_FEATURES.items()]
        self.is_healed = True  # everybody is there when the topic is made
        for broker in ids:
            self.start(broker, -1, unclean=False)
        self.write(features)
        self.at(50, self._expire)
        self.run(2000)
        self.is_healed = False
        self.write(
            [
                stored.TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
                stored.ConfigRecord(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=TOPIC,
                    name="min.insync.replicas",
                    value=str(t.min_insync_replicas),
                ),
                stored.PartitionRecord(
                    partition_id=0,
                    topic_id=TOPIC_ID,
                    replicas=ids,
                    isr=ids,
                    leader=self.random.choice(ids),
                    leader_epoch=0,
                    directories=[_directory(broker) for broker in ids],
                ),
            ]
        )
        self.at(t.produce_ms, self._produce)
        self.at(20, self._consume)
        self.at(self.random.randint(1, t.crash_every_ms), self._crash_somebody)
        self.at(self.random.randint(1, t.cut_every_ms), self._cut_somebody)
        self.at(self.random.randint(1, t.move_every_ms), self._move_leader)
        if t.deletes:
            self.at(1000, self._delete_records)

    def start(self, broker: int, previous_epoch: int, *, unclean: bool) -> None:
        disk = self.disks[broker]
        partition = Partition(TopicPartition(TOPIC, 0), TOPIC_ID, disk, Directory(), broker, [])  # type: ignore[arg-type]
        process = Process(broker, next(self._incarnations), disk, partition, previous_epoch)
        self.processes[broker] = process
        self.note(f"start {broker} end={disk.end_offset} previous={previous_epoch}")
        self._register(process, unclean)
        self.at(self.tunables.checkpoint_ms, self._checkpoint, process)

    def _register(self, process: Process, unclean: bool) -> None:
        if not process.is_up or process.broker_epoch >= 0:
            return
        request = BrokerRegistrationRequest(
            broker_id=process.id,
            cluster_id="c",
            incarnation_id=Uuid(process.incarnation.to_bytes(16, "big")),
            listeners=[Listener(name="X", host="h", port=1)],
            features=[
                Feature(name=name, min_supported_version=0, max_supported_version=100)
                for name in DEFAULT_FEATURES
            ],
            log_dirs=[_directory(process.id)],
            previous_broker_epoch=process.previous_epoch,
        )
        self.send(process.id, CONTROLLER, self._registration, process, request, unclean)
        self.at(300, self._register, process, unclean)

    def _registration(self, process: Process, request: BrokerRegistrationRequest, unclean: bool) -> None:
        known = self.epochs.get(process.id)
        response: BrokerRegistrationResponse = self.decide(request, 4)
        if response.error_code:
            return
        if unclean and response.broker_epoch != known:
            self.invariants.check_unclean(process.id, self.state)
        self.send(CONTROLLER, process.id, self._registered, process, response.broker_epoch)

    def _registered(self, process: Process, epoch: int) -> None:
        if process.is_up and process.broker_epoch < 0:
            process.broker_epoch = epoch
            self.note(f"registered {process.id} epoch={epoch}: {self._brief()}")
            self._tell(process)
            self._apply(process)
            self._heartbeat(process)
            self._fetch(process)
            self._look(process)

    def _heartbeat(self, process: Process) -> None:
        if process.is_up:
            request = BrokerHeartbeatRequest(
                broker_id=process.id,
                broker_epoch=process.broker_epoch,
                current_metadata_offset=process.applied - 1,
            )
            self.send(process.id, CONTROLLER, self._heard_from, process, request)
            self.at(self.tunables.heartbeat_ms, self._heartbeat, process)

    def _heard_from(self, process: Process, request: BrokerHeartbeatRequest) -> None:
        before = self.state
        response: BrokerHeartbeatResponse = self.decide(request, 1)
        if response.error_code:
            self.send(CONTROLLER, process.id, self._superseded, process)
        elif self.state != before:
            self.note(f"heartbeat of {process.id}: {self._brief()}")

    def _superseded(self, process: Process) -> None:
        """A registration of an earlier life came late, and counts: what is registered is not us."""
        if process.is_up:
            self.crash(process, lossy=False)

    def _checkpoint(self, process: Process) -> None:
        if process.is_up:
            process.disk.checkpoint = process.disk.high_watermark
            self.at(self.tunables.checkpoint_ms, self._checkpoint, process)

    def _apply(self, process: Process) -> None:
        """What the node does with a partition that the metadata log has changed."""
        topic = process.image.topics.get(TOPIC)
        if not self.is_caught_up(process) or topic is None or not topic.partitions:
            return
        state = topic.partitions[0]
        was = (process.partition.is_leader, process.partition.leader_epoch)
        process.partition.take_state(
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.replicas,
            state.isr,
            self.tunables.min_insync_replicas,
            self.now,
        )
        if was != (process.partition.is_leader, process.partition.leader_epoch):
            self.note(
                f"{process.id} is {'leader' if process.partition.is_leader else 'follower'} "
                f"e={process.partition.leader_epoch} end={process.disk.end_offset} "
                f"hw={process.disk.high_watermark}"
            )
            process.backoff.worked()
            self._fetch(process)

    def is_caught_up(self, process: Process) -> bool:
        """Whether a broker has seen itself registered. What was said of it before was of its last life."""
        known = process.image.brokers.get(process.id)
        return known is not None and known.epoch == process.broker_epoch

    def standing_of(self, process: Process) -> Callable[[int], Standing]:
        def standing(broker: int) -> Standing:
            known = process.image.brokers.get(broker)
            return NOT_REGISTERED if known is None else Standing(known.epoch, known.is_active)

        return standing

    # --- following -------------------------------------------------------------------------

    def _sync(self, process: Process, then: Callable[[], None] | None = None) -> None:
        """A flush of all there is now; it may take a while."""
        end_offset, truncated = process.disk.end_offset, process.disk.batches
        last = truncated[-1].bytes if truncated else b""

        def done() -> None:
            disk = process.disk
            # A flush counts only as far as the log was not cut meanwhile.
            uncut = end_offset <= disk.end_offset and (not last or disk.value_at(end_offset - 1) == last)
            if process.is_up and uncut:
                disk.recovery_point = max(disk.recovery_point, end_offset)
            if process.is_up and then is not None:
                then()

        self.at(0 if self.is_healed else self.random.randint(0, self.tunables.sync_ms), done)

    def _fetch(self, process: Process) -> None:
        partition = process.partition
        process.fetch_number += 1
        if not process.is_up or process.broker_epoch < 0 or partition.is_leader or partition.leader < 0:
            return
        number = process.fetch_number
        if self.must_sync(process):
            self._sync(process, lambda: self._fetch(process) if process.fetch_number == number else None)
            return
        asked = partition.ask()
        self.at(FETCH_TIMEOUT_MS, self._fetch_again, process, number)
        self.send(
            process.id,
            partition.leader,
            self._fetched,
            process,
            partition.leader,
            asked,
            number,
            process.broker_epoch,
        )

    def must_sync(self, process: Process) -> bool:
        """Whether there is anything to sync before the leader may be told that we have it."""
        return self.tunables.durable and process.disk.recovery_point < process.disk.end_offset

    def _fetch_again(self, process: Process, number: int) -> None:
        if process.fetch_number == number:
            self._fetch(process)

    def _fetched(
        self, process: Process, to: int, asked: Asked, number: int, broker_epoch: int, *, again: bool = False
    ) -> None:
        """At the leader: what the fetch handler does."""
        leader = self.processes.get(to)
        if leader is None or not leader.is_up:
            return
        partition, log = leader.partition, leader.disk

        def answer(error_code: int, answered: Answered | None = None) -> None:
            self.send(to, process.id, self._answered, process, asked, number, error_code, answered, to)

        try:
            partition.check_leader(asked.leader_epoch)
            diverging = partition.diverges(asked.last_epoch, asked.fetch_offset)
            if diverging is not None:
                answer(0, Answered(b"", log.high_watermark, log.start_offset, *diverging))
                return
            if not again:
                proposal = partition.follower_fetched(
                    process.id,
                    broker_epoch,
                    asked,
                    self.now,
                    self.tunables.max_lag_ms,
                    self.standing_of(leader),
                )
                if proposal is not None:
                    self._propose(leader, proposal)
            count = 1000 if self.is_healed else self.tunables.fetch_batches
            records = log.read(asked.fetch_offset, count * HEADER_SIZE, log.end_offset)
        except KafkaError as error:
            answer(error.code)
            return
        if records or log.high_watermark > asked.high_watermark or again:
            answer(0, Answered(records, log.high_watermark, log.start_offset))
            return
        self._park(leader, process, to, asked, number, broker_epoch)

    def _park(
        self, leader: Process, process: Process, to: int, asked: Asked, number: int, broker_epoch: int
    ) -> None:
        woken = False

        def wake() -> None:
            nonlocal woken
            if not woken:
                woken = True
                leader.partition.remove_follower_waiter(parked)
                self.at(0, go_on)

        def go_on() -> None:
            if leader.is_up and self.processes[to] is leader:
                self._fetched(process, to, asked, number, broker_epoch, again=True)

        parked = Parked(wake)
        leader.partition.add_follower_waiter(parked)
        self.at(self.tunables.fetch_wait_ms, wake)

    def _answered(
        self,
        process: Process,
        asked: Asked,
        number: int,
        error_code: int,
        answer: Answered | None,
        leader: int,
    ) -> None:
        if not process.is_up or process.fetch_number != number:
            return
        partition = process.partition
        if error_code:
            what = reaction(error_code)
            if what is Reaction.STOP and partition.leader_epoch == asked.leader_epoch:
                process.fetch_number += 1
                return
            if what is Reaction.LOOK_UP:
                self._reset(process, asked, leader)
            self.at(process.backoff.failed(LONGEST_BACKOFF_MS), self._fetch_again, process, number)
            return
        assert answer is not None
        process.backoff.worked()
        before = process.disk.end_offset
        if partition.take_answer(asked, answer, self.now):
            self.note(f"cut {process.id} from {before} to {process.disk.end_offset}")
        self._fetch(process)

    def _reset(self, process: Process, asked: Asked, leader: int) -> None:
        other = self.processes[leader]
        leads = other.is_up and other.partition.is_leader
        if not leads or other.partition.leader_epoch != asked.leader_epoch:
            return
        if process.partition.is_still(asked):
            change = reset(asked.fetch_offset, other.disk.start_offset, other.disk.end_offset)
            self.note(f"out of range {process.id}: {change}")
            if change.truncate_to is not None:
                process.partition.cut(change.truncate_to)
            elif change.start_at is not None:
                process.partition.start_anew(change.start_at)

    # --- in-sync sets ----------------------------------------------------------------------

    def _look(self, process: Process) -> None:
        if process.is_up:
            proposal = process.partition.look_for_changes(
                self.now, self.tunables.max_lag_ms, self.standing_of(process)
            )
            if proposal is not None:
                self._propose(process, proposal)
            self.at(self.tunables.max_lag_ms / 2, self._look, process)

    def _propose(self, process: Process, proposal: Proposal) -> None:
        if not process.is_up or process.partition.isr.proposal is not proposal:
            return
        request = AlterPartitionRequest(
            broker_id=process.id,
            broker_epoch=process.broker_epoch,
            topics=[
                TopicData(
                    topic_id=TOPIC_ID,
                    partitions=[
                        PartitionData(
                            leader_epoch=proposal.leader_epoch,
                            partition_epoch=proposal.partition_epoch,
                            new_isr_with_epochs=[
                                BrokerState(broker_id=b, broker_epoch=e) for b, e in proposal.members
                            ],
                        )
                    ],
                )
            ],
        )
        answered = [False]
        self.send(process.id, CONTROLLER, self._altered, process, proposal, request, answered)

        def unheard() -> None:
            if not answered[0] and process.is_up:
                process.partition.isr.unheard(proposal, self.now)
                self._propose(process, proposal)

        self.at(ALTER_TIMEOUT_MS, unheard)

    def _altered(
        self, process: Process, proposal: Proposal, request: AlterPartitionRequest, answered: list[bool]
    ) -> None:
        before = self.state
        response: AlterPartitionResponse = self.decide(request, 3)
        if self.state != before:
            self.note(f"altered by {process.id}: {self._brief()}")
        self.send(CONTROLLER, process.id, self._heard_of, process, proposal, response, answered)

    def _heard_of(
        self, process: Process, proposal: Proposal, response: AlterPartitionResponse, answered: list[bool]
    ) -> None:
        if not process.is_up or answered[0]:
            return
        answered[0] = True
        partition = process.partition
        if response.error_code:
            self.at(200, self._propose, process, proposal)
            return
        answer = response.topics[0].partitions[0]
        if not answer.error_code:
            partition.proposal_accepted(proposal, answer.isr, answer.leader_epoch, answer.partition_epoch)
        elif partition.proposal_refused(proposal, answer.error_code, self.now) is Outcome.AGAIN:
            self.at(200, self._propose, process, proposal)

    # --- clients ---------------------------------------------------------------------------

    def _produce(self) -> None:
        if not self.is_healed:
            self.at(self.random.randint(1, 2 * self.tunables.produce_ms), self._produce)
        process = self._some_leader()
        if process is not None:
            acks = 1 if self.random.random() < self.tunables.acks_one else -1
            self.produce(process, acks)

    def _some_leader(self) -> Process | None:
        """Somebody who thinks that it leads, which need not be true."""
        leaders = [process for process in self.up() if process.partition.is_leader]
        return self.random.choice(leaders) if leaders else None

    def produce(self, process: Process, acks: int) -> int:
        value = next(self._values)
        try:
            appended = process.partition.append(batch_of(value, self.random.randint(1, 3)), self.now, acks)
        except KafkaError:
            return value
        if acks == -1:
            committed = process.partition.committed(appended.last_offset)
            if committed is None:
                committed = asyncio.get_running_loop().create_future()
                committed.set_result(None)
            process.waits.append((committed, value, appended.base_offset))
        return value

    def _settle(self, process: Process) -> None:
        """Acknowledge what is committed and, where that is promised, synced."""
        durable = self.tunables.durable
        is_behind = process.disk.recovery_point < process.disk.end_offset
        if durable and is_behind and process.waits and process.partition.is_leader and not process.is_syncing:
            process.is_syncing = True
            self._sync(process, lambda: setattr(process, "is_syncing", False))
        progress = (process.disk.high_watermark, process.disk.recovery_point, len(process.waits))
        leads = process.partition.is_leader and process.partition.isr.is_large_enough
        if progress == process.settled and leads:
            return
        process.settled = progress
        left: list[tuple[asyncio.Future[None], int, int]] = []
        for wait in process.waits:
            committed, value, offset = wait
            if committed.done() and committed.exception() is not None:
                continue
            if committed.done() and (not durable or offset < process.disk.recovery_point):
                self.invariants.acknowledge(value, offset)
            else:
                left.append(wait)
        process.waits = left

    def _consume(self) -> None:
        """Look at what clients may see, of leaders and of followers."""
        self.at(20, self._consume)
        if not self.up():
            return
        process = self.random.choice(self.up())
        log = process.disk
        visible = min(log.high_watermark, log.recovery_point) if self.tunables.durable else log.high_watermark
        for batch in log.batches[-20:]:
            if batch.last_offset < visible:
                self.invariants.see_record(batch)
        if process.partition.is_leader and process.partition.leader_epoch == self.state.leader_epoch:
            latest = log.epochs.entries[-1] if log.epochs.latest >= 0 else (-1, 0)
            if log.epochs.latest != process.partition.leader_epoch or latest[1] <= log.high_watermark:
                self.invariants.see_watermark(visible, log.start_offset)

    def _delete_records(self) -> None:
        self.at(self.random.randint(500, 3000), self._delete_records)
        process = self._some_leader()
        if process is not None and process.partition.leader_epoch == self.state.leader_epoch:
            log = process.disk
            safe = min(log.high_watermark, self.invariants.committed_end)
            if safe > log.start_offset:
                log.delete_records(self.random.randint(log.start_offset, safe))
                self.note(f"deleted on {process.id} up to {log.start_offset}")

    # --- faults ----------------------------------------------------------------------------

    def _crash_somebody(self) -> None:
        if self.is_healed:
            return
        t = self.tunables
        self.at(self.random.randint(1, 2 * t.crash_every_ms), self._crash_somebody)
        everybody = self.up()
        if not everybody:
            return
        chosen = [self.random.choice(everybody)]
        if self.random.random() < 0.1:
            chosen = everybody
        for process in chosen:
            kind = self.random.random()
            if kind < 0.2:
                self.stop(process)
            else:
                self.crash(process, lossy=kind < 0.6)

    def stop(self, process: Process) -> None:
        """An orderly stop: all is synced, and the next start can show it."""
        self.note(f"stop {process.id}")
        process.is_up = False
        process.disk.recovery_point = process.disk.end_offset
        process.disk.checkpoint = process.disk.high_watermark
        is_known = process.broker_epoch >= 0
        self._come_back(process, process.broker_epoch if is_known else process.previous_epoch, unclean=False)

    def crash(self, process: Process, *, lossy: bool) -> None:
        disk = process.disk
        # With the page cache alone, this many brokers may crash at a time if any of them loses something.
        too_many = len(self.unclean | {process.id}) > self.tunables.min_insync_replicas - 1
        if not self.tunables.durable and too_many:
            lossy = False
            if self.lossy:
                self.stop(process)
                return
        self.unclean.add(process.id)
        if lossy:
            self.lossy.add(process.id)
        process.is_up = False
        keep = disk.end_offset
        if lossy:
            keep = self.random.randint(disk.recovery_point, disk.end_offset)
            if self.random.random() < 0.5:
                keep = disk.recovery_point
        self.note(f"crash {process.id} lossy={lossy} keeps {keep} of {disk.end_offset}: {self._brief()}")
        disk.crash(keep)
        self._come_back(process, self.epoch_after_crash(process), unclean=True)

    def epoch_after_crash(self, process: Process) -> int:
        """What the next start can show of a clean end: nothing."""
        return -1

    def _come_back(self, process: Process, previous_epoch: int, *, unclean: bool) -> None:
        for committed, _, _ in process.waits:
            if not committed.cancel():
                committed.exception()  # nobody is left to hear of it
        process.waits.clear()
        delay = self.random.choice((0, 100, 500, 3000))
        self.at(delay, self._restart, process, previous_epoch, unclean)

    def _restart(self, process: Process, previous_epoch: int, unclean: bool) -> None:
        self.start(process.id, previous_epoch, unclean=unclean)

    def _move_leader(self) -> None:
        """Another in-sync replica leads from now on, as in a preferred election."""
        if self.is_healed:
            return
        self.at(self.random.randint(1, 2 * self.tunables.move_every_ms), self._move_leader)
        s, image = self.state, self.controller.image
        others = [broker for broker in s.isr if broker != s.leader and image.is_active(broker)]
        if s.leader >= 0 and others:
            chosen = self.random.choice(others)
            self.write([stored.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=chosen)])
            self.note(f"moved: {self._brief()}")

    def _cut_somebody(self) -> None:
        if self.is_healed:
            return
        self.at(self.random.randint(1, 2 * self.tunables.cut_every_ms), self._cut_somebody)
        nodes = [CONTROLLER, *self.disks]
        if self.random.random() < 0.4:
            self._cut.clear()
            self.note("mended")
            return
        one = self.random.choice(nodes[1:])
        others = [node for node in nodes if node != one]
        if self.random.random() < 0.5:
            others = [self.random.choice(others)]
        both = self.random.random() < 0.7
        for other in others:
            self._cut.add((one, other))
            if both:
                self._cut.add((other, one))
        self.note(f"cut off {one} from {others} both={both}")

    # --- the end ---------------------------------------------------------------------------

    def heal(self) -> None:
        """Mend everything; then the partition has to come back."""
        self.is_healed = True
        self._cut.clear()
        self.note("healed")
        well = 0
        for _ in range(40):
            self.run(self.now + 1000)
            well = well + 1 if self._is_well() else 0
            if well == 4:  # whoever still waits for a lost answer does so for less than that
                break
        else:
            raise Violation(f"liveness: not well 40 s after everything was mended: {self._brief()}")
        leader = self.processes[self.state.leader]
        value = self.produce(leader, -1)
        self.run(self.now + 2000)
        if value not in self.invariants.acknowledged:
            raise Violation(f"liveness: a write is not acknowledged: {self._brief()}")
        for broker, disk in self.disks.items():
            if disk.high_watermark != leader.disk.end_offset:
                raise Violation(f"liveness: {broker} does not know the high watermark")
        self.invariants.check_end(leader.disk, list(self.disks.values()))

    def _is_well(self) -> bool:
        s = self.state
        leader = self.processes.get(s.leader)
        return leader is not None and leader.partition.is_leader and set(s.isr) == set(s.replicas)


def _directory(broker: int) -> Uuid:
    return Uuid(bytes([broker + 1]) * 16)


def run(seed: int, *, cluster_type: type[Cluster] = Cluster, duration_ms: int = 12_000) -> Cluster:
    """One simulated cluster. Raises `Violation`, with what happened."""

    async def within_loop() -> Cluster:
        cluster = cluster_type(seed)
        try:
            cluster.begin()
            cluster.run(duration_ms)
            cluster.heal()
        except (Violation, AssertionError, KafkaError) as problem:
            tail = "\n".join(cluster.trace[-60:])
            raise Violation(f"seed {seed}: {problem!r}\n{cluster.tunables}\n{tail}") from problem
        return cluster

    return asyncio.run(within_loop())
