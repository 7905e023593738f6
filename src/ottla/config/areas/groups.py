"""Consumer groups, classic and new, and the offsets they commit."""

from __future__ import annotations

from ottla.config.settings import INT_MAX, KiB, Kind, MiB, setting, settings


@settings
class GroupCoordinatorSettings:
    """Consumer groups, classic and new, and the offsets they commit."""

    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        ("classic", "consumer", "streams"),
        choices=("consumer", "classic", "share", "streams"),
        may_be_empty=False,
        about="The group protocols served.",
    )
    group_coordinator_threads: int = setting(
        4, at_least=1, about="Threads of the group coordinator in Apache Kafka."
    )
    group_coordinator_background_threads: int = setting(
        2, at_least=1, about="Threads that compute assignments in Apache Kafka."
    )
    group_coordinator_append_linger_ms: int = setting(
        -1,
        at_least=-1,
        about="How long the coordinator gathers records into one batch; -1 adapts to the load.",
    )
    group_coordinator_cached_buffer_max_bytes: int = setting(
        1_048_588,
        at_least=512 * KiB,
        live="cluster",
        about="The largest write buffer the coordinator keeps for reuse.",
    )
    group_min_session_timeout_ms: int = setting(
        6_000, about="The shortest session timeout a classic member may ask for."
    )
    group_max_session_timeout_ms: int = setting(
        1_800_000, about="The longest session timeout a classic member may ask for."
    )
    group_initial_rebalance_delay_ms: int = setting(
        3_000, about="How long an empty classic group waits for more members before its first rebalance."
    )
    group_max_size: int = setting(INT_MAX, at_least=1, about="The most members of a classic group.")
    group_consumer_session_timeout_ms: int = setting(
        45_000, at_least=1, about="A consumer group member is removed after this long without a heartbeat."
    )
    group_consumer_min_session_timeout_ms: int = setting(
        45_000, at_least=1, about="The shortest session timeout a consumer group may be given."
    )
    group_consumer_max_session_timeout_ms: int = setting(
        60_000, at_least=1, about="The longest session timeout a consumer group may be given."
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, about="How often members of consumer groups send a heartbeat."
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, about="The shortest heartbeat interval a consumer group may be given."
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        15_000, at_least=1, about="The longest heartbeat interval a consumer group may be given."
    )
    group_consumer_assignment_interval_ms: int = setting(
        1_000, at_least=0, live="cluster", about="The least time between two assignments of a consumer group."
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        0, at_least=0, about="The shortest assignment interval a consumer group may be given."
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        15_000, at_least=0, about="The longest assignment interval a consumer group may be given."
    )
    group_consumer_max_size: int = setting(INT_MAX, at_least=1, about="The most members of a consumer group.")
    group_consumer_assignors: tuple[str, ...] = setting(
        ("uniform", "range"),
        may_be_empty=False,
        about="The assignors offered to consumer groups; the first is the default.",
    )
    group_consumer_migration_policy: str = setting(
        "bidirectional",
        choices=("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        any_case=True,
        about="Which way a group may change between the classic and the consumer protocol.",
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        600_000,
        at_least=10_000,
        internal=True,
        about="How often subscribed patterns are matched against the topics again.",
    )
    group_streams_session_timeout_ms: int = setting(
        45_000, at_least=1, about="A streams group member is removed after this long without a heartbeat."
    )
    group_streams_min_session_timeout_ms: int = setting(
        45_000, at_least=1, about="The shortest session timeout a streams group may be given."
    )
    group_streams_max_session_timeout_ms: int = setting(
        60_000, at_least=1, about="The longest session timeout a streams group may be given."
    )
    group_streams_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, about="How often members of streams groups send a heartbeat."
    )
    group_streams_min_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, about="The shortest heartbeat interval a streams group may be given."
    )
    group_streams_max_heartbeat_interval_ms: int = setting(
        15_000, at_least=1, about="The longest heartbeat interval a streams group may be given."
    )
    group_streams_assignment_interval_ms: int = setting(
        1_000, at_least=0, live="cluster", about="The least time between two assignments of a streams group."
    )
    group_streams_min_assignment_interval_ms: int = setting(
        0, at_least=0, about="The shortest assignment interval a streams group may be given."
    )
    group_streams_max_assignment_interval_ms: int = setting(
        15_000, at_least=0, about="The longest assignment interval a streams group may be given."
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        3_000,
        at_least=0,
        about="How long a new streams group waits for more members before its first assignment.",
    )
    group_streams_max_size: int = setting(INT_MAX, at_least=1, about="The most members of a streams group.")
    group_streams_num_standby_replicas: int = setting(
        0, at_least=0, about="Standby copies of each task of a streams group."
    )
    group_streams_max_standby_replicas: int = setting(
        2, at_least=0, about="The most standby copies a streams group may be given."
    )
    offset_metadata_max_bytes: int = setting(
        4 * KiB, about="The longest metadata a committed offset may carry."
    )
    offsets_commit_timeout_ms: int = setting(
        5_000, at_least=1, about="How long an offset commit waits for its replicas."
    )
    offsets_load_buffer_size: int = setting(
        5 * MiB, at_least=1, about="Bytes read at a time when committed offsets are loaded."
    )
    offsets_retention_minutes: int = setting(
        10_080, at_least=1, about="Keep the offsets of an empty group this long."
    )
    offsets_retention_check_interval_ms: int = setting(
        600_000, kind=Kind.LONG, at_least=1, about="How often to look for expired offsets."
    )
    offsets_topic_num_partitions: int = setting(
        50, at_least=1, about="Partitions of __consumer_offsets; not to be changed once it exists."
    )
    offsets_topic_replication_factor: int = setting(
        3, kind=Kind.SHORT, at_least=1, about="Replicas of __consumer_offsets."
    )
    offsets_topic_segment_bytes: int = setting(
        100 * MiB, at_least=1, about="The segment size of __consumer_offsets."
    )
    offsets_topic_compression_codec: int = setting(
        0, about="The codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    )
