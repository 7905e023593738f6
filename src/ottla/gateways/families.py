"""Every metric of this broker by name. docs/doors/metrics.md is the same list for people."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Family(NamedTuple):
    kind: Kind
    name: str  # counters are shown with `_total` after it, infos with `_info`
    about: str
    labels: tuple[str, ...] = ()

    @property
    def shown_as(self) -> str:
        return self.name + {Kind.COUNTER: "_total", Kind.INFO: "_info"}.get(self.kind, "")


_PARTITION: Final = ("topic", "partition")
_GROUP: Final = ("consumergroup", "topic", "partition")

FAMILIES: Final = (
    Family(Kind.INFO, "ottla", "This broker", ("version", "cluster_id", "node_id")),
    # Requests
    Family(
        Kind.COUNTER,
        "kafka_network_requestmetrics_requests",
        "Requests by API and version, from every door",
        ("request", "version"),
    ),
    Family(
        Kind.HISTOGRAM,
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds that requests took which had to wait; the others are answered in the turn they come in",
        ("request",),
    ),
    Family(
        Kind.HISTOGRAM,
        "ottla_event_loop_delay_seconds",
        "How late the event loop gets to what is due, looked at ten times a second while somebody scrapes",
    ),
    Family(
        Kind.GAUGE,
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections, of every door",
        ("listener",),
    ),
    # Topics
    Family(
        Kind.COUNTER,
        "kafka_server_brokertopicmetrics_bytesin",
        "Bytes of batches appended since the start, as stored",
        ("topic",),
    ),
    Family(
        Kind.COUNTER,
        "kafka_server_brokertopicmetrics_bytesout",
        "Bytes of batches sent to consumers since the start",
        ("topic",),
    ),
    Family(
        Kind.COUNTER,
        "kafka_server_brokertopicmetrics_messagesin",
        "Messages ever appended: the sum of the end offsets, so it does not begin at 0 with the broker",
        ("topic",),
    ),
    Family(Kind.GAUGE, "kafka_topic_partitions", "Partitions of a topic", ("topic",)),
    # Partitions
    Family(Kind.GAUGE, "kafka_log_log_size", "Bytes of a partition's segments", _PARTITION),
    Family(Kind.GAUGE, "kafka_log_log_numlogsegments", "Segments of a partition", _PARTITION),
    Family(Kind.GAUGE, "kafka_log_log_logstartoffset", "First offset of a partition", _PARTITION),
    Family(Kind.GAUGE, "kafka_log_log_logendoffset", "Offset that the next message gets", _PARTITION),
    Family(
        Kind.GAUGE,
        "kafka_topic_partition_current_offset",
        "High watermark of a partition that is led here",
        _PARTITION,
    ),
    Family(
        Kind.GAUGE,
        "kafka_topic_partition_oldest_offset",
        "First offset of a partition that is led here",
        _PARTITION,
    ),
    # Groups
    Family(
        Kind.GAUGE,
        "kafka_consumergroup_current_offset",
        "Offset that a group has committed, for groups that are coordinated here",
        _GROUP,
    ),
    Family(
        Kind.GAUGE,
        "kafka_consumergroup_lag",
        "Messages between a group's committed offset and the high watermark",
        _GROUP,
    ),
    # Broker and cluster
    Family(Kind.GAUGE, "kafka_brokers", "Brokers that are registered"),
    Family(Kind.GAUGE, "kafka_server_kafkaserver_brokerstate", "3: this broker serves"),
    Family(Kind.GAUGE, "kafka_server_replicamanager_partitioncount", "Replicas on this broker"),
    Family(Kind.GAUGE, "kafka_server_replicamanager_leadercount", "Partitions that this broker leads"),
    Family(
        Kind.GAUGE,
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here whose in-sync set is not all replicas",
    ),
    Family(
        Kind.GAUGE,
        "kafka_server_replicamanager_underminisrpartitioncount",
        "Partitions led here with fewer in-sync replicas than min.insync.replicas",
    ),
    Family(
        Kind.GAUGE,
        "kafka_server_replicamanager_offlinereplicacount",
        "Replicas here whose log directory has failed",
    ),
    Family(
        Kind.GAUGE,
        "kafka_log_logcleanermanager_max_dirty_percent",
        "How much of the dirtiest log there is to compact, when compaction last looked",
    ),
    Family(
        Kind.GAUGE,
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Logs that could not be compacted and are left alone until the next start",
    ),
    Family(
        Kind.GAUGE,
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the broker whose controller is active",
    ),
    Family(Kind.GAUGE, "kafka_controller_kafkacontroller_activebrokercount", "Brokers that serve"),
    Family(Kind.GAUGE, "kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster"),
    Family(Kind.GAUGE, "ottla_log_directory_offline", "1 for a log directory that has failed", ("path",)),
)
