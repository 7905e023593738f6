"""Listeners, sockets, connections, and the limits on them."""

from __future__ import annotations

from ottla.config.settings import INT_MAX, KiB, Kind, MiB, setting, settings


@settings
class NetworkSettings:
    """Listeners, sockets, connections, and the limits on them."""

    listeners: tuple[str, ...] = setting(
        ("PLAINTEXT://:9092",),
        may_be_empty=False,
        live="broker",
        about="Where to listen, as NAME://host:port; an empty host means every address.",
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        None,
        may_be_empty=False,
        about="What clients are told to connect to; without it, the address they dialled.",
    )
    listener_security_protocol_map: str = setting(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        live="broker",
        about="The security protocol of each listener name.",
    )
    inter_broker_listener_name: str | None = setting(
        None, about="The listener that brokers use among themselves."
    )
    security_inter_broker_protocol: str = setting(
        "PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        about="The security protocol among brokers, when inter.broker.listener.name is not given.",
    )
    early_start_listeners: tuple[str, ...] | None = setting(
        None, about="Listeners that open before authorization is loaded."
    )
    num_network_threads: int = setting(
        3,
        at_least=1,
        live="cluster",
        about="Network threads per listener in Apache Kafka; Ottla serves all on one event loop.",
    )
    num_io_threads: int = setting(
        8,
        at_least=1,
        live="cluster",
        about="Request threads in Apache Kafka; Ottla serves all on one event loop.",
    )
    queued_max_requests: int = setting(
        500, at_least=1, about="Requests that may wait unanswered before reading pauses."
    )
    queued_max_request_bytes: int = setting(
        -1, kind=Kind.LONG, about="Bytes of requests that may wait unanswered; -1 for no limit."
    )
    request_timeout_ms: int = setting(30_000, about="How long a request to another node may take.")
    socket_send_buffer_bytes: int = setting(
        100 * KiB, about="SO_SNDBUF of server sockets; -1 leaves it to the system."
    )
    socket_receive_buffer_bytes: int = setting(
        100 * KiB, about="SO_RCVBUF of server sockets; -1 leaves it to the system."
    )
    socket_request_max_bytes: int = setting(
        100 * MiB, at_least=1, about="The largest request frame accepted."
    )
    socket_listen_backlog_size: int = setting(
        50, at_least=1, about="Connections the system may hold before they are accepted."
    )
    socket_connection_setup_timeout_ms: int = setting(
        10_000, kind=Kind.LONG, about="How long to wait for a connection to another node."
    )
    socket_connection_setup_timeout_max_ms: int = setting(
        30_000, kind=Kind.LONG, about="The most that wait may grow to, with each failure."
    )
    max_connections: int = setting(
        INT_MAX, at_least=0, live="cluster", about="Connections held at once, per listener and in all."
    )
    max_connections_per_ip: int = setting(
        INT_MAX, at_least=0, live="cluster", about="Connections held at once from one address."
    )
    max_connections_per_ip_overrides: str = setting(
        "", live="cluster", about="Exceptions to max.connections.per.ip, as host:count,host:count."
    )
    max_connection_creation_rate: int = setting(
        INT_MAX, at_least=0, live="cluster", about="New connections accepted per second."
    )
    connections_max_idle_ms: int = setting(
        600_000, kind=Kind.LONG, about="Close a connection that was silent for this long."
    )
    connection_failed_authentication_delay_ms: int = setting(
        100, at_least=0, about="How long to hold a connection that failed to authenticate before closing it."
    )
    fetch_max_bytes: int = setting(
        55 * MiB, at_least=1 * KiB, about="The most one fetch response returns, whatever the client allows."
    )
    fetch_purgatory_purge_interval_requests: int = setting(
        1_000, about="Apache Kafka's clean-up interval for waiting fetches."
    )
    producer_purgatory_purge_interval_requests: int = setting(
        1_000, about="Apache Kafka's clean-up interval for waiting produce requests."
    )
    delete_records_purgatory_purge_interval_requests: int = setting(
        1, about="Apache Kafka's clean-up interval for waiting DeleteRecords requests."
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        1_000, at_least=0, about="Incremental fetch sessions kept."
    )
    max_request_partition_size_limit: int = setting(
        2_000, at_least=1, about="Partitions in one answer to DescribeTopicPartitions."
    )
