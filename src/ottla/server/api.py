"""Which APIs this broker serves, and in which versions: one table.

A handler lives in `server/handlers/<name>.py` as a function of the same name, its messages in
`protocol/messages/<name>.py`. Both are imported when the first client asks for them, so that starting a
broker does not pay for the forty APIs nobody has called yet. ApiVersions answers from this table.

Brokers and controllers listen apart, and serve different things there. What controllers answer in another way
than brokers do is in `server/handlers/controllers`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

FETCH: Final = 1
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
DESCRIBE_CLUSTER: Final = 60


# On whose listeners.
BROKER: Final = 1
CONTROLLER: Final = 2
BOTH: Final = BROKER | CONTROLLER
# What a controller answers in its own way.
OTHERWISE: Final = (FETCH, DESCRIBE_CLUSTER)


class Served(NamedTuple):
    key: int
    name: str
    first: int
    last: int
    listeners: int = BROKER
    package: str = "ottla.server.handlers"

    def handler(self) -> Any:
        return getattr(import_module(f"{self.package}.{self.name}"), self.name)


ROWS: Final = (
    Served(0, "produce", 0, 13),
    Served(FETCH, "fetch", 0, 18, BOTH),
    Served(2, "list_offsets", 0, 11),
    Served(3, "metadata", 0, 13),
    Served(8, "offset_commit", 0, 10),
    Served(9, "offset_fetch", 0, 10),
    Served(10, "find_coordinator", 0, 6),
    Served(11, "join_group", 0, 9),
    Served(12, "heartbeat", 0, 4),
    Served(13, "leave_group", 0, 5),
    Served(14, "sync_group", 0, 5),
    Served(15, "describe_groups", 0, 6),
    Served(16, "list_groups", 0, 5),
    Served(SASL_HANDSHAKE, "sasl_handshake", 0, 1, BOTH),
    Served(API_VERSIONS, "api_versions", 0, 4, BOTH),
    Served(19, "create_topics", 0, 7, BOTH),
    Served(20, "delete_topics", 0, 6, BOTH),
    Served(21, "delete_records", 0, 2),
    Served(22, "init_producer_id", 0, 5),  # 6 is unstable in Kafka 4.3 (two-phase commit, KIP-939)
    Served(23, "offset_for_leader_epoch", 0, 4),
    Served(24, "add_partitions_to_txn", 0, 5),
    Served(25, "add_offsets_to_txn", 0, 4),
    Served(26, "end_txn", 0, 5),
    Served(27, "write_txn_markers", 0, 2),
    Served(28, "txn_offset_commit", 0, 5),
    Served(29, "describe_acls", 0, 3, BOTH),
    Served(30, "create_acls", 0, 3, BOTH),
    Served(31, "delete_acls", 0, 3, BOTH),
    Served(32, "describe_configs", 0, 4, BOTH),
    Served(33, "alter_configs", 0, 2, BOTH),
    Served(35, "describe_log_dirs", 0, 5),
    Served(SASL_AUTHENTICATE, "sasl_authenticate", 0, 2, BOTH),
    Served(37, "create_partitions", 0, 3, BOTH),
    Served(42, "delete_groups", 0, 2),
    Served(43, "elect_leaders", 0, 2, BOTH),
    Served(44, "incremental_alter_configs", 0, 1, BOTH),
    Served(45, "alter_partition_reassignments", 0, 1, BOTH),
    Served(46, "list_partition_reassignments", 0, 0, BOTH),
    Served(47, "offset_delete", 0, 0),
    Served(48, "describe_client_quotas", 0, 1),
    Served(50, "describe_user_scram_credentials", 0, 0, BOTH),
    Served(51, "alter_user_scram_credentials", 0, 0, BOTH),
    Served(52, "vote", 0, 2, CONTROLLER),
    Served(53, "begin_quorum_epoch", 0, 1, CONTROLLER),
    Served(54, "end_quorum_epoch", 0, 1, CONTROLLER),
    Served(55, "describe_quorum", 0, 2, BOTH),
    Served(56, "alter_partition", 0, 3, CONTROLLER),
    Served(57, "update_features", 0, 2, BOTH),
    Served(58, "envelope", 0, 0, CONTROLLER),
    Served(59, "fetch_snapshot", 0, 1, CONTROLLER),
    Served(DESCRIBE_CLUSTER, "describe_cluster", 0, 2, BOTH),
    Served(61, "describe_producers", 0, 0),
    Served(62, "broker_registration", 0, 4, CONTROLLER),
    Served(63, "broker_heartbeat", 0, 2, CONTROLLER),
    Served(64, "unregister_broker", 0, 0, BOTH),
    Served(65, "describe_transactions", 0, 0),
    Served(66, "list_transactions", 0, 2),
    Served(67, "allocate_producer_ids", 0, 0, CONTROLLER),
    Served(68, "consumer_group_heartbeat", 0, 1),
    Served(69, "consumer_group_describe", 0, 1),
    Served(70, "controller_registration", 0, 0, CONTROLLER),
    Served(73, "assign_replicas_to_dirs", 0, 0, CONTROLLER),
    Served(74, "list_config_resources", 0, 1),
    Served(75, "describe_topic_partitions", 0, 0),
    Served(76, "share_group_heartbeat", 1, 1),  # the versions 0 of share groups were for early access
    Served(77, "share_group_describe", 1, 1),
    Served(78, "share_fetch", 1, 2),
    Served(79, "share_acknowledge", 1, 2),
    Served(80, "add_raft_voter", 0, 1, BOTH),
    Served(81, "remove_raft_voter", 0, 0, BOTH),
    Served(82, "update_raft_voter", 0, 0, CONTROLLER),
    Served(83, "initialize_share_group_state", 0, 0),
    Served(84, "read_share_group_state", 0, 0),
    Served(85, "write_share_group_state", 0, 1),
    Served(86, "delete_share_group_state", 0, 0),
    Served(87, "read_share_group_state_summary", 0, 1),
    Served(90, "describe_share_group_offsets", 0, 1),
    Served(91, "alter_share_group_offsets", 0, 0),
    Served(92, "delete_share_group_offsets", 0, 0),
)

# What a listener for clients serves, and what one for controllers does.
SERVED: Final = {row.key: row for row in ROWS if row.listeners & BROKER}
SERVED_TO_CONTROLLERS: Final = {
    row.key: row._replace(package="ottla.server.handlers.controllers") if row.key in OTHERWISE else row
    for row in ROWS
    if row.listeners & CONTROLLER
}
