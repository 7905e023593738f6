"""Share groups: queues over topics, and the coordinator that keeps their state."""

from __future__ import annotations

from ottla.config.settings import KiB, Kind, MiB, setting, settings


@settings
class ShareGroupSettings:
    """Share groups: queues over topics, and the coordinator that keeps their state."""

    group_share_session_timeout_ms: int = setting(
        45_000, at_least=1, about="A share group member is removed after this long without a heartbeat."
    )
    group_share_min_session_timeout_ms: int = setting(
        45_000, at_least=1, about="The shortest session timeout a share group may be given."
    )
    group_share_max_session_timeout_ms: int = setting(
        60_000, at_least=1, about="The longest session timeout a share group may be given."
    )
    group_share_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, about="How often members of share groups send a heartbeat."
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, about="The shortest heartbeat interval a share group may be given."
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        15_000, at_least=1, about="The longest heartbeat interval a share group may be given."
    )
    group_share_assignment_interval_ms: int = setting(
        1_000, at_least=0, live="cluster", about="The least time between two assignments of a share group."
    )
    group_share_min_assignment_interval_ms: int = setting(
        0, at_least=0, about="The shortest assignment interval a share group may be given."
    )
    group_share_max_assignment_interval_ms: int = setting(
        15_000, at_least=0, about="The longest assignment interval a share group may be given."
    )
    group_share_assignors: tuple[str, ...] = setting(
        ("simple",), may_be_empty=False, about="The assignor of share groups."
    )
    group_share_max_size: int = setting(
        200, at_least=1, at_most=1_000, about="The most members of a share group."
    )
    group_share_delivery_count_limit: int = setting(
        5, at_least=2, at_most=10, about="How often a record is delivered before it is given up."
    )
    group_share_min_delivery_count_limit: int = setting(
        2, at_least=2, at_most=5, about="The smallest delivery limit a share group may be given."
    )
    group_share_max_delivery_count_limit: int = setting(
        10, at_least=5, at_most=25, about="The largest delivery limit a share group may be given."
    )
    group_share_record_lock_duration_ms: int = setting(
        30_000, at_least=1_000, at_most=3_600_000, about="How long a consumer has a record to itself."
    )
    group_share_min_record_lock_duration_ms: int = setting(
        15_000, at_least=1_000, at_most=30_000, about="The shortest lock a share group may be given."
    )
    group_share_max_record_lock_duration_ms: int = setting(
        60_000, at_least=30_000, at_most=3_600_000, about="The longest lock a share group may be given."
    )
    group_share_partition_max_record_locks: int = setting(
        2_000, at_least=100, at_most=10_000, about="Records of one partition that may be locked at once."
    )
    group_share_min_partition_max_record_locks: int = setting(
        100, at_least=100, at_most=2_000, about="The smallest lock limit a share group may be given."
    )
    group_share_max_partition_max_record_locks: int = setting(
        4_000, at_least=2_000, at_most=10_000, about="The largest lock limit a share group may be given."
    )
    group_share_max_share_sessions: int = setting(
        2_000, at_least=1, about="Share sessions kept on this broker."
    )
    group_share_initialize_retry_interval_ms: int = setting(
        30_000,
        at_least=1,
        internal=True,
        about="How long to wait before share partitions are initialised again.",
    )
    group_share_persister_class_name: str = setting(
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
        about="What stores the state of share partitions.",
    )
    share_coordinator_append_linger_ms: int = setting(
        -1,
        at_least=-1,
        about="How long the share coordinator gathers records into one batch; -1 adapts to the load.",
    )
    share_coordinator_cached_buffer_max_bytes: int = setting(
        1_048_588,
        at_least=512 * KiB,
        live="cluster",
        about="The largest write buffer the share coordinator keeps for reuse.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = setting(
        300_000, at_least=1, internal=True, about="How often idle share partitions are written as snapshots."
    )
    share_coordinator_load_buffer_size: int = setting(
        5 * MiB, at_least=1, about="Bytes read at a time when share state is loaded."
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        500, at_least=0, at_most=500, about="Updates written between two snapshots of a share partition."
    )
    share_coordinator_state_topic_compression_codec: int = setting(
        0, about="The codec of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    )
    share_coordinator_state_topic_min_isr: int = setting(
        2, kind=Kind.SHORT, at_least=1, about="The min.insync.replicas of __share_group_state."
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        50, at_least=1, about="Partitions of __share_group_state; not to be changed once it exists."
    )
    share_coordinator_state_topic_prune_interval_ms: int = setting(
        300_000, at_least=1, internal=True, about="How often __share_group_state is trimmed."
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        3, kind=Kind.SHORT, at_least=1, about="Replicas of __share_group_state."
    )
    share_coordinator_state_topic_segment_bytes: int = setting(
        100 * MiB, at_least=1, about="The segment size of __share_group_state."
    )
    share_coordinator_threads: int = setting(
        1, at_least=1, about="Threads of the share coordinator in Apache Kafka."
    )
    share_coordinator_write_timeout_ms: int = setting(
        5_000, at_least=1, about="How long the share coordinator waits for its replicas."
    )
    share_fetch_purgatory_purge_interval_requests: int = setting(
        1_000, about="Apache Kafka's clean-up interval for waiting share fetches."
    )
