"""The HTTP door: its pages, and what it makes of requests it does not like."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ottla import Broker
from ottla.client.admin import create_topic
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.gateways.http import BODY_MAX, HEADERS_MAX
from tests.unit.gateways.conftest import Caller


@pytest.fixture
def http(broker: Broker) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{broker.bootstrap}", timeout=20) as client:
        yield client


def test_the_front_page_says_what_this_is_and_links_on(broker: Broker, http: httpx.Client) -> None:
    page = http.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "Kafka" in page.text and broker.bootstrap in page.text
    assert 'href="/health"' in page.text and 'href="/metrics"' in page.text


def test_nothing_on_a_page_can_run(http: httpx.Client) -> None:
    page = http.get("/")
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in page.headers


def test_a_broker_that_serves_is_healthy(http: httpx.Client) -> None:
    answer = http.get("/health")
    assert answer.status_code == 200
    found = answer.json()
    assert found["live"] and found["ready"]
    assert found["recovering"] == [] and found["offline_log_dirs"] == []
    assert http.get("/health/live").json() == {"live": True}
    assert http.get("/health/ready").status_code == 200


def test_a_broker_without_a_working_disk_is_alive_but_not_ready(tmp_path: object) -> None:
    with Broker(data_dir=str(tmp_path)) as broker:
        for directory in broker.node.log_directories:
            directory.error = OSError("pulled out")
        with httpx.Client(base_url=f"http://{broker.bootstrap}") as client:
            answer = client.get("/health")
            assert answer.status_code == 503
            assert answer.json()["offline_log_dirs"] == broker.data_dirs
            assert client.get("/health/live").status_code == 200
        for directory in broker.node.log_directories:
            directory.error = None


def test_several_requests_share_a_connection(http: httpx.Client) -> None:
    with Caller((http.base_url.host, http.base_url.port or 0)) as caller:
        request = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
        caller.socket.sendall(request * 3)
        answer = caller.hang_up()
    assert answer.count(b"HTTP/1.1 200 OK") == 3


def test_a_head_request_gets_headers_only(http: httpx.Client) -> None:
    answer = http.head("/health/live")
    assert answer.status_code == 200 and answer.content == b""
    assert int(answer.headers["content-length"]) > 0
    assert http.get("/health/live").status_code == 200


@pytest.mark.parametrize("path", ["/nothing", "/health/", "//metrics", "/metrics/../metrics", "/%2e"])
def test_what_is_not_there_is_not_found(broker: Broker, path: str) -> None:
    with Caller(broker.addresses[0]) as caller:
        caller.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert caller.hang_up().startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_pages_can_only_be_read(http: httpx.Client, method: str) -> None:
    answer = http.request(method, "/metrics", content=b"PRODUCE topic key value\n")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_body_that_is_too_large_is_refused(http: httpx.Client) -> None:
    assert http.post("/", content=b"x" * BODY_MAX).status_code == 405
    assert http.post("/", content=b"x" * (BODY_MAX + 1)).status_code == 413


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # without a Host
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 2 * HEADERS_MAX + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 2 * HEADERS_MAX, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400),
    ],
)
def test_a_malformed_request_is_refused_and_the_connection_closed(
    broker: Broker, sent: bytes, status: int
) -> None:
    with Caller(broker.addresses[0]) as caller:
        caller.socket.sendall(sent)
        assert caller.line().startswith(f"HTTP/1.1 {status} ")
        while caller.line():
            pass


def test_a_body_never_reaches_another_door(broker: Broker, http: httpx.Client) -> None:
    """A web page that posts commands to this port has posted a body, and no commands."""
    http.post("/", content=b"\nPRODUCE Smuggled k v\n")
    with Caller(broker.addresses[0]) as caller:
        assert "Smuggled 1" not in caller.ask_all("TOPICS")


def test_a_broker_that_recovers_says_what_and_serves_nothing_else(tmp_path: Path) -> None:
    asyncio.run(recover_slowly(tmp_path))


async def recover_slowly(tmp_path: Path) -> None:
    async with Broker(data_dir=tmp_path) as broker, Cluster(broker.bootstrap) as cluster:
        await create_topic(cluster, "orders")
    # Reading a pipe waits for somebody to write: a recovery that takes until we let it go on.
    metadata = tmp_path / "orders-0" / "partition.metadata"
    content, aside = metadata.read_bytes(), tmp_path / "aside"
    metadata.rename(aside)
    os.mkfifo(metadata)
    broker = Broker(data_dir=tmp_path)
    starting = asyncio.create_task(broker.start())
    pipe = await asyncio.to_thread(metadata.open, "wb")  # the broker has opened the other end
    async with httpx.AsyncClient(base_url=f"http://{broker.bootstrap}") as client:
        answer = await client.get("/health")
        assert answer.status_code == 503
        assert answer.json()["live"] and not answer.json()["ready"]
        assert answer.json()["recovering"] == ["orders-0"]
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.get("/metrics")).status_code == 503
        reader, writer = await asyncio.open_connection(*broker.addresses[0])
        writer.write(b"TOPICS\n")
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ClientError):
            await Connection.open(*broker.addresses[0])
        aside.rename(metadata)
        with pipe:
            pipe.write(content)
        await starting
        answer = await client.get("/health")
        assert answer.status_code == 200 and answer.json()["recovering"] == []
    await broker.stop()
