"""The windows over which quotas are measured."""

from __future__ import annotations

from ottla.config.settings import LONG_MAX, Kind, setting, settings


@settings
class QuotaSettings:
    """The windows over which quotas are measured."""

    client_quota_callback_class: str | None = setting(
        None, kind=Kind.CLASS, about="A plug-in that decides client quotas."
    )
    quota_window_num: int = setting(11, at_least=1, about="Windows kept for client quotas.")
    quota_window_size_seconds: int = setting(1, at_least=1, about="The length of a client quota window.")
    controller_quota_window_num: int = setting(
        11, at_least=1, about="Windows kept for controller mutation quotas."
    )
    controller_quota_window_size_seconds: int = setting(
        1, at_least=1, about="The length of a controller mutation quota window."
    )
    replication_quota_window_num: int = setting(11, at_least=1, about="Windows kept for replication quotas.")
    replication_quota_window_size_seconds: int = setting(
        1, at_least=1, about="The length of a replication quota window."
    )
    alter_log_dirs_replication_quota_window_num: int = setting(
        11, at_least=1, about="Windows kept for the quota on moves between data directories."
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = setting(
        1, at_least=1, about="The length of a window of the quota on moves between data directories."
    )

    # Set by tools while partitions move, never in a file; described only where they are set.
    leader_replication_throttled_rate: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        internal=True,
        about="The most a leader sends per second for its throttled replicas.",
    )
    follower_replication_throttled_rate: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        internal=True,
        about="The most a follower fetches per second for its throttled replicas.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG_MAX,
        kind=Kind.LONG,
        at_least=0,
        live="cluster",
        internal=True,
        about="The most copied per second when replicas move between data directories.",
    )
