"""Where the logs are, and the defaults of rolling, retention, flushing and compaction."""

from __future__ import annotations

import sys

from ottla.config.settings import LONG_MAX, GiB, KiB, Kind, MiB, setting, settings


@settings
class LogSettings:
    """Where the logs are, and the defaults of rolling, retention, flushing and compaction."""

    log_dir: tuple[str, ...] = setting(
        ("/tmp/kafka-logs",), may_be_empty=False, about="One data directory; log.dirs goes before it."
    )
    log_dirs: tuple[str, ...] | None = setting(
        None, may_be_empty=False, about="The data directories, separated by commas."
    )
    cordoned_log_dirs: tuple[str, ...] = setting(
        (), live="broker", about="Data directories that get no new partitions; * for all of them."
    )
    log_dir_failure_timeout_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        at_least=1,
        about="Stop when the controller could not be told of a failed data directory for this long.",
    )
    log_initial_task_delay_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        at_least=0,
        internal=True,
        about="How long after the start the first retention, flush and clean-up tasks run.",
    )
    log_segment_bytes: int = setting(
        1 * GiB, at_least=1 * MiB, live="cluster", about="Roll a segment at this size."
    )
    log_roll_ms: int | None = setting(
        None,
        kind=Kind.LONG,
        live="cluster",
        synonyms=("log.roll.ms", "log.roll.hours"),
        about="Roll a segment at this age.",
    )
    log_roll_hours: int = setting(
        168,
        at_least=1,
        synonyms=("log.roll.ms", "log.roll.hours"),
        about="Roll a segment at this age, when log.roll.ms is not given.",
    )
    log_roll_jitter_ms: int | None = setting(
        None,
        kind=Kind.LONG,
        live="cluster",
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        about="Spread the rolling by up to this much.",
    )
    log_roll_jitter_hours: int = setting(
        0,
        at_least=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        about="Spread the rolling by up to this much, when log.roll.jitter.ms is not given.",
    )
    log_retention_ms: int | None = setting(
        None,
        kind=Kind.LONG,
        live="cluster",
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        about="Keep records this long; -1 for ever.",
    )
    log_retention_minutes: int | None = setting(
        None,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        about="Keep records this long, when log.retention.ms is not given.",
    )
    log_retention_hours: int = setting(
        168,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        about="Keep records this long, when neither log.retention.ms nor log.retention.minutes is given.",
    )
    log_retention_bytes: int = setting(
        -1, kind=Kind.LONG, live="cluster", about="Keep at most this much of a partition; -1 for no limit."
    )
    log_retention_check_interval_ms: int = setting(
        300_000, kind=Kind.LONG, at_least=1, about="How often to look for segments to delete."
    )
    log_cleanup_policy: tuple[str, ...] = setting(
        ("delete",),
        choices=("compact", "delete"),
        live="cluster",
        about="What happens to old segments: delete, compact, both, or nothing.",
    )
    log_segment_delete_delay_ms: int = setting(
        60_000, kind=Kind.LONG, at_least=0, live="cluster", about="How long a deleted file stays on disk."
    )
    log_index_size_max_bytes: int = setting(
        10 * MiB,
        at_least=4,
        live="cluster",
        about="The largest offset or time index; a full one rolls the segment.",
    )
    log_index_interval_bytes: int = setting(
        4 * KiB, at_least=0, live="cluster", about="Add an index entry every so many bytes."
    )
    log_preallocate: bool = setting(
        False, live="cluster", about="Reserve the whole segment on disk when it is created."
    )
    log_flush_interval_messages: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=1,
        live="cluster",
        about="Flush a partition after this many records.",
    )
    log_flush_interval_ms: int | None = setting(
        None,
        kind=Kind.LONG,
        live="cluster",
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        about="Flush a partition after this long.",
    )
    log_flush_scheduler_interval_ms: int = setting(
        LONG_MAX, kind=Kind.LONG, about="How often to look for partitions to flush."
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=0, about="How often recovery points are written."
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=0, about="How often log start offsets are written."
    )
    num_recovery_threads_per_data_dir: int = setting(
        2,
        at_least=1,
        live="cluster",
        about="Threads per data directory that load logs at start and flush them at the end.",
    )
    log_message_timestamp_type: str = setting(
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        live="cluster",
        about="Whose time a record carries: CreateTime, the producer's, or LogAppendTime, the broker's.",
    )
    log_message_timestamp_before_max_ms: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        about="Refuse a record whose timestamp is older than the broker's clock by more than this.",
    )
    log_message_timestamp_after_max_ms: int = setting(
        3_600_000,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        about="Refuse a record whose timestamp is ahead of the broker's clock by more than this.",
    )
    log_cleaner_enable: bool = setting(True, about="Run compaction.")
    log_cleaner_threads: int = setting(1, at_least=0, live="cluster", about="Threads that compact.")
    log_cleaner_io_max_bytes_per_second: float = setting(
        sys.float_info.max, live="cluster", about="The most compaction reads and writes per second."
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        128 * MiB,
        kind=Kind.LONG,
        live="cluster",
        about="Memory for the keys seen by compaction, all threads together.",
    )
    log_cleaner_io_buffer_size: int = setting(
        512 * KiB,
        at_least=0,
        live="cluster",
        about="Memory for reading and writing during compaction, all threads together.",
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        0.9, live="cluster", about="How full the table of keys may get."
    )
    log_cleaner_backoff_ms: int = setting(
        15_000,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        about="How long compaction sleeps when there is nothing to do.",
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        0.5, at_least=0, at_most=1, live="cluster", about="Compact a log once this share of it is dirty."
    )
    log_cleaner_delete_retention_ms: int = setting(
        86_400_000,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        about="How long the deletion of a key stays visible in a compacted topic.",
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        0, kind=Kind.LONG, at_least=0, live="cluster", about="Never compact a record younger than this."
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        LONG_MAX, kind=Kind.LONG, at_least=1, live="cluster", about="Compact a record no later than this."
    )
