"""The metadata quorum of one voter: runs the controller over `__cluster_metadata-0`.

A request becomes a decision, the decision's records are appended, and the answer leaves once they are
committed: on the disk of a majority of voters, which here is our own. Several requests share one sync. The
controller reads its own appended records at once, everybody else reads `image` and sees committed ones only.

Brokers speak to it with `submit`, as they would to a controller on another machine.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ottla.config.broker import BrokerSettings
from ottla.config.listeners import Listeners
from ottla.core.clock import Clock
from ottla.core.principal import Principal
from ottla.metadata import framing
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.controller import Controller
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image, MetadataRecord
from ottla.metadata.state import Context, ControllerSettings
from ottla.metadata.versions import KRAFT_VERSION, SUPPORTED_FEATURES
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.control import control_batch
from ottla.protocol.errors import KafkaStorageError, NotController
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.protocol.stored.metadata import NoOpRecord, UserScramCredentialRecord
from ottla.raft.describe import describe_quorum
from ottla.raft.election_state import to_json
from ottla.raft.leader import Leader, lead_alone
from ottla.raft.membership import Address, VoterKey, standalone
from ottla.runtime.flusher import Flusher
from ottla.runtime.metadata_log import (
    QUORUM_STATE,
    MetadataLog,
    format_directories,
    is_formatted,
    open_metadata_log,
    path_in,
)
from ottla.runtime.snapshotter import Snapshotter
from ottla.runtime.threads import to_the_end
from ottla.storage.files import is_of_the_disk, write_atomically
from ottla.storage.log import Origin
from ottla.storage.log_directory import LogDirectory, new_uuid, open_log_directories

# A decision whose records need not stay together is cut into batches of so many.
BATCH_RECORDS: Final = 5_000
# How often to look whether a snapshot or a session is due, if nothing is known to be due earlier.
TICK_MS: Final = 2_000
# When our own timer fires this late, silence of the brokers proves nothing: we did not listen.
LATE_MS: Final = 1_000
# The port Kafka's examples give controllers. A lone node does not listen there: it has nobody to talk to.
CONTROLLER_PORT: Final = 9093

MetadataListener = Callable[[Image, Delta], None]

logger = logging.getLogger("ottla.quorum")


class Home(Protocol):
    """What the node that the quorum runs in has to offer."""

    @property
    def node_id(self) -> int: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def settings(self) -> BrokerSettings: ...
    @property
    def static_properties(self) -> Mapping[str, str]: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def log_directories(self) -> Sequence[LogDirectory]: ...
    @property
    def flushers(self) -> Mapping[LogDirectory, Flusher]: ...
    def die(self, reason: str) -> None: ...


class Caller(Protocol):
    """The client in whose name a request is forwarded: a connection of the server is one."""

    @property
    def principal(self) -> Principal: ...
    @property
    def address(self) -> str: ...


class Appended(NamedTuple):
    """Records that are in the log and not committed yet."""

    records: list[MetadataRecord]
    base_offset: int
    timestamp: int


class Quorum:
    """Made by `open`, which returns once this node leads and the log's past is in `image`."""

    def __init__(self, home: Home, directory: LogDirectory, flusher: Flusher, store: MetadataLog) -> None:
        self.image = store.image
        self.failure: Exception | None = None
        self._home = home
        self._clock = home.clock
        self._directory = directory
        self._flusher = flusher
        self._store = store
        self._log = store.log
        self._membership = store.membership
        self._leader: Leader
        self._controller = Controller(
            _controller_settings(home, store),
            ConfigRules(home.static_properties, home.node_id),
            store.image.copy(),
        )
        self._controller.state.kraft_version = store.membership.kraft_version
        self._snapshotter = Snapshotter(store, home.settings, home.clock)
        self._listeners: list[MetadataListener] = []
        # Bounded by the requests in flight, each of which waits for what it appended.
        self._uncommitted: deque[Appended] = deque()
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._committing: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._owns_directory = directory not in home.log_directories
        self._idle_since_ms = home.clock.monotonic_ms()
        # Kafka writes a record every half second so that brokers can tell how far they are behind. Nobody
        # follows a quorum of one, so it spares the disk unless somebody asked for it.
        is_asked_for = "metadata.max.idle.interval.ms" in home.static_properties
        self._idle_interval_ms = home.settings.metadata_max_idle_interval_ms if is_asked_for else 0

    @classmethod
    async def open(cls, home: Home, first_users: Sequence[UserScramCredentialRecord] = ()) -> Quorum:
        """Open or make the metadata log, become its leader, and write what a leader has to write first.

        The first users are in it if it is made.
        """
        directory, flusher = _metadata_directory(home)
        node = VoterKey(home.node_id, directory.id)
        now_ms = home.clock.wall_ms()
        store = await to_the_end(_load, home, directory, node, now_ms, first_users)
        quorum = cls(home, directory, flusher, store)
        await quorum._lead(node)
        return quorum

    @property
    def kraft_version(self) -> int:
        return self._membership.kraft_version

    @property
    def leader_epoch(self) -> int:
        return self._leader.epoch

    @property
    def high_watermark(self) -> int:
        return self._log.high_watermark

    def finalized_features(self) -> dict[str, int]:
        """What ApiVersions reports: the features of the image, and the one that the quorum keeps itself."""
        features = dict(self.image.features)
        if self.kraft_version:
            features[KRAFT_VERSION] = self.kraft_version
        return features

    def subscribe(self, listener: MetadataListener) -> None:
        """`listener(image, delta)` is called after every commit that changed something, in order."""
        self._listeners.append(listener)

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller, ready to decide."""
        return True

    @property
    def controller_id(self) -> int:
        """Who leads the quorum as far as this node knows, -1 if it does not."""
        return self._home.node_id

    async def caught_up(self) -> None:
        """Return when the image has all that was committed in the cluster when this was called.

        That takes a leader, so it may take as long as there is none. To be called once the controller
        listener is open (others have to reach us to make one), and before the logs of partitions are loaded.
        """
        await self._committed()

    async def submit(
        self, request: Any, version: int, caller: Caller | None = None, *, within: float | None = None
    ) -> Any:
        """The controller's answer to a request, once all that it rests on is committed.

        If another node is the active controller it is asked there: in the name of `caller`, if it is a
        client's request. Raises `NotController` when no controller can be found in time, and
        `KafkaStorageError` when the metadata log has failed.
        """
        self._check_alive()
        if isinstance(request, DescribeQuorumRequest):
            return await self.describe(request, version)
        context = Context(version, self._clock.monotonic_ms(), self._log.end_offset, os.urandom)
        decision = self._controller.decide(request, context)
        self._append(decision.records, atomic=decision.atomic)
        # Also without records: the answer may rest on what another request appended a moment ago.
        await self._committed()
        return decision.response

    # --- requests of other controllers, and of brokers that follow the log ---------------------

    async def vote(self, request: VoteRequest) -> VoteResponse:
        raise NotController("a quorum of one has nobody to vote for")

    async def begin_quorum_epoch(self, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
        raise NotController("a quorum of one has no other leader")

    async def end_quorum_epoch(self, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
        raise NotController("a quorum of one has no other leader")

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Records of the metadata log. Waits up to the request's `max_wait_ms` if there is nothing to say."""
        raise NotController("a quorum of one has no followers")

    async def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        raise NotController("a quorum of one has no followers")

    async def add_voter(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        raise NotController("a quorum of one stays alone")

    async def remove_voter(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        raise NotController("a quorum of one stays alone")

    async def update_voter(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        raise NotController("a quorum of one stays alone")

    async def describe(self, request: DescribeQuorumRequest, version: int) -> DescribeQuorumResponse:
        """As the leader sees the quorum; NOT_LEADER_OR_FOLLOWER in the answer of anybody else."""
        voters = self._membership.voters or []
        return describe_quorum(request, self._leader, voters, version, self._clock.wall_ms())

    async def close(self) -> None:
        """Wait for what is under way, then close the log."""
        for task in (self._ticking, self._committing):
            if task is not None:
                if task is self._ticking:
                    task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        await self._snapshotter.close()
        if self.failure is None:
            await asyncio.to_thread(self._log.close, self._clock.wall_ms())
        if self._owns_directory:
            await self._flusher.close()
            await asyncio.to_thread(self._directory.close)

    # --- leading -------------------------------------------------------------------------

    async def _lead(self, node: VoterKey) -> None:
        epoch = lead_alone(self._store.election, self._store.last_epoch, self._membership, node)
        # On disk before it is acted upon: the next start must not lead in the same epoch again.
        state = to_json(
            epoch.election,
            self.kraft_version,
            self._home.cluster_id,
            self._membership.voter_ids or (node.id,),
        )
        path = f"{self._store.directory}/{QUORUM_STATE}"
        await asyncio.to_thread(write_atomically, self._store.files, path, state)
        self._leader = Leader(node.id, epoch.election.epoch, (node.id,), self._log.end_offset)
        self._write(control_batch(epoch.records, timestamp=self._clock.wall_ms()))
        now_ms = self._clock.monotonic_ms()
        # Our predecessor held the lock on this directory, so it is dead, whatever its session says.
        self._append(self._controller.activate(self._store.bootstrap, now_ms, gone=node.id))
        context = Context(0, now_ms, self._log.end_offset, os.urandom)
        decision = self._controller.decide(_registration(self._home), context)
        self._append(decision.records)
        await self._committed()
        self._ticking = asyncio.get_running_loop().create_task(self._tick())
        logger.info(
            "leading the metadata quorum epoch=%d offset=%d topics=%d",
            self._leader.epoch,
            self._log.end_offset,
            len(self.image.topics),
        )

    async def _tick(self) -> None:
        while self.failure is None:
            before_ms = self._clock.monotonic_ms()
            try:
                wait_ms = self.step()
            except KafkaStorageError:
                if self.failure is not None:
                    return  # the log has failed, and has said so
                wait_ms = TICK_MS
            except Exception as error:
                logger.exception("the controller failed")
                self._fail(error)
                return
            await asyncio.sleep(wait_ms / 1000)
            late_ms = self._clock.monotonic_ms() - before_ms - wait_ms
            if late_ms > LATE_MS:
                self._controller.state.sessions.forgive(late_ms)

    def step(self) -> int:
        """Fence silent brokers and begin a snapshot if that is due; how many milliseconds until the next."""
        now_ms = self._clock.monotonic_ms()
        while records := self._controller.expire(now_ms):
            logger.warning("fencing a broker that was silent for too long")
            self._append(records, atomic=False)
        self._snapshotter.tick(self.image, self._membership)
        wait_ms = TICK_MS
        if self._idle_interval_ms:
            if now_ms - self._idle_since_ms >= self._idle_interval_ms:
                self._append([NoOpRecord()])
            wait_ms = min(wait_ms, self._idle_interval_ms)
        deadline = self._controller.deadline()
        return wait_ms if deadline is None else min(max(deadline - now_ms, 1), wait_ms)

    async def snapshot(self) -> None:
        """Write a snapshot of what is committed, due or not."""
        await self._snapshotter.close()
        await self._snapshotter.write(self.image, self._membership.records())

    # --- appending and committing ----------------------------------------------------------

    def _append(self, records: list[MetadataRecord], *, atomic: bool = True) -> None:
        """Append records and let the controller know of them. They count for others once committed."""
        if not records:
            return
        size = len(records) if atomic else BATCH_RECORDS
        for start in range(0, len(records), size):
            self._append_batch(records[start : start + size])

    def _append_batch(self, records: list[MetadataRecord]) -> None:
        level = self._controller.image.metadata_version
        timestamp = self._clock.wall_ms()
        batch = write_batch(
            [Record(timestamp=timestamp, value=framing.encode(record, level)) for record in records]
        )
        offset = self._write(batch)
        try:
            for number, record in enumerate(records):
                self._controller.apply(record, offset + number)
        except Exception as error:
            # The log has what the image cannot follow. Nothing may be decided on top of that.
            self._fail(error)
            raise
        self._uncommitted.append(Appended(records, offset, timestamp))
        self._idle_since_ms = self._clock.monotonic_ms()

    def _write(self, batch: bytearray) -> int:
        """Append a batch; answers its offset. A log that cannot be written to ends the quorum.

        Only if no more files can be opened it goes on: what could not be appended is just refused, and what
        could is written with its sync.
        """
        try:
            appended = self._log.append(batch, self._leader.epoch, self._clock.wall_ms(), origin=Origin.RAFT)
        except OSError as error:
            raise self._refused(error) from error
        except KafkaStorageError as error:
            raise self._fail(error) from error
        try:
            self._log.write()
        except OSError as error:
            if is_of_the_disk(error):
                raise self._refused(error) from error
        except KafkaStorageError as error:
            raise self._fail(error) from error
        self._snapshotter.count(len(batch))
        if self._committing is None or self._committing.done():
            self._committing = asyncio.get_running_loop().create_task(self._commit())
        return appended.base_offset

    def _refused(self, error: OSError) -> Exception:
        refused = self._directory.fail(error)
        return self._fail(refused) if is_of_the_disk(error) else refused

    async def _committed(self) -> None:
        """Wait until everything that is in the log now is committed."""
        end_offset = self._log.end_offset
        if end_offset > self._log.high_watermark:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((end_offset, waiter))
            await waiter

    async def _commit(self) -> None:
        """Sync and commit until nothing is left. What is appended meanwhile shares the next sync."""
        try:
            while self._log.high_watermark < self._log.end_offset:
                end_offset = self._log.end_offset
                await self._flusher.synced(self._log, end_offset)
                high_watermark = self._leader.persisted(self._leader.node_id, end_offset)
                if high_watermark is not None:
                    self._advance(high_watermark)
        except Exception as error:
            self._fail(error)

    def _advance(self, high_watermark: int) -> None:
        self._log.advance_high_watermark(high_watermark)
        image = self.image
        image.epoch = self._leader.epoch
        while self._uncommitted and self._uncommitted[0].base_offset < high_watermark:
            records, offset, timestamp = self._uncommitted.popleft()
            for number, record in enumerate(records):
                image.apply(record, offset + number)
            self._store.last_timestamp = timestamp
        delta = image.take_delta()
        if delta:
            for listener in self._listeners:
                try:
                    listener(image, delta)
                except Exception:
                    logger.exception("a listener failed on a change of the metadata")
        while self._waiters and self._waiters[0][0] <= high_watermark:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: Exception) -> Exception:
        """The metadata log cannot go on, and neither can this node's part in the cluster."""
        if self.failure is None:
            self.failure = error
            self._home.die(f"the metadata log has failed: {error}")
        while self._waiters:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_exception(KafkaStorageError(f"the metadata log has failed: {self.failure}"))
        return error

    def _check_alive(self) -> None:
        if self.failure is not None:
            raise KafkaStorageError(f"the metadata log has failed: {self.failure}")


def _metadata_directory(home: Home) -> tuple[LogDirectory, Flusher]:
    """Where the metadata log is: one of the log directories, unless metadata.log.dir is one of its own."""
    wanted = Path(home.settings.metadata_dir).resolve()
    for directory in home.log_directories:
        if Path(directory.path).resolve() == wanted:
            return directory, home.flushers[directory]
    own = open_log_directories(
        [str(wanted)], clock=home.clock, node_id=home.node_id, cluster_id=home.cluster_id
    )[0]
    return own, Flusher(own)


def _load(
    home: Home,
    directory: LogDirectory,
    node: VoterKey,
    now_ms: int,
    first_users: Sequence[UserScramCredentialRecord],
) -> MetadataLog:
    if not is_formatted(directory.path):
        paths = [each.path for each in home.log_directories]
        first = standalone(node, _address(home))
        format_directories(paths, directory.path, directory.files, first, now_ms, first_users)
        logger.info("made a new metadata log path=%s cluster_id=%s", path_in(directory.path), home.cluster_id)
    elif first_users:
        logger.info("this cluster is not new: its first users are not added again")
    return open_metadata_log(
        directory.path, directory.files, home.settings, now_ms=now_ms, clean_shutdown=directory.was_clean
    )


def _address(home: Home) -> Address:
    """Where other controllers would find this one."""
    names = home.settings.controller_listener_names
    if home.listeners.controllers:
        listener = home.listeners.controllers[0]
        return Address(listener.name, listener.host or "localhost", listener.port)
    host = home.listeners.clients[0].host if home.listeners.clients else ""
    return Address(names[0] if names else "CONTROLLER", host or "localhost", CONTROLLER_PORT)


def _controller_settings(home: Home, store: MetadataLog) -> ControllerSettings:
    settings = home.settings
    return ControllerSettings(
        node_id=home.node_id,
        cluster_id=home.cluster_id,
        default_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        min_insync_replicas=settings.min_insync_replicas,
        unclean_leader_election_enable=settings.unclean_leader_election_enable,
        delete_topic_enable=settings.delete_topic_enable,
        session_timeout_ms=settings.broker_session_timeout_ms,
        quorum_nodes=store.membership.voter_ids or (home.node_id,),
    )


def _registration(home: Home) -> ControllerRegistrationRequest:
    address = _address(home)
    return ControllerRegistrationRequest(
        controller_id=home.node_id,
        incarnation_id=new_uuid(),
        listeners=[Listener(name=address.name, host=address.host, port=address.port)],
        features=[
            Feature(name=name, min_supported_version=first, max_supported_version=last)
            for name, (first, last) in SUPPORTED_FEATURES.items()
        ],
    )
