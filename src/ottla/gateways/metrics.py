"""`/metrics`: what this broker does, for Prometheus.

Names are those that dashboards for Kafka ask for: the ones the JMX exporter gives Kafka's own metrics
(`kafka_server_...`, `kafka_network_...`, `kafka_log_...`), and those of kafka_exporter for topics and groups.
What Kafka has no name for starts with `ottla_`. docs/doors/metrics.md lists them all.

The numbers are gathered on the loop, in slices; turning them into text, which takes longer, is left to a
thread. Nothing is counted twice: all but a few integers per API are read from where they are anyway.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

import ottla
from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.gateways.families import FAMILIES, Kind
from ottla.gateways.loop_delay import DELAY_BUCKETS, LoopDelay
from ottla.gateways.pages import Page
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.server.doors import Doors, Visit
from ottla.server.local import Local
from ottla.server.routes import WAIT_BUCKETS

OFFSETS_BY_NAME: Final = 9
# Partitions or groups looked at before other work of the loop gets its turn.
SLICE: Final = 200
RUNNING: Final = 3  # Kafka's number for a broker that serves

Labels = tuple[str, ...]


class Metrics:
    """The metrics of one broker. One scrape runs at a time; who asks meanwhile waits for its own."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._turn = asyncio.Lock()
        self._delay = doors.keep(LoopDelay)
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)

    async def text(self, local: Local) -> bytes:
        async with self._turn:
            self._delay.wanted()
            figures = Figures()
            await self._gather(figures, local)
            return await asyncio.to_thread(self._format, figures)

    def _format(self, figures: Figures) -> bytes:
        class Everything:
            def collect(_) -> Iterator[Metric]:
                yield from figures.families()
                yield from self._process.collect()

        text: bytes = generate_latest(Everything())
        return text

    # --- gathering -------------------------------------------------------------------------

    async def _gather(self, figures: Figures, local: Local) -> None:
        self._broker(figures)
        self._requests(figures)
        await self._partitions(figures)
        await self._groups(figures, local)

    def _broker(self, figures: Figures) -> None:
        node = self._doors.node
        image = node.image
        figures.add("ottla", (ottla.__version__, node.cluster_id, str(node.node_id)), 1)
        figures.add("kafka_server_kafkaserver_brokerstate", (), RUNNING)
        figures.add("kafka_brokers", (), len(image.brokers))
        alive = sum(not broker.fenced for broker in image.brokers.values())
        figures.add("kafka_controller_kafkacontroller_activebrokercount", (), alive)
        figures.add("kafka_controller_kafkacontroller_activecontrollercount", (), 1)
        figures.add("kafka_controller_kafkacontroller_globaltopiccount", (), len(image.topics))
        for directory in node.log_directories:
            figures.add("ottla_log_directory_offline", (directory.path,), directory.error is not None)
        for listener in self._doors.listeners:
            figures.add(
                "kafka_server_socket_server_metrics_connection_count", (listener.name,), len(listener)
            )
        figures.observe(
            "ottla_event_loop_delay_seconds", (), DELAY_BUCKETS, self._delay.counts, self._delay.seconds
        )

    def _requests(self, figures: Figures) -> None:
        waits: dict[str, list[int]] = {}
        seconds: defaultdict[str, float] = defaultdict(float)
        for listener in self._doors.listeners:
            for route in listener.routes:
                figures.add(
                    "kafka_network_requestmetrics_requests", (route.name, str(route.version)), route.requests
                )
                before = waits.get(route.name)
                counts = route.wait_counts
                waits[route.name] = (
                    list(counts) if before is None else [a + b for a, b in zip(before, counts, strict=True)]
                )
                seconds[route.name] += route.wait_seconds
        buckets = [bound * 1000 for bound in WAIT_BUCKETS]
        for name, counts in waits.items():
            figures.observe(
                "kafka_network_requestmetrics_totaltimems", (name,), buckets, counts, seconds[name] * 1000
            )

    async def _partitions(self, figures: Figures) -> None:
        node = self._doors.node
        topics: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        leaders = under_replicated = under_min_isr = offline = count = 0
        for count, partition in enumerate(list(node.replicas), 1):
            topic, index = partition.partition.topic, str(partition.partition.partition)
            log = partition.log
            labels = (topic, index)
            figures.add("kafka_log_log_size", labels, log.size)
            figures.add("kafka_log_log_numlogsegments", labels, log.segment_count)
            figures.add("kafka_log_log_logstartoffset", labels, log.start_offset)
            figures.add("kafka_log_log_logendoffset", labels, log.end_offset)
            offline += partition.offline
            if partition.is_leader:
                leaders += 1
                figures.add("kafka_topic_partition_current_offset", labels, log.high_watermark)
                figures.add("kafka_topic_partition_oldest_offset", labels, log.start_offset)
                under_replicated += len(partition.isr.members) < len(partition.isr.replicas)
                under_min_isr += not partition.isr.is_large_enough
            sums = topics[topic]
            sums[0] += partition.bytes_in
            sums[1] += partition.bytes_out
            sums[2] += log.end_offset
            if count % SLICE == 0:
                await asyncio.sleep(0)
        for topic, (bytes_in, bytes_out, messages) in topics.items():
            figures.add("kafka_server_brokertopicmetrics_bytesin", (topic,), bytes_in)
            figures.add("kafka_server_brokertopicmetrics_bytesout", (topic,), bytes_out)
            figures.add("kafka_server_brokertopicmetrics_messagesin", (topic,), messages)
        for name, known in list(node.image.topics.items()):
            figures.add("kafka_topic_partitions", (name,), len(known.partitions))
        figures.add("kafka_server_replicamanager_partitioncount", (), count)
        figures.add("kafka_server_replicamanager_leadercount", (), leaders)
        figures.add("kafka_server_replicamanager_underreplicatedpartitions", (), under_replicated)
        figures.add("kafka_server_replicamanager_underminisrpartitioncount", (), under_min_isr)
        figures.add("kafka_server_replicamanager_offlinereplicacount", (), offline)
        cleaner = node.log_cleaner
        figures.add("kafka_log_logcleanermanager_max_dirty_percent", (), round(cleaner.max_dirty_ratio * 100))
        figures.add("kafka_log_logcleanermanager_uncleanable_partitions_count", (), len(cleaner.uncleanable))

    async def _groups(self, figures: Figures, local: Local) -> None:
        """Where each group is, and how far behind. Groups of a coordinator that is loading come later."""
        replicas = self._doors.node.replicas
        try:
            listed = (await local.ask(ListGroupsRequest())).groups
        except KafkaError:
            return
        for count, group in enumerate(listed, 1):
            asked = OffsetFetchRequestGroup(group_id=group.group_id, topics=None)
            try:
                response = await local.ask(OffsetFetchRequest(groups=[asked]), OFFSETS_BY_NAME)
            except KafkaError:
                continue
            for topic in response.groups[0].topics:
                for each in topic.partitions:
                    labels = (group.group_id, topic.name, str(each.partition_index))
                    figures.add("kafka_consumergroup_current_offset", labels, each.committed_offset)
                    partition = replicas.find(topic.name, each.partition_index)
                    if partition is not None and each.committed_offset >= 0:
                        lag = max(0, partition.log.high_watermark - each.committed_offset)
                        figures.add("kafka_consumergroup_lag", labels, lag)
            if count % SLICE == 0:
                await asyncio.sleep(0)


class Figures:
    """The numbers of one scrape, by the name of their family."""

    def __init__(self) -> None:
        self._values: defaultdict[str, dict[Labels, float]] = defaultdict(dict)
        self._histograms: defaultdict[str, dict[Labels, tuple[list[tuple[str, float]], float]]] = defaultdict(
            dict
        )

    def add(self, name: str, labels: Labels, value: float) -> None:
        """One value; those of the same labels add up, as the routes of several listeners do."""
        values = self._values[name]
        values[labels] = values.get(labels, 0) + value

    def observe(self, name: str, labels: Labels, bounds: Any, counts: list[int], total: float) -> None:
        buckets, below = [], 0
        for bound, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
            below += count
            buckets.append((bound, float(below)))
        self._histograms[name][labels] = (buckets, total)

    def families(self) -> Iterator[Metric]:
        for family in FAMILIES:
            if family.kind is Kind.HISTOGRAM:
                histogram = HistogramMetricFamily(family.name, family.about, labels=family.labels)
                for labels, (buckets, total) in self._histograms[family.name].items():
                    histogram.add_metric(labels, buckets, total)
                yield histogram
                continue
            if family.kind is Kind.INFO:
                info = InfoMetricFamily(family.name, family.about)
                for labels in self._values[family.name]:
                    info.add_metric((), dict(zip(family.labels, labels, strict=True)))
                yield info
                continue
            make = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
            metric = make(family.name, family.about, labels=family.labels)
            for labels, value in self._values[family.name].items():
                metric.add_metric(labels, value)
            yield metric


async def page(visit: Visit) -> Page:
    authorizer, connection = visit.doors.node.authorizer, visit.connection
    # Every topic and group is named here, so the rules of single ones do not help.
    if authorizer is not None and not authorizer.allows(
        connection.principal, connection.address, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        text = f"The access rules do not let {connection.principal} DESCRIBE the cluster, which metrics do\n"
        return Page(text, status=403)
    return Page(await visit.doors.keep(Metrics).text(visit.local), CONTENT_TYPE_PLAIN_0_0_4)
