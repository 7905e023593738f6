"""The metadata quorum: voters, elections, snapshots, and broker registration."""

from __future__ import annotations

from ottla.config.checks import host_and_port_list, voter_list
from ottla.config.settings import GiB, Kind, MiB, setting, settings


@settings
class QuorumSettings:
    """The metadata quorum: voters, elections, snapshots, and broker registration."""

    controller_listener_names: tuple[str, ...] = setting(
        (), required_by_kafka=True, about="The names of the listeners that speak to controllers."
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(
        (), check=host_and_port_list, about="Controllers to find the quorum by, as host:port,host:port."
    )
    controller_quorum_voters: tuple[str, ...] = setting(
        (), check=voter_list, about="The voters of a fixed quorum, as id@host:port,id@host:port."
    )
    controller_quorum_auto_join_enable: bool = setting(
        False, about="Join the quorum as a voter when the controller starts."
    )
    controller_quorum_append_linger_ms: int = setting(
        25, at_least=0, about="How long the leader gathers records before it writes them."
    )
    controller_quorum_election_timeout_ms: int = setting(
        1_000, at_least=0, about="Start another election when one was not won in this time."
    )
    controller_quorum_election_backoff_max_ms: int = setting(
        1_000, at_least=0, about="The longest pause between two elections."
    )
    controller_quorum_fetch_timeout_ms: int = setting(
        2_000,
        at_least=0,
        about="A voter that could not fetch from the leader for this long starts an election.",
    )
    controller_quorum_fetch_max_bytes: int = setting(
        1 * MiB, at_least=1, about="The most one fetch of the metadata log returns."
    )
    controller_quorum_fetch_snapshot_max_bytes: int = setting(
        1 * MiB, at_least=1, about="The most one fetch of a snapshot returns."
    )
    controller_quorum_request_timeout_ms: int = setting(
        2_000, at_least=0, about="How long a request within the quorum may take."
    )
    controller_quorum_retry_backoff_ms: int = setting(
        20, at_least=0, about="The pause before a failed request within the quorum is repeated."
    )
    controller_performance_sample_period_ms: int = setting(
        60_000,
        kind=Kind.LONG,
        at_least=100,
        internal=True,
        about="How often the controller reports its slowest events.",
    )
    controller_performance_always_log_threshold_ms: int = setting(
        2_000,
        kind=Kind.LONG,
        at_least=0,
        internal=True,
        about="Report a controller event that takes longer than this.",
    )
    broker_heartbeat_interval_ms: int = setting(
        2_000, about="How often a broker sends a heartbeat to the controller."
    )
    broker_session_timeout_ms: int = setting(
        9_000, about="Fence a broker after this long without a heartbeat."
    )
    initial_broker_registration_timeout_ms: int = setting(
        60_000, about="Give up when the first registration takes longer than this."
    )
    metadata_log_dir: str | None = setting(
        None, about="The directory of the metadata log; by default the first data directory."
    )
    metadata_log_segment_bytes: int = setting(
        1 * GiB, at_least=8 * MiB, about="Roll a segment of the metadata log at this size."
    )
    metadata_log_segment_ms: int = setting(
        604_800_000, kind=Kind.LONG, about="Roll a segment of the metadata log at this age."
    )
    metadata_log_max_record_bytes_between_snapshots: int = setting(
        20 * MiB, kind=Kind.LONG, at_least=1, about="Write a snapshot after this many bytes of records."
    )
    metadata_log_max_snapshot_interval_ms: int = setting(
        3_600_000,
        kind=Kind.LONG,
        at_least=0,
        about="Write a snapshot at least this often, if anything changed; 0 for never.",
    )
    metadata_max_idle_interval_ms: int = setting(
        500,
        at_least=0,
        about="Write a no-op record when the metadata log was idle for this long; 0 for never.",
    )
    metadata_max_retention_bytes: int = setting(
        100 * MiB, kind=Kind.LONG, about="Keep at most this much metadata log and snapshots."
    )
    metadata_max_retention_ms: int = setting(
        604_800_000, kind=Kind.LONG, about="Keep metadata log and snapshots this long."
    )
    internal_metadata_delete_delay_millis: int = setting(
        60_000, kind=Kind.LONG, internal=True, about="How long a deleted metadata file stays on disk."
    )
    internal_metadata_log_segment_bytes: int | None = setting(
        None, internal=True, about="A segment size of the metadata log for tests, without a lower limit."
    )
    internal_metadata_max_batch_size_in_bytes: int = setting(
        8 * MiB, internal=True, about="The largest batch in the metadata log."
    )
