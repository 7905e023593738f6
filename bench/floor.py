"""The floor: what the same bytes cost when nothing is done to them but what the kernel has to do.

A process of its own receives batches of 0.9 MB over loopback, appends them to a file, syncs it or not, and
answers a few bytes; or sends them from the file with sendfile. Whoever uses sockets and files can hardly cost
less.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe

import psutil

from bench.brokers import Subject, cost_of
from bench.throughput import RECEIVE, RECEIVE_SYNCED, SEND
from bench.wire import SIZE, Connection, batch, fetch_frame, produce_frame
from bench.workload import Figure, Site

ANSWER = SIZE.pack(60) + bytes(60)


def floor(site: Site, megabytes: int) -> list[Figure]:
    data = batch(900, 1_000)
    inward = produce_frame("floor", data)
    outward = fetch_frame("floor", 0, partition_max_bytes=len(data))
    rounds = site.work(megabytes * 1e6 / len(data) / 2, at_least=4)
    with tempfile.TemporaryDirectory(prefix="ottla-floor-") as folder:
        path = f"{folder}/00000000000000000000.log"
        return [
            *measured(RECEIVE, receive_and_append, path, inward, len(data), rounds),
            *measured(RECEIVE_SYNCED, receive_append_and_sync, f"{path}.synced", inward, len(data), rounds),
            *measured(SEND, send_from_file, path, outward, len(data), rounds),
        ]


def measured(name: str, serve: Serve, path: str, request: bytes, size: int, rounds: int) -> list[Figure]:
    """Two requests on their way at a time, from the client that the brokers' large batches come from."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, path, len(request), size), daemon=True)
    process.start()
    try:
        bootstrap = f"127.0.0.1:{ours.recv()}"
        subject = Subject(bootstrap, psutil.Process(process.pid))
        with Connection(subject.address) as connection:

            def work(rounds: int) -> None:
                for _ in range(rounds):
                    connection.pipeline(request * 2, 2)

            work(rounds // 4)
            cost = cost_of(subject, lambda: work(rounds))
    finally:
        process.kill()
        process.join()
    gigabytes = rounds * 2 * size / 1e9
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
