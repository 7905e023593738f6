"""Copying partitions between brokers, and electing their leaders."""

from __future__ import annotations

from ottla.config.settings import KiB, Kind, MiB, setting, settings


@settings
class ReplicationSettings:
    """Copying partitions between brokers, and electing their leaders."""

    min_insync_replicas: int = setting(
        1,
        at_least=1,
        live="cluster",
        about="Replicas that must have a write before it is acknowledged with acks=all.",
    )
    unclean_leader_election_enable: bool = setting(
        False,
        live="cluster",
        about="Elect a leader that was not in sync rather than none, and lose what it lacks.",
    )
    unclean_leader_election_interval_ms: int = setting(
        300_000,
        kind=Kind.LONG,
        at_least=1,
        internal=True,
        about="How often the controller looks for partitions to elect uncleanly.",
    )
    auto_leader_rebalance_enable: bool = setting(
        True, about="Move leadership back to the preferred replicas now and then."
    )
    leader_imbalance_check_interval_seconds: int = setting(
        300, kind=Kind.LONG, at_least=1, about="How often to look whether leadership should move back."
    )
    num_replica_fetchers: int = setting(
        1, at_least=1, live="cluster", about="Connections per source broker that fetch replicas."
    )
    num_replica_alter_log_dirs_threads: int | None = setting(
        None, about="Threads that move replicas between data directories."
    )
    replica_lag_time_max_ms: int = setting(
        30_000,
        kind=Kind.LONG,
        about="Take a follower out of the in-sync set when it has not caught up for this long.",
    )
    replica_fetch_max_bytes: int = setting(
        1 * MiB, at_least=0, about="What a follower asks for per partition."
    )
    replica_fetch_response_max_bytes: int = setting(
        10 * MiB, at_least=0, about="What a follower asks for in one fetch."
    )
    replica_fetch_min_bytes: int = setting(1, about="Bytes a follower's fetch waits for.")
    replica_fetch_wait_max_ms: int = setting(500, about="How long a follower's fetch waits.")
    replica_fetch_backoff_ms: int = setting(
        1_000, at_least=0, about="How long a follower pauses after a failed fetch."
    )
    replica_socket_timeout_ms: int = setting(30_000, about="How long a follower's request may take.")
    replica_socket_receive_buffer_bytes: int = setting(64 * KiB, about="SO_RCVBUF of a follower's sockets.")
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        5_000, kind=Kind.LONG, about="How often high watermarks are written to disk."
    )
    replica_selector_class: str | None = setting(
        None, about="A plug-in that picks the replica a consumer reads from."
    )
    controller_socket_timeout_ms: int = setting(
        30_000, about="How long a request to the controller may take."
    )
    follower_fetch_last_tiered_offset_enable: bool = setting(
        False,
        live="cluster",
        about="Let a new follower start at the last tiered offset rather than copy everything local.",
    )
