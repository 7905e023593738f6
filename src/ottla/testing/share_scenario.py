"""Transcripts of share groups: their members, one partition of them, and the coordinator of its state.

The scenario is the shell between the three machines. A partition is read once somebody has it; what it wants
to be stored is stored at once, unless the transcript says `hold`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.config.broker import BrokerSettings, broker_settings
from ottla.config.group import group_settings
from ottla.core.caller import Caller
from ottla.core.ids import Uuid
from ottla.core.outcome import LogRecord
from ottla.core.share import SharePartitionKey, StateBatch
from ottla.groups.records import TYPES, read
from ottla.groups.shard import GroupMachine
from ottla.groups.share import admin
from ottla.groups.share.heartbeat import Heard, Initialize, heartbeat
from ottla.groups.share_state import ReadState, ShareStateMachine
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.protocol.stored import share as stored
from ottla.replication.share_delivery import BATCH_OPTIMIZED, RECORD_LIMIT, Limits
from ottla.replication.share_partition import Acknowledged, SharePartition
from ottla.replication.share_ranges import Write
from ottla.testing.group_scenario import ScenarioTopics
from ottla.testing.shard import MemoryShard, Written

ACKNOWLEDGEMENTS: Final = {"gap": 0, "accept": 1, "release": 2, "reject": 3, "renew": 4}
ORDINARY_INTERVAL_MS: Final = 5_000
STATES: Final = {0: "available", 2: "acknowledged", 4: "archived"}
_STATE_TYPES: Final[dict[int, tuple[Any, Any]]] = {
    0: (stored.ShareSnapshotKey, stored.ShareSnapshotValue),
    1: (stored.ShareUpdateKey, stored.ShareUpdateValue),
}


class ShareScenario:
    """Verbs are methods named `do_...`; what happened is told in lines."""

    def __init__(self) -> None:
        self.settings: BrokerSettings = broker_settings({"node.id": "1", "process.roles": "broker"})
        self.overrides: dict[str, str] = {}
        self.topics = ScenarioTopics()
        self.groups: MemoryShard[GroupMachine] = MemoryShard(
            lambda: GroupMachine(
                settings=lambda: self.settings,
                topics=self.topics,
                new_id=lambda: Uuid(bytes(16)),
                group_overrides=lambda group: self.overrides,
            )
        )
        self.states: MemoryShard[ShareStateMachine] = MemoryShard(
            lambda: ShareStateMachine(0, settings=lambda: self.settings, topics=self.topics)
        )
        self.epochs: dict[str, int] = {}
        self.batches: list[tuple[int, int]] = []  # of partition 0 of topic t
        self.partition: SharePartition | None = None
        self.state_epoch = 0
        self.leader_epoch = 0
        self.held: list[Write] | None = None  # writes that nobody has stored yet, where they are held up
        self.told: list[str] = []

    def run(self, line: str) -> list[str]:
        verb, *words = line.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        self.told = []
        try:
            getattr(self, "do_" + verb.replace("-", "_"))(plain, named)
        except KafkaError as error:
            self._tell_written()
            self.told.append(f"error {error.code} {error.name}")
        self._tell_written()
        return self.told

    def _tell_written(self) -> None:
        for shard, types in ((self.groups, TYPES), (self.states, _STATE_TYPES)):
            for each in shard.take_news():
                if isinstance(each, Written):
                    self.told.append("write " + self._shown(each.record, types))

    # --- the surroundings ------------------------------------------------------------------

    def do_topic(self, plain: list[str], named: dict[str, str]) -> None:
        """topic t=4: a topic has so many partitions."""
        for name, count in named.items():
            self.topics.add(name, int(count))
        self.groups.take(lambda machine, now: machine.topics_changed({}, set(named), now))

    def do_delete_topic(self, plain: list[str], named: dict[str, str]) -> None:
        deleted = {self.topics.remove(name): name for name in plain}
        self.groups.take(lambda machine, now: machine.topics_changed(deleted, set(), now))
        self.states.take(lambda machine, now: machine.topics_deleted(deleted))

    def do_set(self, plain: list[str], named: dict[str, str]) -> None:
        """set group.share.max.size=2: properties of the broker."""
        self.settings = broker_settings({"node.id": "1", "process.roles": "broker", **named})

    def do_configure(self, plain: list[str], named: dict[str, str]) -> None:
        """configure share.delivery.count.limit=2: settings of the group."""
        self.overrides |= named

    def do_advance(self, plain: list[str], named: dict[str, str]) -> None:
        """advance 3000: milliseconds pass, for everybody."""
        self.groups.advance(int(plain[0]))
        self.states.advance(int(plain[0]))
        if self.partition is not None:
            self._store(self.partition.expire(self.groups.elapsed_ms))

    def do_restart(self, plain: list[str], named: dict[str, str]) -> None:
        """Other coordinators take over, and another leader."""
        self.groups.restart()
        self.states.restart()
        self.partition = None
        self.leader_epoch += 1

    def do_depose(self, plain: list[str], named: dict[str, str]) -> None:
        """Another leader has read the state, and ours has not heard of it yet."""
        key, epoch = self._key(), self.leader_epoch + 1
        self.states.call(lambda machine, now, _: machine.read(key, epoch, now))

    # --- members ---------------------------------------------------------------------------

    def do_join(self, plain: list[str], named: dict[str, str]) -> None:
        """join a t u: a member that subscribes to topics; its partitions are initialized meanwhile."""
        who, *topics = plain
        heard = self._heard(who, 0, topics, may_wait=True)
        if heard.response is None:
            heard = self._heard(who, 0, topics, may_wait=False)
        self._answer(who, heard)

    def do_beat(self, plain: list[str], named: dict[str, str]) -> None:
        """beat a: a heartbeat; beat a u: with another subscription; epoch=3 to be wrong."""
        who, *topics = plain
        epoch = int(named.get("epoch", self.epochs.get(who, 0)))
        self._answer(who, self._heard(who, epoch, topics or None, may_wait=False))

    def do_leave(self, plain: list[str], named: dict[str, str]) -> None:
        (who,) = plain
        self._answer(who, self._heard(who, -1, None, may_wait=False))

    def _heard(self, who: str, epoch: int, topics: list[str] | None, *, may_wait: bool) -> Heard:
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=who, member_epoch=epoch, subscribed_topic_names=topics
        )
        caller = Caller(who, "/127.0.0.1", 1)
        heard: Heard = self.groups.call(
            lambda machine, now, _: heartbeat(machine, request, caller, now, may_wait=may_wait)
        )
        self._tell_written()
        if heard.initialize is not None:
            self._initialize(heard.initialize)
        return heard

    def _initialize(self, wanted: Initialize) -> None:
        for topic_id, offsets in wanted.start_offsets.items():
            for index, offset in sorted(offsets.items()):
                self._initialize_one(SharePartitionKey("g", topic_id, index), wanted.state_epoch, offset)
        self._tell_written()
        self.groups.call(lambda machine, now, _: admin.initialized(machine, "g", wanted.indices, now))
        self._tell_written()

    def _initialize_one(self, key: SharePartitionKey, epoch: int, offset: int) -> None:
        self.states.call(lambda machine, now, _: machine.initialize(key, epoch, offset, now))

    def _answer(self, who: str, heard: Heard) -> None:
        response = heard.response
        assert response is not None
        self.epochs[who] = response.member_epoch
        has = "as before"
        if response.assignment is not None:
            has = self._topics(
                (each.topic_id, each.partitions) for each in response.assignment.topic_partitions
            )
        again = response.heartbeat_interval_ms
        soon = f", again in {again} ms" if 0 < again < ORDINARY_INTERVAL_MS else ""
        self.told.append(f"{who}: epoch={response.member_epoch} has {has}{soon}")

    def do_describe(self, plain: list[str], named: dict[str, str]) -> None:
        group = self.groups.call(lambda machine, now, _: admin.describe(machine, "g"))
        members = [
            f"[{each.member_id} epoch={each.member_epoch} "
            f"{self._topics((t.topic_id, t.partitions) for t in each.assignment.topic_partitions)}]"
            for each in group.members
        ]
        epochs = f"epoch={group.group_epoch} assignment={group.assignment_epoch}"
        self.told.append(" ".join([group.group_state, epochs, *members]))

    # --- records ---------------------------------------------------------------------------

    def do_produce(self, plain: list[str], named: dict[str, str]) -> None:
        """produce 3 2: batches of so many records, in partition 0 of topic t."""
        for size in map(int, plain):
            first = self.batches[-1][1] + 1 if self.batches else 0
            self.batches.append((first, first + size - 1))

    def do_fetch(self, plain: list[str], named: dict[str, str]) -> None:
        """fetch a: what a member gets; most=3 for so many, strict=3 for no more."""
        (who,) = plain
        partition = self._loaded()
        offset = partition.next_fetch_offset()
        given = partition.acquire(
            who,
            [batch for batch in self.batches if batch[1] >= offset],
            fetch_offset=offset,
            max_records=int(named.get("strict", named.get("most", 500))),
            batch_size=500,
            mode=RECORD_LIMIT if "strict" in named else BATCH_OPTIMIZED,
            now_ms=self.groups.elapsed_ms,
        )
        self.told.append(
            f"{who}: {', '.join(f'{_range(one)} x{one.delivery_count}' for one in given) or 'nothing'}"
        )

    def do_say(self, plain: list[str], named: dict[str, str]) -> None:
        """say a accept=0-4 release=5: acknowledge ranges, in the order of their offsets."""
        (who,) = plain
        batches = []
        for kind, text in named.items():
            first, _, last = text.partition("-")
            batches.append(Acknowledged(int(first), int(last or first), [ACKNOWLEDGEMENTS[kind]]))
        batches.sort()
        self._store(self._loaded().acknowledge(who, batches, self.groups.elapsed_ms))

    def do_close(self, plain: list[str], named: dict[str, str]) -> None:
        """close a: the session of a member ends."""
        (who,) = plain
        self._store(self._loaded().release(who))

    def do_hold(self, plain: list[str], named: dict[str, str]) -> None:
        """From here on nothing is stored before it is said."""
        self.held = []

    def do_stored(self, plain: list[str], named: dict[str, str]) -> None:
        """What was held up is stored."""
        held, self.held = self.held or [], None
        for write in held:
            self._store(write)

    def do_lost(self, plain: list[str], named: dict[str, str]) -> None:
        """What was held up could not be stored."""
        held, self.held = self.held or [], None
        for write in held:
            self._loaded().failed(write)

    def do_show(self, plain: list[str], named: dict[str, str]) -> None:
        partition = self._loaded()
        self.told.append(
            f"start={partition.start_offset} end={partition.end_offset} "
            f"done={partition.delivery_complete_count} next={partition.next_fetch_offset()}"
        )

    def _key(self) -> SharePartitionKey:
        topic_id = self.topics.topic_id("t")
        assert topic_id is not None
        return SharePartitionKey("g", topic_id, 0)

    def _loaded(self) -> SharePartition:
        if self.partition is None:
            key = self._key()
            state: ReadState = self.states.call(
                lambda machine, now, _: machine.read(key, self.leader_epoch, now)
            )
            self.state_epoch = state.state_epoch
            self.partition = SharePartition(max(state.start_offset, 0), state.batches, self._limits)
            self._tell_written()
        return self.partition

    def _limits(self) -> Limits:
        settings = group_settings(self.overrides, self.settings)
        return Limits(
            settings.share_delivery_count_limit,
            settings.share_partition_max_record_locks,
            settings.share_record_lock_duration_ms,
            settings.share_renew_acknowledge_enable,
        )

    def _store(self, write: Write | None) -> None:
        if write is None:
            return
        if self.held is not None:
            self.held.append(write)
            return
        key = self._key()
        try:
            self.states.call(
                lambda machine, now, _: machine.write(
                    key,
                    state_epoch=self.state_epoch,
                    leader_epoch=self.leader_epoch,
                    start_offset=write.start_offset,
                    delivery_complete_count=write.delivery_complete_count,
                    batches=write.batches,
                    now=now,
                )
            )
        except KafkaError:
            self._loaded().failed(write)
            raise
        self._loaded().written(write)

    # --- telling ---------------------------------------------------------------------------

    def _topics(self, topics: Iterable[tuple[Uuid, Iterable[int]]]) -> str:
        return " ".join(f"{self._name(topic)}:{_indices(indices)}" for topic, indices in topics) or "nothing"

    def _name(self, topic_id: Uuid) -> str:
        return self.topics.name_of(topic_id) or "?"

    def _shown(self, entry: LogRecord, types: dict[int, tuple[Any, Any]]) -> str:
        understood = read(entry, types)
        assert understood is not None
        name = type(understood.key).__name__.removesuffix("Key").removeprefix("ShareGroup")
        who = getattr(understood.key, "member_id", "")
        if types is _STATE_TYPES:
            who = f"{self._name(understood.key.topic_id)}-{understood.key.partition}"
        what = "gone" if understood.value is None else self._said(understood.value)
        return " ".join(part for part in (name, who, what) if part)

    def _said(self, value: Any) -> str:
        parts = [
            f"{field.removesuffix('_epoch')}={getattr(value, field)}"
            for field in ("epoch", "assignment_epoch", "member_epoch", "snapshot_epoch", "state_epoch")
            if hasattr(value, field)
        ]
        if hasattr(value, "subscribed_topic_names"):
            parts.append(",".join(value.subscribed_topic_names))
        parts += [
            self._topics((each.topic_id, each.partitions) for each in getattr(value, field))
            for field in ("topic_partitions", "assigned_partitions")
            if hasattr(value, field)
        ]
        for field in ("initializing_topics", "initialized_topics"):
            if getattr(value, field, None):
                listed = self._topics((each.topic_id, each.partitions) for each in getattr(value, field))
                parts.append(f"{field.removesuffix('_topics')} {listed}")
        if getattr(value, "deleting_topics", None):
            parts.append("deleting " + " ".join(each.topic_name for each in value.deleting_topics))
        if hasattr(value, "state_batches"):
            parts.append(f"leader={value.leader_epoch} start={value.start_offset}")
            parts.append(f"done={value.delivery_complete_count}")
            parts += [
                f"{STATES[each.delivery_state]} {_range(each)} x{each.delivery_count}"
                for each in value.state_batches
            ]
        return " ".join(parts)


def _range(each: StateBatch | Any) -> str:
    if each.first_offset == each.last_offset:
        return str(each.first_offset)
    return f"{each.first_offset}-{each.last_offset}"


def _indices(indices: Iterable[int]) -> str:
    return ",".join(map(str, indices))
