"""A whole broker: both ways of embedding it, and what happens when it cannot start."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla import Broker
from ottla.config.settings import ConfigError
from ottla.server.broker import StartupError
from ottla.storage.lock import DirectoryInUse
from ottla.storage.log_directory import LogDirectory
from ottla.testing.broker import BrokerFailed, TestBroker


def write(bootstrap: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("topic", value)
    assert producer.flush(20) == 0


def read_all(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("topic", 0, 0)])
    values = [message.value() for message in consumer.consume(count, timeout=20)]
    consumer.close()
    return values


def test_a_broker_runs_in_a_thread_and_finds_its_data_again(tmp_path: Path) -> None:
    for number in range(3):
        with Broker(data_dir=tmp_path) as broker:
            assert broker.data_dirs == [str(tmp_path)]
            write(broker.bootstrap, b"%d" % number)
            assert read_all(broker.bootstrap, number + 1) == [b"%d" % n for n in range(number + 1)]


def test_a_broker_runs_in_a_loop_of_the_caller(tmp_path: Path) -> None:
    async def main() -> None:
        async with Broker(data_dir=tmp_path, port=0) as broker:
            await asyncio.to_thread(write, broker.bootstrap, b"async")
            assert await asyncio.to_thread(read_all, broker.bootstrap, 1) == [b"async"]

    asyncio.run(main())  # asyncio's own loop, not uvloop


def test_a_connection_that_is_being_accepted_when_the_broker_stops_is_closed(tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        broker = Broker(data_dir=tmp_path, port=0)
        await broker.start()
        with socket.create_connection(broker.addresses[0], timeout=20) as client:
            # The loop hears of it in its next turn, and goes on with it in the turn after that, in which we
            # have our turn before it.
            soon = loop.create_future()
            loop.call_soon(soon.set_result, None)
            await soon
            await broker.stop()
            assert client.recv(1) == b""

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert not [each for each in told if "unclosed" in str(each.message)]


def test_a_broker_that_does_not_run_has_no_address() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap
    with broker:
        assert broker.bootstrap.startswith("127.0.0.1:")
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap


def test_a_broker_for_tests_keeps_its_address_once_it_has_one() -> None:
    broker = TestBroker()
    with pytest.raises(BrokerFailed, match="never started"):
        _ = broker.bootstrap
    with broker:
        address = broker.bootstrap
        broker.stop()
        assert broker.bootstrap == address


def test_without_a_directory_the_data_goes_with_the_broker() -> None:
    with Broker() as broker:
        write(broker.bootstrap, b"gone soon")
        (directory,) = broker.data_dirs
        assert Path(directory).exists()
    assert not Path(directory).exists()


def test_a_broker_that_is_started_again_leaves_nothing_behind_either() -> None:
    broker = Broker()
    for _ in range(2):
        with broker:
            write(broker.bootstrap, b"gone soon")
            (directory,) = broker.data_dirs
        assert not Path(directory).exists()


def test_starting_and_stopping_leaks_neither_threads_nor_files_nor_tasks() -> None:
    def open_files() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    async def story() -> None:
        counts = []
        for _ in range(4):
            async with Broker():
                pass
            counts.append((open_files(), len(asyncio.all_tasks())))
        # The first start also opens what the process keeps.
        assert counts[-1] == counts[1]

    # Threads of other tests may still end meanwhile.
    threads = set(threading.enumerate())
    asyncio.run(story())
    assert set(threading.enumerate()) <= threads


def test_a_start_that_is_cancelled_keeps_the_directory_while_its_logs_are_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, go_on = threading.Event(), threading.Event()
    load = LogDirectory.load

    def slow(self: LogDirectory, *args: Any) -> None:
        loading.set()
        assert go_on.wait(30)
        load(self, *args)

    async def story() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(LogDirectory, "load", slow)
            starting = asyncio.ensure_future(Broker(data_dir=tmp_path).start())
            assert await asyncio.to_thread(loading.wait, 30)
        starting.cancel()
        # It has all the time it wants to give up, and must not before the thread has.
        ended, _ = await asyncio.wait({starting}, timeout=0.5)
        assert not ended
        with pytest.raises(DirectoryInUse):
            await Broker(data_dir=tmp_path).start()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        async with Broker(data_dir=tmp_path):
            pass

    asyncio.run(story())


def test_two_brokers_live_side_by_side() -> None:
    with Broker() as one, Broker() as two:
        write(one.bootstrap, b"one")
        write(two.bootstrap, b"two")
        assert read_all(one.bootstrap, 1) == [b"one"]
        assert read_all(two.bootstrap, 1) == [b"two"]


def test_a_directory_in_use_is_refused_and_freed_afterwards(tmp_path: Path) -> None:
    with (
        Broker(data_dir=tmp_path),
        pytest.raises(DirectoryInUse, match=str(tmp_path)),
        Broker(data_dir=tmp_path),
    ):
        pass
    with Broker(data_dir=tmp_path):
        pass


def test_a_port_in_use_is_refused_in_one_line_and_leaves_the_directory_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"port {port}"), Broker(data_dir=tmp_path, port=port):
            pass
    with Broker(data_dir=tmp_path, port=port) as broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path):
        pass
    with (
        pytest.raises(StartupError, match=r"node\.id"),
        Broker(data_dir=tmp_path, properties={"node.id": "7"}),
    ):
        pass


def test_an_unknown_property_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"), Broker(properties={"num.partition": "3"}):
        pass


def test_a_plaintext_listener_for_everybody_has_to_be_asked_for() -> None:
    with (
        pytest.raises(ConfigError, match="insecure"),
        Broker(properties={"listeners": "PLAINTEXT://0.0.0.0:0"}),
    ):
        pass
