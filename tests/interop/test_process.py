"""`ottla serve` as a user meets it: starting, refusing to start, and stopping. Also the embedded broker."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.batches import batch
from tests.interop.clients import ConfluentProducer, read_with_confluent
from tests.interop.requests import fetch, list_offset, produce
from tests.interop.topics import create_topic, eventually
from tests.interop.wire import Wire
from tools.broker_process import BrokerProcess, answers, free_port

SECONDS = 30.0
KAFKA_STORAGE_ERROR = 56


@pytest.fixture(autouse=True)
def only_ottla(referee: bool) -> None:
    if referee:
        pytest.skip("about Ottla's own command line")


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a broker that is expected to give up."""
    command = [sys.executable, "-m", "ottla", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def refused_in_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    output = (done.stdout + done.stderr).strip()
    assert done.returncode != 0
    assert "Traceback" not in output
    (reason,) = [line for line in output.splitlines() if line.startswith("ottla: ")]
    for word in words:
        assert word in reason


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_broker_cleanly(tmp_path: Path, signal_number: signal.Signals) -> None:
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    process = broker.process
    assert process is not None
    try:
        create_topic(broker.bootstrap, "orders")
        process.send_signal(signal_number)
        assert process.wait(SECONDS) in (0, 128 + signal_number)
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        assert "Traceback" not in broker.log()
    finally:
        broker.kill()
        broker.remove()


def test_the_broker_says_where_it_listens_and_where_the_data_is(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        eventually(lambda: str(broker.port) in broker.log())
        assert str(tmp_path / "data") in broker.log()


def test_a_broker_goes_on_when_nobody_reads_what_it_says(tmp_path: Path) -> None:
    data, port = tmp_path / "data", free_port()
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ottla", "serve", "--port", str(port), "--data-dir", str(data)]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True) as broker:
        os.close(write)
        try:
            eventually(lambda: broker.poll() is not None or answers(port))
            create_topic(f"127.0.0.1:{port}", "orders")
            broker.terminate()
            assert broker.wait(SECONDS) == 0
            assert broker.stderr and "ottla: " not in broker.stderr.read()
        finally:
            broker.kill()
    assert (data / ".kafka_cleanshutdown").exists()


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        refused_in_one_line(
            serve("--port", "0", "--data-dir", str(tmp_path / "data")), str(tmp_path / "data")
        )
        with Wire(broker.bootstrap) as wire:
            assert wire.ask("metadata", 12, topics=[]).brokers


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused_in_one_line(serve("--port", port, "--data-dir", str(tmp_path / "data")), port)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    refused_in_one_line(serve("--port", "0", "--data-dir", str(tmp_path / "file" / "data")))


def test_an_unknown_setting_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    done = serve("--port", "0", "--data-dir", str(tmp_path), "--set", "log.retention.hour=1")
    refused_in_one_line(done, "log.retention.hour", "log.retention.hours")


def test_a_setting_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    done = serve("--port", "0", "--data-dir", str(tmp_path), "--set", "num.partitions=none")
    refused_in_one_line(done, "num.partitions")


def test_settings_come_from_the_file_and_the_command_line(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("# a comment\nnum.partitions=3\nlog.retention.hours=7\n")
    command = (sys.executable, "-m", "ottla", "serve", "--config", str(properties))
    settings = ["log.retention.hours=9"]
    with (
        BrokerProcess(tmp_path / "data", command=command, settings=settings) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        (node,) = wire.ask("metadata", 12, topics=[]).brokers
        wanted = ["num.partitions", "log.retention.hours"]
        resource = {
            "resource_type": 4,
            "resource_name": str(node.node_id),
            "configuration_keys": wanted,
        }
        (found,) = wire.ask("describe_configs", 4, resources=[resource]).results
        assert {config.name: config.value for config in found.configs} == {
            "num.partitions": "3",
            "log.retention.hours": "9",
        }


def test_a_broker_whose_only_disk_fails_says_so_and_ends(tmp_path: Path) -> None:
    # No file may grow beyond half a megabyte: a disk that fails in the middle of a write.
    limited = ("sh", "-c", 'ulimit -f 1024; exec "$0" -m ottla serve "$@"', sys.executable)
    broker = BrokerProcess(tmp_path / "data", command=limited)
    broker.start()
    try:
        with Wire(broker.bootstrap) as wire:
            create_topic(broker.bootstrap, "orders")
            assert produce(wire, "orders", batch(bytes(400_000))).error_code == 0
            assert produce(wire, "orders", batch(bytes(400_000))).error_code == KAFKA_STORAGE_ERROR
        assert broker.process is not None
        assert broker.process.wait(SECONDS) == 1
        (reason,) = [line for line in broker.log().splitlines() if line.startswith("ottla: ")]
        assert "every log directory is offline" in reason
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    finally:
        broker.kill()
        broker.remove()
    with BrokerProcess(tmp_path / "data") as broker, Wire(broker.bootstrap) as wire:
        assert list_offset(wire, "orders", -1).offset == 1


def test_old_segments_are_deleted_by_size(tmp_path: Path) -> None:
    settings = ["log.retention.check.interval.ms=100", "log.initial.task.delay.ms=0"]
    with BrokerProcess(tmp_path / "data", settings=settings) as broker, Wire(broker.bootstrap) as wire:
        limits = {"segment_bytes": 1024 * 1024, "retention_bytes": 2 * 1024 * 1024}
        create_topic(broker.bootstrap, "bounded", 1, limits)
        for _ in range(10):
            assert produce(wire, "bounded", batch(bytes(900_000))).error_code == 0
        # A segment goes as long as at least two megabytes stay, so three batches of 900 kB are left.
        eventually(lambda: list_offset(wire, "bounded", -2).offset == 7)
        assert fetch(wire, "bounded", 6).error_code == 1
        assert fetch(wire, "bounded", 7).error_code == 0


class TestEmbedded:
    def test_a_broker_runs_in_a_with_statement(self, tmp_path: Path) -> None:
        from ottla import Broker

        with Broker(data_dir=tmp_path, port=0) as broker:
            producer = ConfluentProducer(broker.bootstrap)
            producer.send("greetings", b"hello")
            producer.flush()
            assert read_with_confluent(broker.bootstrap, "greetings", 1)[0].value() == b"hello"
        with Broker(data_dir=tmp_path, port=0) as broker:
            assert read_with_confluent(broker.bootstrap, "greetings", 1)[0].value() == b"hello"

    def test_a_broker_runs_in_an_async_with_statement(self, tmp_path: Path) -> None:
        from ottla import Broker

        async def scenario() -> None:
            async with Broker(data_dir=tmp_path, port=0) as broker:
                found = await asyncio.to_thread(ask_who_is_there, broker.bootstrap)
                assert found == broker.bootstrap

        asyncio.run(asyncio.wait_for(scenario(), SECONDS))

    def test_two_brokers_run_side_by_side(self, tmp_path: Path) -> None:
        from ottla import Broker

        with (
            Broker(data_dir=tmp_path / "a", port=0) as first,
            Broker(data_dir=tmp_path / "b", port=0) as second,
        ):
            assert first.bootstrap != second.bootstrap
            create_topic(first.bootstrap, "only-here")
            with Wire(second.bootstrap) as wire:
                topics = wire.ask("metadata", 12, topics=None).topics
                assert "only-here" not in {topic.name for topic in topics}


def ask_who_is_there(bootstrap: str) -> str:
    with Wire(bootstrap) as wire:
        (node,) = wire.ask("metadata", 12, topics=[]).brokers
        return f"{node.host}:{node.port}"
