"""A broker for a test: a process of its own, a port of its own, a directory that goes with it.

    with TestBroker() as ottla:
        topic = ottla.topic()
        ottla.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)

It is a process, not a thread, so that a test can kill it, and so that whatever a test does to its own process
(freezing the clock, patching the loop, forking) does not reach the broker.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

# Small where Kafka is large: each partition of an internal topic is a directory to make and a log to load.
QUICK: Final = {
    "ottla.durability": "kafka",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "log.initial.task.delay.ms": "1000",
}
# Another program may hold the port of a stopped broker for a moment; after this many tries it is an error.
START_TRIES: Final = 20
LOG_TAIL: Final = 4000


class BrokerFailed(Exception):
    """The broker process did not start, or is gone. The message ends with the last lines of its log."""


class ActiveFault:
    """A fault that was scripted. As a context manager it is taken back at the end of the block."""

    def __init__(self, broker: TestBroker, number: int, description: str) -> None:
        self._broker = broker
        self._number = number
        self._hits = 0
        self._description = description

    @property
    def hits(self) -> int:
        """How many requests it has spoiled so far."""
        self._broker._refresh_hits()
        return self._hits

    def heal(self) -> None:
        """Take it back, however often it was still to happen."""
        if self._broker._faults.get(self._number) is self:
            self._broker._heal(self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()

    def __repr__(self) -> str:
        return f"<{self._description}, {self._hits} so far>"


class TestBroker:
    """A broker to write tests against. Use it as a context manager, or `start` and `close` it."""

    __test__ = False  # not a test, whatever its name makes pytest think

    def __init__(self, properties: Mapping[str, str] | None = None, *, port: int = 0) -> None:
        self._properties = {**QUICK, **(properties or {})}
        self._port = port
        self._root: Path | None = None
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] | None = None
        self._faults: dict[int, ActiveFault] = {}
        self._names = itertools.count(1)
        self._clients: list[Any] = []
        self._bootstrap: str | None = None

    # --- start and stop ------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait until it serves. Raises `BrokerFailed`."""
        assert self._process is None, "the broker is running already"
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="ottla-test-"))
        for attempt in range(START_TRIES):
            answer = self._spawn()
            if "bootstrap" in answer:
                self._bootstrap = answer["bootstrap"]
                self._port = int(self.bootstrap.rpartition(":")[2])
                return
            self._end_process()
            if "is in use" not in answer.get("error", "") or attempt == START_TRIES - 1:
                raise self._failure(f"the broker did not start: {answer.get('error', 'it ended')}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it cleanly; its data and its port stay, for `start` or `restart`."""
        if self._process is not None:
            self._refresh_hits()
            self._tell(do="stop")
            self._end_process()

    def kill(self) -> None:
        """End it as SIGKILL ends it: nothing is flushed, no client is told."""
        if self._process is not None:
            self._refresh_hits()
            self._process.kill()
            self._end_process()

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill it, then start it again on the same port and data. Scripted faults are forgotten."""
        self.kill() if kill else self.stop()
        self.start()

    def close(self) -> None:
        """The end: clients closed, process gone, data removed."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self._process is not None:
            # Nobody needs what it would write now, so it is not asked to stop in order.
            self._process.kill()
            self._end_process()
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what a test asks ----------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """What a client takes as `bootstrap.servers`; it stays when the broker is stopped or killed."""
        if self._bootstrap is None:
            raise BrokerFailed("the broker was never started, so it has no address: use it in a `with` block")
        return self._bootstrap

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def data_dir(self) -> Path:
        """Where its logs are; `ottla log inspect` reads them while it runs."""
        assert self._root is not None, "the broker is not running"
        return self._root / "data"

    @property
    def log_text(self) -> str:
        """What the broker has logged so far."""
        assert self._root is not None, "the broker is not running"
        with suppress(FileNotFoundError):
            return (self._root / "broker.log").read_text(errors="replace")
        return ""

    def unique(self, stem: str) -> str:
        """A name that nobody else uses on this broker."""
        return f"{stem}-{next(self._names)}"

    def topic(self, name: str | None = None, *, partitions: int = 1, **config: object) -> str:
        """Create a topic, named for it if no name is given: `topic(partitions=3, retention_ms=1000)`."""
        from ottla.testing.asking import create_topic

        name = name or self.unique("topic")
        settings = {key.replace("_", "."): _setting(value) for key, value in config.items()}
        create_topic(self.bootstrap, name, partitions, settings)
        return name

    def producer(self, client: str | None = None, **config: Any) -> Any:
        """A producer of confluent-kafka or aiokafka: the one that `client` names, else what is installed."""
        from ottla.testing import clients

        return self._kept(clients.producer(self.bootstrap, client, config))

    def consumer(
        self, *topics: str, group: str | None = None, client: str | None = None, **config: Any
    ) -> Any:
        """A consumer that reads these topics from their start, in a group of its own unless one is given."""
        from ottla.testing import clients

        group = group or self.unique("group")
        return self._kept(clients.consumer(self.bootstrap, client, topics, group, config))

    def wait_for_assignment(self, consumer: Any, timeout: float = 30) -> Any:
        """The consumer's partitions, once its group has given it some; `await` it with aiokafka."""
        from ottla.testing import clients

        return clients.wait_for_assignment(consumer, timeout)

    def take(self, consumer: Any, count: int, timeout: float = 30) -> Any:
        """The next `count` messages of a consumer; `await` it with aiokafka. Raises `TimeoutError`."""
        from ottla.testing import clients

        return clients.take(consumer, count, timeout)

    # --- faults --------------------------------------------------------------------------

    def fail(
        self,
        api: str,
        error: str = "UNKNOWN_SERVER_ERROR",
        *,
        times: int | None = 1,
        skip: int = 0,
        topic: str | None = None,
        client_id: str | None = None,
        handled: bool = False,
    ) -> ActiveFault:
        """Answer requests of an API with an error instead of carrying them out, or `handled`, after it.

        The next `times` requests after `skip` others, counting those that name the topic and come from the
        client, if given; with `times=None` all of them until it is taken back.
        """
        return self._script(
            api=api, error=error, times=times, skip=skip, topic=topic, client_id=client_id, handled=handled
        )

    def delay(
        self,
        api: str,
        seconds: float,
        *,
        times: int | None = 1,
        skip: int = 0,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> ActiveFault:
        """Let requests of an API wait before they are carried out."""
        return self._script(
            api=api, delay_ms=round(seconds * 1000), times=times, skip=skip, topic=topic, client_id=client_id
        )

    def disconnect(
        self,
        api: str,
        *,
        times: int | None = 1,
        skip: int = 0,
        topic: str | None = None,
        client_id: str | None = None,
        handled: bool = False,
    ) -> ActiveFault:
        """Close the connection instead of answering; `handled`: after the request has been carried out."""
        return self._script(
            api=api, cut=True, times=times, skip=skip, topic=topic, client_id=client_id, handled=handled
        )

    def heal(self) -> None:
        """Take back every fault."""
        self._heal(None)

    def _script(self, **wanted: Any) -> ActiveFault:
        # Imported here, as it brings much of the broker along; a wrong name is told to the test itself.
        from ottla.testing.faults import Fault

        fault = Fault(**wanted)
        number = self._ask(do="fault", **wanted)["number"]
        what = fault.error or ("disconnect" if fault.cut else f"a delay of {fault.delay_ms} ms")
        active = ActiveFault(self, number, f"{fault.api}: {what}")
        self._faults[number] = active
        return active

    def _heal(self, number: int | None) -> None:
        if self._process is not None:
            self._note_hits(self._ask(do="heal", number=number))

    def _refresh_hits(self) -> None:
        if self._faults and self._process is not None and self._process.poll() is None:
            self._note_hits(self._ask(do="hits"))

    def _note_hits(self, answer: Mapping[str, Any]) -> None:
        for number, hits in answer["hits"].items():
            fault = self._faults.get(int(number))
            if fault is not None:
                fault._hits = hits

    # --- the process ---------------------------------------------------------------------

    def _spawn(self) -> dict[str, Any]:
        assert self._root is not None
        if self._log is None:
            self._log = (self._root / "broker.log").open("ab")
        self._process = subprocess.Popen(
            # -P: the working directory of a test run must not lend the broker its modules.
            [sys.executable, "-P", "-m", "ottla.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=_environment(),
        )
        properties = {
            "log.dirs": str(self._root / "data"),
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            **self._properties,
        }
        return self._ask(properties=properties, remove=str(self._root))

    def _ask(self, **question: Any) -> dict[str, Any]:
        self._tell(**question)
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failure("the broker process ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _tell(self, **question: Any) -> None:
        assert self._process is not None and self._process.stdin is not None, "the broker is not running"
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("the broker process is gone") from None

    def _end_process(self) -> None:
        process, self._process = self._process, None
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        # Their numbers mean nothing to the next process.
        self._faults.clear()

    def _failure(self, what: str) -> BrokerFailed:
        tail = self.log_text[-LOG_TAIL:].strip() if self._root is not None else ""
        return BrokerFailed(f"{what}\n{tail}".strip())

    def _kept(self, client: Any) -> Any:
        # Clients of aiokafka are closed by the test, on its loop.
        if hasattr(client, "close"):
            self._clients.append(client)
        return client


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment() -> dict[str, str]:
    """Ours, where the child finds the same `ottla` as this process does."""
    here = str(Path(__file__).parents[2])
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{path}" if path else here}
