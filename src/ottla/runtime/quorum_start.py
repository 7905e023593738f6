"""What a quorum starts from: where its log is, who its voters are, what a directory that has none is given.

A node that is alone makes a quorum of itself (kraft.version 1, as `kafka-storage format --standalone` does).
Where `controller.quorum.voters` names several, the log begins without voters (kraft.version 0), and so it
does on nodes that have to learn them from others. What was formatted before stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.config.broker import BrokerSettings
from ottla.core.ids import Uuid
from ottla.metadata.state import ControllerSettings
from ottla.protocol.stored.metadata import UserScramCredentialRecord
from ottla.raft.membership import Address, Membership, VoterKey, standalone
from ottla.raft.settings import RaftSettings
from ottla.runtime.flusher import Flusher
from ottla.runtime.metadata_log import (
    MetadataLog,
    format_directories,
    is_formatted,
    open_metadata_log,
    path_in,
)
from ottla.storage.log_directory import LogDirectory, open_log_directories
from ottla.storage.meta_properties import read_meta_properties

if TYPE_CHECKING:
    from ottla.runtime.quorum import Home

# The port Kafka's examples give controllers. A lone node does not listen there: it has nobody to talk to.
CONTROLLER_PORT: Final = 9093
# A broker whose connection broke and that does not come back for so many heartbeats is taken for dead.
MISSED_HEARTBEATS: Final = 2
LEAST_MISSED_MS: Final = 300
CLUSTER_ID: Final = "ottla.cluster.id"

logger = logging.getLogger("ottla.quorum")


def first_cluster_id(settings: BrokerSettings, properties: Mapping[str, str]) -> str | None:
    """The cluster that directories without identity belong to; None if they may make up a new one.

    All nodes of a cluster have to come to the same id by themselves, if nobody has formatted their
    directories: it is given, or it follows from the voters, which all of them are given alike.
    """
    directories = {*settings.data_dirs, settings.metadata_dir}
    if any(read_meta_properties(str(Path(each).resolve())) is not None for each in directories):
        return None
    if given := properties.get(CLUSTER_ID, "").strip():
        return given
    voters = sorted(settings.controller_quorum_voters)
    if len(voters) < 2 and {"broker", "controller"} <= set(settings.process_roles):
        return None
    named = voters or sorted(settings.controller_quorum_bootstrap_servers)
    return str(_id_from(",".join(named))) if named else None


def metadata_directory(home: Home) -> tuple[LogDirectory, Flusher]:
    """Where the metadata log is: one of the log directories, unless metadata.log.dir is one of its own."""
    wanted = Path(home.settings.metadata_dir).resolve()
    for directory in home.log_directories:
        if Path(directory.path).resolve() == wanted:
            return directory, home.flushers[directory]
    own = open_log_directories(
        [str(wanted)], clock=home.clock, node_id=home.node_id, cluster_id=home.cluster_id
    )[0]
    return own, Flusher(own)


def load(
    home: Home,
    directory: LogDirectory,
    node: VoterKey,
    now_ms: int,
    first_users: Sequence[UserScramCredentialRecord],
) -> MetadataLog:
    """The metadata log, made if there is none. Belongs in a thread."""
    settings = home.settings
    if not is_formatted(directory.path):
        paths = [each.path for each in home.log_directories]
        first = standalone(node, controller_address(home)) if _begins_alone(home) else None
        format_directories(paths, directory.path, directory.files, first, now_ms, first_users)
        logger.info("made a new metadata log path=%s cluster_id=%s", path_in(directory.path), home.cluster_id)
    elif first_users:
        logger.info("this cluster is not new: its first users are not added again")
    return open_metadata_log(
        directory.path,
        directory.files,
        settings,
        now_ms=now_ms,
        clean_shutdown=directory.was_clean,
        is_alone=lambda membership: is_only_voter(settings, membership, node),
    )


def raft_settings(home: Home) -> RaftSettings:
    endpoints = [controller_address(home)] if "controller" in home.settings.process_roles else []
    return RaftSettings.of(home.settings, endpoints)


def voter_ids(settings: BrokerSettings, membership: Membership) -> tuple[int, ...]:
    """Who votes: by the log or, if that does not say, by the configuration; alone if neither does."""
    return membership.voter_ids or _static_voters(settings) or (settings.node_id,)


def is_only_voter(settings: BrokerSettings, membership: Membership, node: VoterKey) -> bool:
    if "controller" not in settings.process_roles or voter_ids(settings, membership) != (node.id,):
        return False
    # The same node with another disk is another voter.
    return all(voter.voter_directory_id == node.directory_id for voter in membership.voters or ())


def controller_settings(home: Home, membership: Membership) -> ControllerSettings:
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
        missed_ms=max(MISSED_HEARTBEATS * settings.broker_heartbeat_interval_ms, LEAST_MISSED_MS),
        quorum_nodes=voter_ids(settings, membership),
        balances_leaders=settings.auto_leader_rebalance_enable,
        imbalance_check_interval_ms=settings.leader_imbalance_check_interval_seconds * 1000,
        unclean_election_interval_ms=settings.unclean_leader_election_interval_ms,
    )


def controller_address(home: Home) -> Address:
    """Where other controllers and brokers find this controller."""
    names = home.settings.controller_listener_names
    if home.listeners.controllers:
        listener = home.listeners.controllers[0]
        advertised = home.listeners.advertised.get(listener.name, listener)
        return Address(listener.name, advertised.host or "localhost", advertised.port)
    host = home.listeners.clients[0].host if home.listeners.clients else ""
    return Address(names[0] if names else "CONTROLLER", host or "localhost", CONTROLLER_PORT)


def _id_from(text: str) -> Uuid:
    """An id that looks as if it were random, and is always the same."""
    import hashlib  # a node that is alone never needs it

    while True:
        digest = hashlib.sha256(text.encode()).digest()
        made = Uuid.from_random(digest[:16])
        if made.is_usable:
            return made
        text = digest.hex()


def _begins_alone(home: Home) -> bool:
    """Whether a new log is that of a new cluster with one voter, rather than a part of somebody's cluster."""
    settings = home.settings
    if "controller" not in settings.process_roles or len(settings.controller_quorum_voters) > 1:
        return False
    own = controller_address(home)
    servers = settings.controller_quorum_bootstrap_servers
    return not servers or list(servers) in ([f"{own.host}:{own.port}"], [f"localhost:{own.port}"])


def _static_voters(settings: BrokerSettings) -> tuple[int, ...]:
    return tuple(int(voter.partition("@")[0]) for voter in settings.controller_quorum_voters)
