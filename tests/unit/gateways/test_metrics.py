"""`/metrics`: the figures are right, and the page about them is complete."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla import Broker
from ottla.gateways.families import FAMILIES, Family
from tests.unit.gateways.conftest import QUICK, Caller

PAGE = Path(__file__).parents[3] / "docs" / "doors" / "metrics.md"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(broker: Broker) -> Samples:
    answer = httpx.get(f"http://{broker.bootstrap}/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def figure(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_every_family_is_there(broker: Broker) -> None:
    text = httpx.get(f"http://{broker.bootstrap}/metrics").text
    shown = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert {family.shown_as for family in FAMILIES} <= shown
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= shown


def test_requests_are_counted_by_api_and_version(broker: Broker, caller: Caller) -> None:
    caller.ask("CREATE Counted")
    before = scrape(broker)
    for _ in range(3):
        caller.ask("PRODUCE Counted k v")
    after = scrape(broker)
    name, labels = "kafka_network_requestmetrics_requests_total", {"request": "Produce", "version": "12"}
    known = before.get((name, frozenset(labels.items())), 0)
    assert figure(after, name, **labels) == known + 3


def test_topics_have_their_bytes_messages_and_offsets(broker: Broker, caller: Caller) -> None:
    for _ in range(4):
        caller.ask("PRODUCE Measured k v")
    caller.ask_all("CONSUME Measured 0 0")
    samples = scrape(broker)
    bytes_in = figure(samples, "kafka_server_brokertopicmetrics_bytesin_total", topic="Measured")
    assert bytes_in == figure(samples, "kafka_log_log_size", topic="Measured", partition="0") > 4 * 61
    # Read once for the messages. Looking for more answers nothing.
    assert figure(samples, "kafka_server_brokertopicmetrics_bytesout_total", topic="Measured") == bytes_in
    assert figure(samples, "kafka_server_brokertopicmetrics_messagesin_total", topic="Measured") == 4
    assert figure(samples, "kafka_log_log_logendoffset", topic="Measured", partition="0") == 4
    assert figure(samples, "kafka_topic_partition_current_offset", topic="Measured", partition="0") == 4
    assert figure(samples, "kafka_topic_partitions", topic="Measured") == 1


def test_connections_of_every_door_are_counted() -> None:
    name = "kafka_server_socket_server_metrics_connection_count"
    with Broker(properties=QUICK) as broker:
        callers = [Caller(broker.addresses[0]) for _ in range(3)]
        for caller in callers:
            caller.ask_all("TOPICS")
        # The scraper is one of them.
        assert figure(scrape(broker), name, listener="PLAINTEXT") == 4
        for caller in callers:
            caller.socket.close()


def test_requests_that_wait_are_timed() -> None:
    """With acks=all a durable broker waits for its disk, and the histogram says so."""
    with Broker(properties={"ottla.durability": "durable"}) as broker:
        with Caller(broker.addresses[0]) as caller:
            caller.ask("PRODUCE Timed k v")
        samples = scrape(broker)
    name = "kafka_network_requestmetrics_totaltimems"
    assert figure(samples, f"{name}_count", request="Produce") == 1
    assert figure(samples, f"{name}_bucket", request="Produce", le="+Inf") == 1
    assert figure(samples, f"{name}_sum", request="Produce") > 0


def test_the_delay_of_the_loop_is_measured_once_somebody_looks(broker: Broker) -> None:
    scrape(broker)
    while not figure(scrape(broker), "ottla_event_loop_delay_seconds_count"):
        pass


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_page_about_metrics_has_every_name(family: Family) -> None:
    row = next((line for line in PAGE.read_text().splitlines() if f"`{family.shown_as}`" in line), None)
    assert row is not None, f"docs/doors/metrics.md does not say what {family.shown_as} is"
    for label in family.labels:
        assert f"`{label}`" in row


def test_the_page_about_metrics_has_no_name_that_is_gone() -> None:
    named = set(re.findall(r"^\| `([a-z_]+)`", PAGE.read_text(), re.M))
    assert {name for name in named if name.startswith(("kafka_", "ottla_"))} == {
        family.shown_as for family in FAMILIES
    }
