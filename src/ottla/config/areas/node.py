"""Who this node is, what it runs, and the defaults of the topics made on it."""

from __future__ import annotations

from ottla.config.checks import gzip_level
from ottla.config.settings import LONG_MAX, Kind, MiB, setting, settings


@settings
class NodeSettings:
    """Who this node is, what it runs, and the defaults of the topics made on it."""

    node_id: int = setting(
        1, at_least=0, required_by_kafka=True, about="The id of this node, unique in the cluster."
    )
    broker_id: int = setting(-1, about="The old name of node.id; when both are given they must agree.")
    process_roles: tuple[str, ...] = setting(
        ("broker", "controller"),
        choices=("broker", "controller"),
        may_be_empty=False,
        required_by_kafka=True,
        about="What this process is: broker, controller, or both.",
    )
    broker_rack: str | None = setting(
        None, about="The rack or zone of this broker, for placing replicas and fetching from the nearest one."
    )
    controlled_shutdown_enable: bool = setting(
        True, about="Hand leadership to other brokers before shutting down."
    )
    server_max_startup_time_ms: int = setting(
        LONG_MAX, kind=Kind.LONG, at_least=0, internal=True, about="Give up starting after this long."
    )
    auto_create_topics_enable: bool = setting(True, about="Create a topic when a client first asks for it.")
    delete_topic_enable: bool = setting(True, about="Let clients delete topics.")
    num_partitions: int = setting(
        1, at_least=1, about="Partitions of a topic created without saying how many."
    )
    default_replication_factor: int = setting(1, about="Replicas of a topic created without saying how many.")
    message_max_bytes: int = setting(
        1_048_588,
        at_least=0,
        live="cluster",
        about="The largest record batch accepted, as it arrives; topics override it with max.message.bytes.",
    )
    compression_type: str = setting(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        live="cluster",
        about="How batches are stored: producer keeps what arrives, any other value recompresses.",
    )
    compression_gzip_level: int = setting(
        -1,
        check=gzip_level,
        live="cluster",
        about="The gzip level used when the broker compresses; -1 is the library's own.",
    )
    compression_lz4_level: int = setting(
        9, at_least=1, at_most=17, live="cluster", about="The lz4 level used when the broker compresses."
    )
    compression_zstd_level: int = setting(
        3,
        at_least=-131_072,
        at_most=22,
        live="cluster",
        about="The zstd level used when the broker compresses.",
    )
    background_threads: int = setting(10, at_least=1, live="cluster", about="Threads for background work.")
    create_topic_policy_class_name: str | None = setting(
        None, kind=Kind.CLASS, about="A plug-in that may refuse topics."
    )
    alter_config_policy_class_name: str | None = setting(
        None, kind=Kind.CLASS, about="A plug-in that may refuse configuration changes."
    )
    config_providers: tuple[str, ...] = setting(
        (), live="cluster", about="Names of providers that fill in ${provider:key} placeholders."
    )
    metric_reporters: tuple[str, ...] = setting(
        ("org.apache.kafka.common.metrics.JmxReporter",),
        live="cluster",
        about="Plug-ins that publish client-style metrics.",
    )
    metrics_num_samples: int = setting(2, at_least=1, about="Samples kept to compute a metric.")
    metrics_recording_level: str = setting("INFO", about="The finest level of metrics recorded.")
    metrics_sample_window_ms: int = setting(
        30_000, kind=Kind.LONG, at_least=1, about="The time one metric sample covers."
    )
    kafka_metrics_polling_interval_secs: int = setting(
        10, at_least=1, about="How often kafka.metrics.reporters are polled."
    )
    kafka_metrics_reporters: tuple[str, ...] = setting((), about="Plug-ins that publish broker metrics.")
    telemetry_max_bytes: int = setting(
        1 * MiB, at_least=1, about="The largest metrics payload a client may push."
    )
    unstable_api_versions_enable: bool = setting(
        False, internal=True, about="Offer API versions that are still being developed."
    )
    unstable_feature_versions_enable: bool = setting(
        False, internal=True, about="Allow feature levels that are still being developed."
    )
