"""A broker with every door, and a client that types lines."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import pytest

from ottla import Broker

SECONDS = 20.0
QUICK = {"ottla.durability": "kafka", "offsets.topic.num.partitions": "2"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=QUICK) as broker:
        yield broker


class Caller:
    """A socket, as `nc` has one."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=SECONDS)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self.socket.close()

    def type(self, *lines: str | bytes) -> None:
        for line in lines:
            self.socket.sendall((line.encode() if isinstance(line, str) else line) + b"\n")

    def line(self) -> str:
        """The next line of the answer; an empty one when the other side has hung up."""
        return self._file.readline().decode("utf-8", "surrogateescape").rstrip("\n")

    def until_end(self) -> list[str]:
        """The lines of an answer up to its END, or the one line that is an error."""
        lines = []
        while True:
            line = self.line()
            assert line, f"hung up after {lines}"
            lines.append(line)
            if line.split()[0] in ("END", "ERR"):
                return lines

    def ask(self, line: str) -> str:
        self.type(line)
        return self.line()

    def ask_all(self, line: str) -> list[str]:
        self.type(line)
        return self.until_end()

    def hang_up(self) -> bytes:
        """Send no more, and return what is left to read."""
        self.socket.shutdown(socket.SHUT_WR)
        return self._file.read()

    def is_closed(self) -> bool:
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def caller(broker: Broker) -> Iterator[Caller]:
    with Caller(broker.addresses[0]) as caller:
        yield caller
