"""Tiered storage: older segments in an object store."""

from __future__ import annotations

from ottla.config.settings import LONG_MAX, GiB, Kind, setting, settings


@settings
class RemoteLogSettings:
    """Tiered storage: older segments in an object store."""

    remote_log_storage_system_enable: bool = setting(False, about="Switch tiered storage on.")
    remote_log_storage_manager_class_name: str | None = setting(
        None, may_be_empty=False, about="What stores segments remotely."
    )
    remote_log_storage_manager_class_path: str | None = setting(
        None, about="Where that class is loaded from."
    )
    remote_log_storage_manager_impl_prefix: str = setting(
        "rsm.config.", may_be_empty=False, about="The prefix of the properties passed to it."
    )
    remote_log_metadata_manager_class_name: str = setting(
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        may_be_empty=False,
        about="What keeps track of remote segments.",
    )
    remote_log_metadata_manager_class_path: str | None = setting(
        None, about="Where that class is loaded from."
    )
    remote_log_metadata_manager_impl_prefix: str = setting(
        "rlmm.config.", may_be_empty=False, about="The prefix of the properties passed to it."
    )
    remote_log_metadata_manager_listener_name: str | None = setting(
        None, may_be_empty=False, about="The listener through which it reaches the cluster."
    )
    remote_log_metadata_custom_metadata_max_bytes: int = setting(
        128, at_least=0, about="The most a remote store may keep about a segment."
    )
    remote_log_index_file_cache_total_size_bytes: int = setting(
        1 * GiB,
        kind=Kind.LONG,
        at_least=1,
        live="cluster",
        about="Disk for indexes fetched from the remote store.",
    )
    remote_log_index_file_cache_ttl_ms: int = setting(
        900_000,
        kind=Kind.LONG,
        at_least=-1,
        internal=True,
        about="Drop a fetched index that was not used for this long; -1 for never.",
    )
    remote_log_manager_thread_pool_size: int = setting(
        2, at_least=1, about="Threads for tiered storage tasks."
    )
    remote_log_manager_copier_thread_pool_size: int = setting(
        10, at_least=1, live="cluster", about="Threads that copy segments to the remote store."
    )
    remote_log_manager_expiration_thread_pool_size: int = setting(
        10, at_least=1, live="cluster", about="Threads that delete expired remote segments."
    )
    remote_log_manager_follower_thread_pool_size: int = setting(
        2, at_least=1, live="cluster", about="Threads that follow remote metadata for follower partitions."
    )
    remote_log_manager_task_interval_ms: int = setting(
        30_000, kind=Kind.LONG, at_least=1, about="How often each partition's tiered storage task runs."
    )
    remote_log_manager_task_retry_backoff_ms: int = setting(
        500, kind=Kind.LONG, at_least=1, internal=True, about="The first pause after a failed task."
    )
    remote_log_manager_task_retry_backoff_max_ms: int = setting(
        30_000, kind=Kind.LONG, at_least=1, internal=True, about="The longest pause after failed tasks."
    )
    remote_log_manager_task_retry_jitter: float = setting(
        0.2, at_least=0, at_most=0.5, internal=True, about="How much that pause varies."
    )
    remote_log_manager_copy_max_bytes_per_second: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        live="cluster",
        about="The most copied to the remote store per second.",
    )
    remote_log_manager_copy_quota_window_num: int = setting(
        11, at_least=1, about="Windows kept for the copy quota."
    )
    remote_log_manager_copy_quota_window_size_seconds: int = setting(
        1, at_least=1, about="The length of a copy quota window."
    )
    remote_log_manager_fetch_max_bytes_per_second: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        live="cluster",
        about="The most fetched from the remote store per second.",
    )
    remote_log_manager_fetch_quota_window_num: int = setting(
        11, at_least=1, about="Windows kept for the fetch quota."
    )
    remote_log_manager_fetch_quota_window_size_seconds: int = setting(
        1, at_least=1, about="The length of a fetch quota window."
    )
    remote_log_reader_threads: int = setting(
        10, at_least=1, live="cluster", about="Threads that read from the remote store for fetches."
    )
    remote_log_reader_max_pending_tasks: int = setting(
        100, at_least=1, about="Remote reads that may wait before more are refused."
    )
    remote_fetch_max_wait_ms: int = setting(
        500, at_least=1, live="cluster", about="How long a fetch waits for the remote store."
    )
    remote_list_offsets_request_timeout_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        at_least=1,
        live="cluster",
        about="How long ListOffsets waits for the remote store.",
    )
    log_local_retention_bytes: int = setting(
        -2,
        kind=Kind.LONG,
        at_least=-2,
        live="cluster",
        about="Keep at most this much of a tiered partition locally; -2 for log.retention.bytes.",
    )
    log_local_retention_ms: int = setting(
        -2,
        kind=Kind.LONG,
        at_least=-2,
        live="cluster",
        about="Keep a tiered partition's records locally this long; -2 for log.retention.ms.",
    )
