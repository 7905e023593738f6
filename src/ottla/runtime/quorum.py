"""A node's part in the metadata quorum: it votes or follows, knows what is committed, finds the controller.

Put together here: the machine and its shell (`raft_shell`), the image of what is committed (`committed`), the
controller while this node leads (`active_controller`), the way to it while another does (`forwarding`).

Everybody speaks to the controller with `submit`, wherever it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from ottla.config.broker import BrokerSettings
from ottla.config.listeners import Listeners
from ottla.core.clock import Clock
from ottla.core.types import CLUSTER_METADATA
from ottla.metadata.config_rules import ConfigRules
from ottla.metadata.controller import Controller
from ottla.metadata.versions import KRAFT_VERSION
from ottla.protocol.errors import (
    InconsistentClusterId,
    KafkaError,
    KafkaStorageError,
    NotController,
    RequestTimedOut,
)
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.protocol.stored.metadata import UserScramCredentialRecord
from ottla.raft.membership import Address, VoterKey
from ottla.runtime.active_controller import TICK_MS, ActiveController
from ottla.runtime.channels import Channels
from ottla.runtime.committed import Committed, MetadataListener
from ottla.runtime.controller_registration import ControllerMembership
from ottla.runtime.flusher import Flusher
from ottla.runtime.forwarding import CLIENTS_S, Caller, Forwarding
from ottla.runtime.metadata_log import MetadataLog
from ottla.runtime.quorum_start import (
    controller_settings,
    is_only_voter,
    load,
    metadata_directory,
    raft_settings,
    voter_ids,
)
from ottla.runtime.raft_shell import RaftShell
from ottla.runtime.snapshotter import Snapshotter
from ottla.runtime.threads import to_the_end
from ottla.storage.log_directory import LogDirectory

T = TypeVar("T")

# When our own timer fires this late, silence of the brokers proves nothing: we did not listen.
LATE_MS: Final = 1_000
# How long this node looks for the controller on its own account.
OWN_S: Final = 30.0
DESCRIBE_VERSION: Final = 2

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
    def channels(self) -> Channels: ...
    @property
    def log_directories(self) -> Sequence[LogDirectory]: ...
    @property
    def flushers(self) -> Mapping[LogDirectory, Flusher]: ...
    def die(self, reason: str) -> None: ...


class Quorum:
    """Made by `open`. The only voter leads when that returns, with the log's past in `image`; any other node
    has to be asked for `caught_up`, once its controller listener is open."""

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
        self._node = VoterKey(home.node_id, directory.id)
        self._active: ActiveController | None = None
        self._snapshotter = Snapshotter(store, home.settings, home.clock)
        self._committed = Committed(store, self._advanced, self._fail)
        self._shell = RaftShell(
            raft_settings(home),
            self._node,
            home.cluster_id,
            store,
            clock=home.clock,
            flusher=flusher,
            channels=home.channels,
            committed=self._committed,
            can_vote=self._is_controller,
            changed=self._changed,
            failed=self._fail,
        )
        self._machine = self._shell.machine
        self._forwarding = Forwarding(home.channels, self._leader_address, self._moved)
        self._registering = ControllerMembership(self, home) if self._is_controller else None
        self._owns_directory = directory not in home.log_directories
        # Whether a broker of this very process has registered.
        self._has_registered = False
        # Whom we followed last; -1 if nobody led since we did.
        self._followed = -1
        # Those who wait for another leader, or for the image to move on.
        self._watchers: set[asyncio.Future[None]] = set()
        self._ticking: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, home: Home, first_users: Sequence[UserScramCredentialRecord] = ()) -> Quorum:
        """Open or make the metadata log and take part in the quorum.

        The first users are in the log if it is made.
        """
        directory, flusher = metadata_directory(home)
        node = VoterKey(home.node_id, directory.id)
        now_ms = home.clock.wall_ms()
        store = await to_the_end(load, home, directory, node, now_ms, first_users)
        quorum = cls(home, directory, flusher, store)
        quorum._shell.start()
        quorum._check_alive()
        if quorum.is_active:
            await quorum.caught_up()
        quorum._schedule_tick(0)
        return quorum

    # --- what is known -------------------------------------------------------------------------

    @property
    def kraft_version(self) -> int:
        return self._membership.kraft_version

    @property
    def leader_epoch(self) -> int:
        return self._machine.epoch

    @property
    def high_watermark(self) -> int:
        """Everything below is committed, and in the image of this node."""
        return self._committed.next_offset

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller, ready to decide."""
        return self._active is not None

    @property
    def controller_id(self) -> int:
        """Who leads the quorum as far as this node knows, -1 if it does not."""
        return self._machine.leader_id

    def finalized_features(self) -> dict[str, int]:
        """What ApiVersions reports: the features of the image, and the one that the quorum keeps itself."""
        features = dict(self.image.features)
        if self.kraft_version:
            features[KRAFT_VERSION] = self.kraft_version
        return features

    def subscribe(self, listener: MetadataListener) -> None:
        """`listener(image, delta)` is called after every commit that changed something, in order."""
        self._committed.subscribe(listener)

    async def caught_up(self) -> None:
        """Return when the image has all that was committed in the cluster when this was called.

        That takes a leader, so it may take as long as there is none.
        """
        topic = TopicData(topic_name=CLUSTER_METADATA, partitions=[PartitionData(partition_index=0)])
        request = DescribeQuorumRequest(topics=[topic])
        while True:
            self._check_alive()
            try:
                if self._active is not None:
                    await self._active.committed()
                    return
                response = await self.submit(request, DESCRIBE_VERSION, within=CLIENTS_S)
                partitions = [each for topic in response.topics for each in topic.partitions]
                if partitions and not partitions[0].error_code and partitions[0].high_watermark >= 0:
                    await self._reached(partitions[0].high_watermark)
                    return
            except (NotController, RequestTimedOut) as error:
                logger.info("waiting for a leader of the metadata quorum reason=%s", error)
            await self._forwarding.pause(attempt=3, remaining=CLIENTS_S)

    # --- asking the controller -----------------------------------------------------------------

    async def submit(
        self, request: Any, version: int, caller: Caller | None = None, *, within: float | None = None
    ) -> Any:
        """The controller's answer to a request, once all that it rests on is committed.

        If another node is the active controller it is asked there: in the name of `caller`, if it is a
        client's request. Raises `NotController` or `RequestTimedOut` when no controller can be found in time,
        and `KafkaStorageError` when the metadata log has failed.
        """
        self._check_alive()
        if isinstance(request, BrokerRegistrationRequest) and request.broker_id == self._home.node_id:
            self._has_registered = True
        if self._active is not None:
            try:
                return await self._submit_here(request, version)
            except NotController:
                if self._is_alone:
                    raise
        within = (OWN_S if caller is None else CLIENTS_S) if within is None else within
        # In a task of its own, since it has timeouts, and who asks may have none (`server.stepping`).
        return await asyncio.get_running_loop().create_task(self._find(request, version, caller, within))

    async def submit_here(self, request: Any, version: int) -> Any:
        """The same for what another node has sent to this one, taking it for the active controller.

        Raises `NotController` if it is not, or ceases to be: whoever sent it looks for the next one.
        """
        self._check_alive()
        if not self.is_active:
            raise NotController("this node is not the active controller")
        return await self._submit_here(request, version)

    async def _find(self, request: Any, version: int, caller: Caller | None, within: float) -> Any:
        """Ask whoever leads, again and again if need be."""
        loop = asyncio.get_running_loop()
        deadline, attempt = loop.time() + within, 0
        while True:
            self._check_alive()
            left = deadline - loop.time()
            try:
                if self._active is not None:
                    return await self._submit_here(request, version)
                return await self._forwarding.ask(request, version, caller, max(left, 0.1))
            except (NotController, RequestTimedOut):
                left = deadline - loop.time()
                if left <= 0:
                    raise
            await self._forwarding.pause(attempt, left)
            attempt += 1

    async def _submit_here(self, request: Any, version: int) -> Any:
        if isinstance(request, DescribeQuorumRequest):
            return await self.describe(request, version)
        assert self._active is not None
        return await self._active.submit(request, version)

    # --- requests of other controllers, and of brokers that follow the log ---------------------

    async def vote(self, request: VoteRequest) -> VoteResponse:
        return self._call(self._machine.vote, request)

    async def begin_quorum_epoch(self, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
        return self._call(self._machine.begin_quorum_epoch, request)

    async def end_quorum_epoch(self, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
        return self._call(self._machine.end_quorum_epoch, request)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Records of the metadata log. Waits up to the request's `max_wait_ms` if there is nothing to say."""
        self._check_alive()
        return await self._shell.fetch(request)

    async def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        return self._call(self._machine.fetch_snapshot, request)

    async def add_voter(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        """Answered when the change is committed, or has failed."""
        self._check_alive()
        return await self._shell.change_voters(self._machine.add_voter, request)

    async def remove_voter(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        """Answered when the change is committed, or has failed."""
        self._check_alive()
        return await self._shell.change_voters(self._machine.remove_voter, request)

    async def update_voter(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        return self._call(self._machine.update_voter, request)

    async def describe(self, request: DescribeQuorumRequest, version: int) -> DescribeQuorumResponse:
        """As the leader sees the quorum; NOT_LEADER_OR_FOLLOWER in the answer of anybody else."""
        self._check_alive()
        now_ms = self._clock.monotonic_ms()
        return self._machine.describe(request, version, now_ms, self._clock.wall_ms())

    def _call(self, method: Callable[[Any, int], T], request: Any) -> T:
        self._check_alive()
        return self._shell.call(method, request, self._clock.monotonic_ms())

    # --- following what happens ----------------------------------------------------------------

    def _changed(self) -> None:
        """Another leader, epoch or high watermark."""
        machine, active = self._machine, self._active
        if machine.leader_id >= 0 and not machine.is_leader:
            self._followed = machine.leader_id
        if active is not None and not (machine.is_leader and machine.epoch == active.epoch):
            self._active = None
            self._committed.expect_nothing()
            logger.info("not the active controller any more epoch=%d", active.epoch)
            active.end(NotController("this node is not the active controller any more"))
        self._activate_if_ready()
        self._wake()

    def _advanced(self) -> None:
        """The image has moved on."""
        if self._active is not None:
            self._active.advanced()
            self._active.controller.state.voters_are(voter_ids(self._home.settings, self._membership))
        self._activate_if_ready()
        if self._registering is not None:
            self._registering.check()
        self._wake()

    def _activate_if_ready(self) -> None:
        """A leader decides once its epoch's first record is committed: then it knows all that was before.

        The only voter knows that from the start, since nobody else can have written anything.
        """
        machine = self._machine
        if self._active is not None or not machine.is_leader or self.failure is not None:
            return
        start = machine.epoch_start_offset
        if self._committed.next_offset > start or (self._committed.next_offset == start and self._is_alone):
            self._activate()

    def _activate(self) -> None:
        home, now_ms = self._home, self._clock.monotonic_ms()
        controller = Controller(
            controller_settings(home, self._membership),
            ConfigRules(home.static_properties, home.node_id),
            self.image.copy(),
        )
        controller.state.kraft_version = self.kraft_version
        active = self._active = ActiveController(
            controller,
            self._shell,
            self._committed,
            self._directory,
            self._clock,
            idle_interval_ms=self._idle_interval_ms,
            failed=self._fail,
        )
        # The predecessor of a broker that did not register yet held the lock on this directory: it
        # is dead, whatever its session says.
        gone = None if self._has_registered else home.node_id
        try:
            active.append(controller.activate(self._store.bootstrap, now_ms, gone=gone))
            controller.missed(self._followed, now_ms)
            self._followed = -1
            if self._registering is not None:
                active.decide(self._registering.request(), 0)
        except NotController:
            return
        if self._ticking is not None:
            self._schedule_tick(0)
        logger.info(
            "leading the metadata quorum epoch=%d offset=%d topics=%d",
            active.epoch,
            self._log.end_offset,
            len(self.image.topics),
        )

    # --- time ----------------------------------------------------------------------------------

    def step(self) -> int:
        """Fence silent brokers and begin a snapshot if that is due; how many milliseconds until the next."""
        wait_ms = TICK_MS if self._active is None else self._active.step()
        self._snapshotter.tick(self.image, self._membership)
        return wait_ms

    def missed(self, broker_id: int, broker_epoch: int) -> None:
        """The connection broke on which a broker's heartbeats came."""
        if self._active is not None and self._ticking is not None:
            self._active.controller.missed(broker_id, self._clock.monotonic_ms(), broker_epoch)
            self._schedule_tick(0)

    async def snapshot(self) -> None:
        """Write a snapshot of what is committed, due or not."""
        await self._snapshotter.close()
        await self._snapshotter.write(self.image, self._membership)

    def _tick(self, due_ms: int | None = None) -> None:
        if self.failure is not None:
            return
        late_ms = 0 if due_ms is None else self._clock.monotonic_ms() - due_ms
        if late_ms > LATE_MS and self._active is not None:
            self._active.controller.state.sessions.forgive(late_ms)
        try:
            wait_ms = self.step()
        except (KafkaStorageError, NotController):
            wait_ms = TICK_MS  # if the log has failed, that has been said
        except Exception as error:
            logger.exception("the controller failed")
            self._fail(error)
            return
        self._schedule_tick(wait_ms)

    def _schedule_tick(self, wait_ms: int) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        due_ms = self._clock.monotonic_ms() + wait_ms
        loop = asyncio.get_running_loop()
        self._ticking = loop.call_later(wait_ms / 1000, self._tick, due_ms)

    # --- the end -------------------------------------------------------------------------------

    async def close(self) -> None:
        """Give up the leadership, wait for what is under way, then close the log."""
        self.abandon(stop_machine=False)
        if self._registering is not None:
            await self._registering.close()
        if self._active is not None and self._is_alone:
            with suppress(KafkaError):
                await self._active.committed()
        if self.failure is None:
            await self._shell.close(resign=not self._is_alone)
        active, self._active = self._active, None
        if active is not None:
            active.end(NotController("this node is stopping"))
        await self._snapshotter.close()
        if self.failure is None:
            await asyncio.to_thread(self._log.close, self._clock.wall_ms())
        if self._owns_directory:
            await self._flusher.close()
            await asyncio.to_thread(self._directory.close)

    def abandon(self, *, stop_machine: bool = True) -> None:
        """Do nothing any more by the clock, nor, with the machine stopped, for any other reason."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        if stop_machine:
            self._shell.stop()

    def _fail(self, error: Exception) -> Exception:
        """The metadata log cannot go on, and neither can this node's part in the cluster."""
        if self.failure is None:
            self.failure = error
            self._shell.stop()
            self._home.die(str(self._reason()))
        active, self._active = self._active, None
        if active is not None:
            active.end(self._reason())
        self._wake()
        return error

    def _check_alive(self) -> None:
        if self.failure is not None:
            raise self._reason()

    def _reason(self) -> KafkaError:
        if isinstance(self.failure, InconsistentClusterId):
            return InconsistentClusterId(str(self.failure))
        return KafkaStorageError(f"the metadata log has failed: {self.failure}")

    # --- details -------------------------------------------------------------------------------

    @property
    def _is_controller(self) -> bool:
        return "controller" in self._home.settings.process_roles

    @property
    def _is_alone(self) -> bool:
        return is_only_voter(self._home.settings, self._membership, self._node)

    @property
    def _idle_interval_ms(self) -> int:
        """Kafka writes a record every half second so that brokers can tell how far they are behind. Nobody
        follows a quorum of one, so it spares the disk unless somebody asked for it."""
        is_asked_for = "metadata.max.idle.interval.ms" in self._home.static_properties
        others = self._is_alone and set(self.image.brokers) <= {self._home.node_id}
        return self._home.settings.metadata_max_idle_interval_ms if is_asked_for or not others else 0

    def _leader_address(self) -> Address | None:
        return self._machine.leader_address

    async def _moved(self) -> None:
        """Wait until there may be another leader, or the image has moved on."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.add(change)
        try:
            await change
        finally:
            self._watchers.discard(change)

    async def _reached(self, offset: int) -> None:
        while self._committed.next_offset < offset:
            self._check_alive()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._moved()

    def _wake(self) -> None:
        for change in self._watchers:
            if not change.done():
                change.set_result(None)
