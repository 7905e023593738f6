"""Which APIs this broker serves, and in which versions: one table.

A handler lives in `server/handlers/<name>.py` as a function of the same name, its messages in
`protocol/messages/<name>.py`. Both are imported when the first client asks for them, so that starting a
broker does not pay for the forty APIs nobody has called yet. ApiVersions answers from this table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36


class Served(NamedTuple):
    key: int
    name: str
    first: int
    last: int


SERVED = {
    row.key: row
    for row in (
        Served(0, "produce", 0, 13),
        Served(1, "fetch", 0, 18),
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
        Served(SASL_HANDSHAKE, "sasl_handshake", 0, 1),
        Served(API_VERSIONS, "api_versions", 0, 4),
        Served(19, "create_topics", 0, 7),
        Served(20, "delete_topics", 0, 6),
        Served(21, "delete_records", 0, 2),
        Served(22, "init_producer_id", 0, 5),  # 6 is unstable in Kafka 4.3 (two-phase commit, KIP-939)
        Served(23, "offset_for_leader_epoch", 0, 4),
        Served(24, "add_partitions_to_txn", 0, 5),
        Served(25, "add_offsets_to_txn", 0, 4),
        Served(26, "end_txn", 0, 5),
        Served(27, "write_txn_markers", 0, 2),
        Served(28, "txn_offset_commit", 0, 5),
        Served(29, "describe_acls", 0, 3),
        Served(30, "create_acls", 0, 3),
        Served(31, "delete_acls", 0, 3),
        Served(32, "describe_configs", 0, 4),
        Served(33, "alter_configs", 0, 2),
        Served(35, "describe_log_dirs", 0, 5),
        Served(SASL_AUTHENTICATE, "sasl_authenticate", 0, 2),
        Served(37, "create_partitions", 0, 3),
        Served(42, "delete_groups", 0, 2),
        Served(43, "elect_leaders", 0, 2),
        Served(44, "incremental_alter_configs", 0, 1),
        Served(45, "alter_partition_reassignments", 0, 1),
        Served(46, "list_partition_reassignments", 0, 0),
        Served(47, "offset_delete", 0, 0),
        Served(48, "describe_client_quotas", 0, 1),
        Served(50, "describe_user_scram_credentials", 0, 0),
        Served(51, "alter_user_scram_credentials", 0, 0),
        Served(55, "describe_quorum", 0, 2),
        Served(57, "update_features", 0, 2),
        Served(60, "describe_cluster", 0, 2),
        Served(61, "describe_producers", 0, 0),
        Served(64, "unregister_broker", 0, 0),
        Served(65, "describe_transactions", 0, 0),
        Served(66, "list_transactions", 0, 2),
        Served(68, "consumer_group_heartbeat", 0, 1),
        Served(69, "consumer_group_describe", 0, 1),
        Served(74, "list_config_resources", 0, 1),
        Served(75, "describe_topic_partitions", 0, 0),
        Served(76, "share_group_heartbeat", 1, 1),  # the versions 0 of share groups were for early access
        Served(77, "share_group_describe", 1, 1),
        Served(78, "share_fetch", 1, 2),
        Served(79, "share_acknowledge", 1, 2),
        Served(83, "initialize_share_group_state", 0, 0),
        Served(84, "read_share_group_state", 0, 0),
        Served(85, "write_share_group_state", 0, 1),
        Served(86, "delete_share_group_state", 0, 0),
        Served(87, "read_share_group_state_summary", 0, 1),
        Served(90, "describe_share_group_offsets", 0, 1),
        Served(91, "alter_share_group_offsets", 0, 0),
        Served(92, "delete_share_group_offsets", 0, 0),
    )
}
