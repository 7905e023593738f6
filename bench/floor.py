"""The floor: what the same bytes cost when nothing is done to them but what the kernel has to do.

A process of its own receives batches of 0.9 MB over loopback, appends them to a file, syncs it or not, and
answers a few bytes; or sends them from the file with sendfile. Whoever uses sockets and files can hardly cost
less.

The same bytes cost the kernel more when they come in smaller pieces from a client that is busy making them:
whoever receives them sleeps and wakes each time, and finds the processor's caches full of the client's work.
So rows of clients that are slower than a broker by far have a floor of that kind.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe

import psutil

from bench.brokers import Setup, Subject, cost_of
from bench.throughput import RECEIVE, RECEIVE_SLOWLY, RECEIVE_SYNCED, SEND
from bench.wire import SIZE, Connection, batch, fetch_frame, produce_frame
from bench.workload import Family, Figure, Selection, Site, Workload

MEGABYTES = 600
ANSWER = SIZE.pack(60) + bytes(60)
# What Java's producer does in the rows that have this floor, and librdkafka with small records.
SLOW_BYTES_PER_SECOND = 130e6
SLOW_RECORDS = 256
# So much memory of the client's is sent in turn that it is not what was sent a moment ago.
SLOW_MEMORY = 32_000_000


def workloads() -> Iterator[Workload]:
    yield Workload(Family.LARGE, "kernel alone", every_floor, Selection.SMOKE, setups=(Setup.KERNEL,))


def every_floor(site: Site) -> list[Figure]:
    return [
        figure for name in (RECEIVE, RECEIVE_SYNCED, SEND, RECEIVE_SLOWLY) for figure in floor(site, name)
    ]


def floor(site: Site, name: str) -> list[Figure]:
    data = batch(900, 1_000)
    rounds = site.work(MEGABYTES * 1e6 / len(data) / 2, at_least=4)
    with tempfile.TemporaryDirectory(prefix="ottla-floor-") as folder:
        path = f"{folder}/00000000000000000000.log"
        if name == SEND:
            write_log(path, data, rounds)
            request = fetch_frame("floor", 0, partition_max_bytes=len(data))
            return measured(name, send_from_file, path, request, len(data), rounds)
        if name == RECEIVE_SLOWLY:
            data = batch(SLOW_RECORDS, 1_000)
            rounds = site.work(MEGABYTES * 1e6 / len(data) / 4, at_least=4)
            request = produce_frame("floor", data)
            return measured(name, receive_and_append, path, request, len(data), rounds, send=send_slowly)
        serve = receive_append_and_sync if name == RECEIVE_SYNCED else receive_and_append
        return measured(name, serve, path, produce_frame("floor", data), len(data), rounds)


def write_log(path: str, data: bytes, count: int) -> None:
    with open(path, "wb") as log:  # noqa: PTH123
        for _ in range(count):
            log.write(data)


def send_in_pairs(connection: Connection, request: bytes, rounds: int) -> int:
    """Two requests on their way at a time, from the client that the brokers' large batches come from."""
    for _ in range(rounds):
        connection.pipeline(request * 2, 2)
    return 2 * rounds


def send_slowly(connection: Connection, request: bytes, rounds: int) -> int:
    """One after the other in a timetable, and busy in between as a client is that makes its records."""
    requests = [bytearray(request) for _ in range(max(1, SLOW_MEMORY // len(request)))]
    due = time.perf_counter()
    for number in range(rounds):
        connection.pipeline(requests[number % len(requests)], 1)
        due += len(request) / SLOW_BYTES_PER_SECOND
        while time.perf_counter() < due:
            pass
    return rounds


Send = Callable[[Connection, bytes, int], int]


def measured(
    name: str,
    serve: Serve,
    path: str,
    request: bytes,
    size: int,
    rounds: int,
    *,
    send: Send = send_in_pairs,
) -> list[Figure]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, path, len(request), size), daemon=True)
    process.start()
    try:
        bootstrap = f"127.0.0.1:{ours.recv()}"
        subject = Subject(bootstrap, psutil.Process(process.pid))
        sent = 0
        with Connection(subject.address) as connection:

            def work() -> None:
                nonlocal sent
                sent = send(connection, request, rounds)

            send(connection, request, rounds // 4)
            cost = cost_of(subject, work)
    finally:
        process.kill()
        process.join()
    gigabytes = sent * size / 1e9
    return [
        Figure(name, "MB/s", gigabytes * 1e3 / cost.seconds, higher_is_better=True),
        Figure(name, "s/GB", cost.cpu_seconds / gigabytes),
    ]


Serve = Callable[[Pipe, str, int, int], None]


def accept(pipe: Pipe) -> socket.socket:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pipe.send(listener.getsockname()[1])
        connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive_and_append(pipe: Pipe, path: str, request_size: int, _: int, *, synced: bool = False) -> None:
    connection = accept(pipe)
    buffer = memoryview(bytearray(request_size))
    log = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while True:
        have = 0
        while have < request_size:
            got = connection.recv_into(buffer[have:])
            if not got:
                return
            have += got
        os.write(log, buffer)
        if synced:
            os.fdatasync(log)
        connection.sendall(ANSWER)


def receive_append_and_sync(pipe: Pipe, path: str, request_size: int, size: int) -> None:
    receive_and_append(pipe, path, request_size, size, synced=True)


def send_from_file(pipe: Pipe, path: str, request_size: int, size: int) -> None:
    """The file is what was received before; it is read from beginning to end again and again."""
    connection = accept(pipe)
    log = os.open(path, os.O_RDONLY)
    end = os.fstat(log).st_size - size
    offset = 0
    while True:
        if len(connection.recv(request_size, socket.MSG_WAITALL)) < request_size:
            return
        connection.sendall(SIZE.pack(size))
        left = size
        while left:
            left -= os.sendfile(connection.fileno(), log, offset + size - left, left)
        offset = offset + size if offset + size <= end else 0
