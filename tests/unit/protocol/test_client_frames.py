"""Requests that real clients sent, as `tools/record_frames.py` recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.protocol.apis import api_named
from ottla.protocol.batch import read_records
from ottla.protocol.codec import encode, reader
from ottla.protocol.headers import read_request_header, request_head

FRAMES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "fixtures" / "client_frames.json").read_text()
)


def read(recorded: dict[str, Any]) -> tuple[bytes, Any, Any, int]:
    frame = bytes.fromhex(recorded["frame"])
    found = api_named(recorded["api"])
    header, pos = read_request_header(frame, 0, len(frame))
    assert (header.request_api_key, header.request_api_version) == (found.key, recorded["version"])
    body, pos = reader(found.request, recorded["version"])(bytearray(frame + b"\xff" * 9), pos, len(frame))
    return frame, header, body, pos


@pytest.mark.parametrize("recorded", FRAMES, ids=lambda f: f"{f['client']}-{f['api']}-{f['version']}")
def test_a_clients_request_is_read_and_written_back_the_same(recorded: dict[str, Any]) -> None:
    frame, header, body, pos = read(recorded)
    head = request_head(header.request_api_key, recorded["version"], header.correlation_id, header.client_id)
    assert head + encode(body, recorded["version"]) == frame[:pos]
    assert header.client_id in ("aiokafka", "confluent", "kafka-python", "rdkafka") or "python" in str(
        header.client_id
    )


def test_only_librdkafkas_question_for_all_topics_has_surplus_bytes() -> None:
    surplus = {}
    for recorded in FRAMES:
        frame, _, body, pos = read(recorded)
        if pos != len(frame):
            surplus[recorded["client"], recorded["api"]] = (len(frame) - pos, body.topics)
    (((client, api), found),) = surplus.items()
    assert client.startswith("confluent-kafka") and client.endswith("list_topics")
    assert (api, found) == ("Metadata", (3, None))


@pytest.mark.parametrize("client", ["aiokafka", "confluent-kafka", "kafka-python"])
def test_the_records_that_a_client_sent_are_in_its_request(client: str) -> None:
    recorded = next(f for f in FRAMES if f["client"].startswith(client) and f["api"] == "Produce")
    _, _, body, _ = read(recorded)
    (partition,) = body.topic_data[0].partition_data
    (record,) = read_records(partition.records)
    assert body.topic_data[0].name == "frames"
    assert (record.key, record.value, record.headers) == (b"key", b"value", [("h", b"1")])


def test_old_and_new_versions_of_the_same_api_come_together() -> None:
    versions = {f["version"] for f in FRAMES if f["api"] == "Fetch"}
    assert {11, 12, 16} <= versions
