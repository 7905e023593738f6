"""The command line against a real broker. With --referee that is Apache Kafka, which it serves as well."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import ottla
from ottla.client.cluster import Cluster
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.testing.broker import TestBroker
from tests.interop.cli import Cli
from tests.interop.doorman import CERTIFICATES, Doorman, server_context
from tests.interop.test_client_security import broker_behind
from tests.interop.topics import Names, NewTopic, eventually

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}

SAFE_DOWNGRADE = 2  # of UpdateFeatures


@pytest.fixture
def cli(bootstrap: str) -> Cli:
    return Cli(bootstrap)


# --- topics ------------------------------------------------------------------------------


def test_a_topic_is_made_shown_and_deleted(cli: Cli, unique: Names) -> None:
    name = unique("topic")

    (made,) = cli.json("topic", "create", name, "-p", "3", "-c", "retention.ms=123456")
    assert (made["topic"], made["created"], made["partitions"]) == (name, True, 3)
    listed = {each["topic"]: each for each in cli.json("topic", "list")}
    assert listed[name]["partitions"] == 3
    assert listed[name]["id"] == made["id"]
    described = cli.json("topic", "describe", name)
    assert [each["partition"] for each in described["partition_details"]] == [0, 1, 2]
    assert {"name": "retention.ms", "value": "123456"}.items() <= {
        key: value
        for each in described["configs"]
        if each["name"] == "retention.ms"
        for key, value in each.items()
    }.items()
    shown = cli("topic", "describe", name)
    assert "settings:   retention.ms=123456\n" in shown.out
    assert any(line.split()[0] == name for line in cli("topic", "list").lines)

    assert cli("topic", "delete", name).out == f"deleted topic {name}\n"
    assert name not in cli("topic", "list").out
    assert "UNKNOWN_TOPIC_OR_PARTITION" in cli.fails("topic", "describe", name)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in cli.fails("topic", "delete", name)


def test_making_a_topic_twice(cli: Cli, unique: Names) -> None:
    name = unique("topic")
    assert cli("topic", "create", name, "-p", "1").out == (
        f"created topic {name}: 1 partition, replication factor 1\n"
    )

    assert "(TOPIC_ALREADY_EXISTS); delete it first, or add --if-not-exists" in cli.fails(
        "topic", "create", name
    )
    assert cli("topic", "create", name, "--if-not-exists").out == f"topic {name} exists already\n"
    assert cli.json("topic", "create", name, "--if-not-exists") == [{"topic": name, "created": False}]


def test_topics_that_cannot_be_made_or_deleted_do_not_keep_the_others_from_it(
    cli: Cli, unique: Names
) -> None:
    first, last, missing = unique("topic"), unique("topic"), unique("missing")

    made = cli("topic", "create", first, "b!", last, "-p", "1", code=1)
    assert [line.split(":")[0] for line in made.lines] == [f"created topic {first}", f"created topic {last}"]
    assert made.err.startswith("ottla: topic b!: ") and made.err.count("\n") == 1
    again = cli("topic", "create", first, "--json", code=1)
    assert [(each["created"], "ALREADY_EXISTS" in each["error"]) for each in again.json()] == [(False, True)]

    deleted = cli("topic", "delete", first, missing, last, code=1)
    assert deleted.lines == [f"deleted topic {first}", f"deleted topic {last}"]
    assert deleted.err.startswith(f"ottla: topic {missing}: ") and deleted.err.count("\n") == 1
    again = cli("topic", "delete", missing, "--json", code=1)
    assert [(each["topic"], each["deleted"]) for each in again.json()] == [(missing, False)]


def test_a_dry_run_makes_nothing(cli: Cli, unique: Names) -> None:
    name = unique("topic")

    assert cli("topic", "create", name, "-p", "2", "--dry-run").out.startswith(f"could create topic {name}")
    assert [each["id"] for each in cli.json("topic", "create", name, "--dry-run")] == [None]
    assert name not in cli("topic", "list").out
    assert "INVALID_REPLICATION_FACTOR" in cli.fails("topic", "create", name, "-r", "99")
    assert "INVALID_CONFIG" in cli.fails("topic", "create", name, "-c", "no.such.setting=1")


def test_internal_topics_are_listed_when_asked(cli: Cli, topic: str, unique: Names) -> None:
    cli("produce", topic, given="x\n")
    cli("consume", topic, "--group", unique("group"))

    assert "__consumer_offsets" not in cli("topic", "list").out
    assert "__consumer_offsets" in cli("topic", "list", "--internal").out


def test_a_topic_grows(cli: Cli, new_topic: NewTopic) -> None:
    name = new_topic(partitions=1)

    assert cli("topic", "add-partitions", name, "2").out == f"topic {name} has 3 partitions now\n"
    assert cli.json("topic", "alter", name, "--partitions", "4")["partitions"] == 4
    assert cli.json("topic", "describe", name)["partitions"] == 4
    assert "INVALID_PARTITIONS" in cli.fails("topic", "alter", name, "--partitions", "2")


def test_settings_of_a_topic(cli: Cli, topic: str) -> None:
    assert (
        cli("topic", "alter", topic, "-c", "retention.ms=1000").out
        == f"topic {topic}: set retention.ms=1000\n"
    )
    (found,) = cli.json("config", "get", "topic", topic, "retention.ms")
    assert (found["value"], found["source"]) == ("1000", "topic")

    changed = cli.json("config", "set", "topic", topic, "retention.ms=2000", "max.message.bytes=5000")
    assert changed["changes"] == [
        {"name": "retention.ms", "value": "2000"},
        {"name": "max.message.bytes", "value": "5000"},
    ]
    cli("config", "set", "topic", topic, "retention.ms=3000", "--dry-run")
    names = {line.split()[0]: line.split()[1] for line in cli("config", "get", "topic", topic).lines}
    assert (names["retention.ms"], names["max.message.bytes"]) == ("2000", "5000")
    assert "segment.bytes" not in names
    assert "segment.bytes" in cli("config", "get", "topic", topic, "--all").out

    cli("config", "unset", "topic", topic, "retention.ms")
    cli("topic", "alter", topic, "--unset", "max.message.bytes")
    assert "retention.ms" not in cli("config", "get", "topic", topic).out
    assert "INVALID_CONFIG" in cli.fails("config", "set", "topic", topic, "retention.ms=soon")
    for command in (("config", "get", "topic", topic), ("config", "unset", "topic", topic)):
        assert "has no setting no.such" in cli.fails(*command, "no.such")
    assert "has no setting no.such" in cli.fails("topic", "alter", topic, "--unset", "no.such")


def test_settings_of_brokers(cli: Cli) -> None:
    broker = str(cli.json("cluster")["brokers"][0]["id"])

    (found,) = cli.json("config", "get", "broker", broker, "num.io.threads", "--docs")
    assert found["value"].isdecimal()
    assert found["documentation"]
    cli("config", "set", "broker", broker, "log.cleaner.threads=1")
    (found,) = cli.json("config", "get", "broker", broker, "log.cleaner.threads")
    assert (found["value"], found["source"]) == ("1", "broker, live")
    cli("config", "unset", "broker", broker, "log.cleaner.threads")
    cli("config", "set", "broker", "all", "log.cleaner.threads=1", "--dry-run")
    cli("config", "unset", "broker", "all", "log.cleaner.threads")  # though nobody has set it
    assert "has no setting no.such" in cli.fails("config", "unset", "broker", "all", "no.such")
    assert cli.fails("config", "get", "broker", "77") == (
        "ottla: there is no broker 77; `ottla cluster` shows those there are\n"
    )


def test_settings_of_groups(cli: Cli, unique: Names) -> None:
    group, name = unique("group"), "consumer.session.timeout.ms"

    cli("config", "set", "group", group, f"{name}=50000")
    (found,) = cli.json("config", "get", "group", group)
    assert (found["name"], found["value"], found["source"]) == (name, "50000", "group")
    assert "INVALID_CONFIG" in cli.fails("config", "set", "group", group, f"{name}=1")
    cli("config", "unset", "group", group, name)
    assert cli.json("config", "get", "group", group) == []


def test_old_records_are_deleted(cli: Cli, new_topic: NewTopic) -> None:
    name = new_topic(partitions=2)
    cli("produce", name, "-p", "0", given="a\nb\nc\n")
    cli("produce", name, "-p", "1", given="d\n")

    assert cli.json("topic", "delete-records", name, "--before", "2", "-p", "0") == {
        "topic": name,
        "partitions": [{"partition": 0, "start_offset": 2}],
    }
    assert sorted(cli("consume", name).lines) == ["c", "d"]
    assert "OFFSET_OUT_OF_RANGE" in cli.fails("topic", "delete-records", name, "--before", "9", "-p", "1")
    cli("topic", "delete-records", name, "--before", "end")
    assert cli("consume", name).out == ""
    assert "no partition 7" in cli.fails(
        "topic", "delete-records", name, "--before", "end", "-p", "7", code=2
    )


# --- records -----------------------------------------------------------------------------


def test_lines_become_records_and_records_lines(cli: Cli, topic: str) -> None:
    cli("produce", topic, given="one\ntwo\r\n\nlast without end")

    assert cli("consume", topic).lines == ["one", "two", "", "last without end"]
    assert cli("consume", topic, "-f", "%t %p %o %v\\n", "-n", "2").lines == [
        f"{topic} 0 0 one",
        f"{topic} 0 1 two",
    ]


def test_keys_headers_and_tombstones(cli: Cli, topic: str) -> None:
    cli("produce", topic, "-K", ":", "-H", "source=test", "-H", "n=1", "-Z", given="a:1\nb:\nc:x:y\n")
    cli("produce", topic, "-k", "fixed", given="v\n")

    assert cli("consume", topic, "-f", "%k|%v|%V|%h\\n").lines == [
        "a|1|1|source=test,n=1",
        "b||-1|source=test,n=1",
        "c|x:y|3|source=test,n=1",
        "fixed|v|1|",
    ]
    assert "is not in the line" in cli.fails("produce", topic, "-K", ":", given="no separator\n", code=2)


def test_a_header_may_be_there_twice_and_bytes_need_not_be_text(cli: Cli, topic: str) -> None:
    not_text = os.fsdecode(b"\xff")
    cli("produce", topic, "-k", not_text, "-H", "a=1", "-H", f"b={not_text}", "-H", "a=2", given="v\n")

    [record] = [json.loads(line) for line in cli("consume", topic, "--json").lines]
    assert record["key_base64"] == "/w=="
    assert record["headers"] == [
        {"key": "a", "value": "1"},
        {"key": "b", "value_base64": "/w=="},
        {"key": "a", "value": "2"},
    ]
    assert "is not UTF-8" in cli.fails("topic", "create", not_text)
    assert "is not UTF-8" in cli.fails("produce", not_text, given="v\n")


def test_what_was_sent_is_told_as_json(cli: Cli, topic: str) -> None:
    ran = cli("produce", topic, "--json", given="a\nb\n")

    assert [json.loads(line) for line in ran.lines] == [
        {"topic": topic, "partition": 0, "offset": 0},
        {"topic": topic, "partition": 0, "offset": 1},
    ]
    found = [json.loads(line) for line in cli("consume", topic, "--json").lines]
    assert [(each["offset"], each["key"], each["value"]) for each in found] == [
        (0, None, "a"),
        (1, None, "b"),
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression_is_seen_by_nobody(cli: Cli, topic: str, codec: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(500))
    cli("produce", topic, "-z", codec, "--acks", "1", given=lines)

    assert cli("consume", topic).out == lines


def test_files_are_sent_by_line_or_as_a_whole(cli: Cli, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    (tmp_path / "b").write_bytes(b"\xff\x00\n3")
    cli("produce", topic, str(tmp_path / "a"), "--rate", "1000")
    cli("produce", topic, "--whole", str(tmp_path / "a"), str(tmp_path / "b"))

    found = [json.loads(line) for line in cli("consume", topic, "--json").lines]
    assert [each.get("value") for each in found] == ["1", "2", "1\n2\n", None]
    assert found[-1]["value_base64"] == "/wAKMw=="
    assert "No such file" in cli.fails("produce", topic, str(tmp_path / "none"))


def test_keys_go_where_other_clients_send_them(cli: Cli, bootstrap: str, new_topic: NewTopic) -> None:
    name = new_topic(partitions=5)
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for number in range(20):
        producer.produce(name, key=f"key{number}", value="theirs")
    producer.flush()
    cli("produce", name, "-K", ":", given="".join(f"key{number}:ours\n" for number in range(20)))

    places: dict[str, set[str]] = {}
    for line in cli("consume", name, "-f", "%k %p\\n").lines:
        key, partition = line.split()
        places.setdefault(key, set()).add(partition)
    assert len(places) == 20
    assert all(len(partitions) == 1 for partitions in places.values())


def test_starting_points_of_consume(cli: Cli, bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    hour = 3_600_000
    now = time.time_ns() // 1_000_000
    for ago in (5, 3, 1):
        producer.produce(topic, value=f"{ago} hours", timestamp=now - ago * hour)
        producer.flush()

    assert cli("consume", topic, "--offset", "1").lines == ["3 hours", "1 hours"]
    assert cli("consume", topic, "--offset", "-1").lines == ["1 hours"]
    assert cli("consume", topic, "--offset", "99").lines == []
    assert cli("consume", topic, "--time", "2 hours ago").lines == ["1 hours"]
    assert cli("consume", topic, "--time", str(now - 4 * hour)).lines == ["3 hours", "1 hours"]
    assert cli("consume", topic, "--time", "now").lines == []
    assert cli("consume", topic, "--from", "end").lines == []
    assert cli("consume", topic, "--from", "beginning", "-n", "1").lines == ["5 hours"]
    assert cli("consume", topic, "-p", "0", "-n", "0").lines == []
    assert "is no time" in cli.fails("consume", topic, "--time", "soon", code=2)
    assert "no partition 3" in cli.fails("consume", topic, "-p", "3", code=2)


def test_topics_are_chosen_by_a_pattern(cli: Cli, unique: Names) -> None:
    stem, group = unique("shop"), unique("group")
    for name, partitions in ((f"{stem}-a", 1), (f"{stem}-b", 2), (f"other-{stem}-c", 1)):
        cli("topic", "create", name, "-p", str(partitions))
        cli("produce", name, "-p", str(partitions - 1), given=f"of {name}\n")

    of = {name: f"of {stem}-{name}" for name in "ab"}
    assert sorted(cli("consume", "--include", f"{stem}-.*").lines) == [of["a"], of["b"]]
    assert cli("consume", "--include", f"{stem}-.*", "-p", "1").lines == [of["b"]]
    assert cli("consume", "--include", f"{stem}-(b|c)", "--group", group).lines == [of["b"]]
    assert cli("consume", "--include", f"{stem}-.*", "--group", group).lines == [of["a"]]
    assert f"no topic matches --include {stem};" in cli.fails("consume", "--include", stem)
    assert "no topic matches" in cli.fails("consume", "--include", "__consumer_offsets")


def test_a_topic_that_is_missing(cli: Cli, unique: Names) -> None:
    name = unique("missing")

    assert "`ottla topic list` shows" in cli.fails("consume", name)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in cli.fails("produce", name, "--no-create", given="x\n")
    assert name not in cli("topic", "list").out


def test_a_partition_or_separator_that_cannot_be_is_told_at_once(cli: Cli, topic: str) -> None:
    told = cli.fails("produce", topic, "-p", "7", given="v\n", code=2)
    assert told == f"ottla: topic {topic} has no partition 7, only 0\n"
    assert "--key-separator is empty" in cli.fails("produce", topic, "-K", "", given="v\n", code=2)
    assert cli("consume", topic).lines == []


def test_a_producer_that_gives_up_leaves_the_rest_of_its_input(bootstrap: str, topic: str) -> None:
    ran = in_a_shell(f"yes | head -c 5000000 | $OTTLA produce {topic} -K :", bootstrap)
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1


def test_a_record_that_is_too_large(cli: Cli, new_topic: NewTopic) -> None:
    name = new_topic(max_message_bytes=1000)

    assert "(MESSAGE_TOO_LARGE); raise max.message.bytes" in cli.fails("produce", name, given="x" * 2000)


def test_a_request_that_the_broker_does_not_read_is_told_with_the_limit() -> None:
    with TestBroker({"socket.request.max.bytes": "100000"}) as broker:
        told = Cli(broker.bootstrap).fails("produce", "large", given="x" * 200_000)
        assert "above its socket.request.max.bytes of 100,000; raise that" in told


# --- groups ------------------------------------------------------------------------------


def test_a_group_goes_on_where_it_was(cli: Cli, topic: str, unique: Names) -> None:
    group = unique("group")
    cli("produce", topic, given="a\nb\nc\n")

    assert cli("consume", topic, "--group", group, "-n", "2").lines == ["a", "b"]
    assert cli("consume", topic, "--group", group, "--no-commit").lines == ["c"]
    assert cli("consume", topic, "--group", group).lines == ["c"]
    assert cli("consume", topic, "--group", group).lines == []

    cli("produce", topic, given="d\n")
    (lag,) = cli.json("group", "lag", group)
    assert lag == {
        "group": group,
        "topic": topic,
        "partition": 0,
        "committed": 3,
        "end": 4,
        "lag": 1,
        "member": None,
    }
    assert [line.split() for line in cli("group", "lag", group).lines][1][:6] == [group, topic, *"0341"]
    assert group in cli("group", "lag").out
    assert {"group": group, "type": "classic", "state": "Empty", "protocol": "consumer"} in cli.json(
        "group", "list"
    )
    described = cli.json("group", "describe", group)
    assert (described["state"], described["members"], described["lag"]) == ("Empty", [], [lag])
    assert "state:       Empty\n" in cli("group", "describe", group).out


def test_a_group_that_never_committed_may_start_at_the_end(cli: Cli, topic: str, unique: Names) -> None:
    group = unique("group")
    cli("produce", topic, given="before\n")

    assert cli("consume", topic, "--group", group, "--from", "end").lines == []


def test_a_group_is_moved(cli: Cli, new_topic: NewTopic, unique: Names) -> None:
    name, group = new_topic(partitions=2), unique("group")
    cli("produce", name, given="0\n1\n2\n3\n")
    cli("consume", name, "--group", group)

    dry = cli("group", "reset", group, "--from", "beginning")
    assert "nothing was changed; add --execute to do it" in dry.err
    assert [line.split() for line in dry.lines[1:]] == [[name, *"020"], [name, *"120"]]
    assert [each["lag"] for each in cli.json("group", "lag", group)] == [0, 0]

    moved = cli.json("group", "reset", group, "--from", "beginning", "--execute")
    assert moved["executed"] is True
    assert [each["to"] for each in moved["moves"]] == [0, 0]
    assert [each["lag"] for each in cli.json("group", "lag", group)] == [2, 2]
    cli("group", "reset", group, "--topic", f"{name}:1", "--offset", "1", "--execute")
    assert [each["committed"] for each in cli.json("group", "lag", group)] == [0, 1]
    cli("group", "reset", group, "--shift", "1", "--execute")
    assert [each["committed"] for each in cli.json("group", "lag", group)] == [1, 2]
    cli("group", "reset", group, "--shift", "-99", "--execute")
    assert [each["committed"] for each in cli.json("group", "lag", group)] == [0, 0]
    cli("group", "reset", group, "--time", "now", "--execute")
    assert [each["committed"] for each in cli.json("group", "lag", group)] == [2, 2]
    assert len(cli("consume", name, "--group", group).lines) == 0

    # A group need not exist to be given offsets.
    other = unique("group")
    assert "say which topics with --topic" in cli.fails("group", "reset", other, "--from", "end")
    cli("group", "reset", other, "--topic", name, "--from", "end", "--execute")
    assert [each["lag"] for each in cli.json("group", "lag", other)] == [0, 0]


def test_a_group_is_described_where_share_groups_are_switched_off() -> None:
    async def switch_off(bootstrap: str) -> None:
        update = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
        async with Cluster(bootstrap) as cluster:
            answer = await cluster.ask(
                UpdateFeaturesRequest(feature_updates=[update]), UpdateFeaturesResponse
            )
            assert answer.error_code == 0

    with TestBroker() as broker:
        asyncio.run(switch_off(broker.bootstrap))
        cli = Cli(broker.bootstrap)
        cli("produce", "orders", given="a\n")
        cli("consume", "orders", "--group", "readers")
        assert cli.json("group", "describe", "readers")["type"] == "classic"
        assert "GROUP_ID_NOT_FOUND" in cli.fails("group", "describe", "nobody")


def test_groups_are_deleted(cli: Cli, topic: str, unique: Names) -> None:
    group = unique("group")
    cli("produce", topic, given="a\n")
    cli("consume", topic, "--group", group)

    assert cli("group", "delete", group).out == f"deleted group {group}\n"
    assert "(GROUP_ID_NOT_FOUND); `ottla group list`" in cli.fails("group", "describe", group)
    assert "GROUP_ID_NOT_FOUND" in cli.fails("group", "delete", group)
    cli("consume", topic, "--group", group)
    deleted = cli("group", "delete", "nobody", group, code=1)
    assert deleted.out == f"deleted group {group}\n"
    assert deleted.err.startswith("ottla: group nobody: ")


def test_a_group_with_members_is_described_and_left_alone(
    cli: Cli, bootstrap: str, topic: str, unique: Names
) -> None:
    from confluent_kafka import Consumer

    group = unique("group")
    cli("produce", topic, given="a\n")
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "client.id": "me",
        }
    )
    try:
        consumer.subscribe([topic])
        message = None
        while message is None:
            message = consumer.poll(1)
        described = cli.json("group", "describe", group)
        (member,) = described["members"]
        assert (described["state"], member["client_id"]) == ("Stable", "me")
        assert member["partitions"] == [{"topic": topic, "partition": 0}]
        assert topic in cli("group", "describe", group).out
        assert "stop its consumers first" in cli.fails("group", "delete", group)
        refused = cli.fails("group", "reset", group, "--topic", topic, "--from", "end", "--execute")
        assert "its consumers must be stopped first" in refused
    finally:
        consumer.close()


# --- the cluster, transactions, measurements ---------------------------------------------


def test_the_cluster(cli: Cli, bootstrap: str, topic: str) -> None:
    found = cli.json("cluster")

    assert found["cluster"] == AdminClient({"bootstrap.servers": bootstrap}).list_topics().cluster_id
    assert [f"{each['host']}:{each['port']}" for each in found["brokers"]] == [bootstrap]
    assert (found["under_replicated"], found["without_leader"]) == (0, 0)
    assert found["topics"] >= 1
    assert found["controller"] == found["brokers"][0]["id"]
    shown = cli("cluster").out
    assert "all well" in shown and bootstrap in shown


@pytest.fixture
def transactional(bootstrap: str, unique: Names) -> Iterator[tuple[str, Producer]]:
    name = unique("transaction")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    yield name, producer


def test_transactions_are_listed_and_described(
    cli: Cli, topic: str, transactional: tuple[str, Producer]
) -> None:
    name, producer = transactional
    producer.begin_transaction()
    producer.produce(topic, value="open")
    producer.flush()

    (listed,) = (each for each in cli.json("transactions", "list") if each["transactional_id"] == name)
    assert listed["state"] == "Ongoing"
    assert name in cli("transactions", "list", "--state", "Ongoing").out
    assert name not in cli("transactions", "list", "--state", "CompleteAbort").out
    described = cli.json("transactions", "describe", name)
    assert described["partitions"] == [{"topic": topic, "partition": 0}]
    assert described["producer_id"] == listed["producer_id"]
    shown = cli("transactions", "describe", name).out
    assert f"{topic}-0" in shown and "open since:" in shown
    producer.abort_transaction(30)
    eventually(lambda: "CompleteAbort" in cli("transactions", "describe", name).out)
    assert "open since:" not in cli("transactions", "describe", name).out
    assert "TRANSACTIONAL_ID_NOT_FOUND" in cli.fails("transactions", "describe", "no-such-id")


def test_aborted_records_are_left_out_when_asked(
    cli: Cli, topic: str, transactional: tuple[str, Producer]
) -> None:
    _, producer = transactional
    for value, commit in (("kept", True), ("dropped", False), ("kept too", True)):
        producer.begin_transaction()
        producer.produce(topic, value=value)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.flush()
            producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, value="undecided")
    producer.flush()

    assert cli("consume", topic, "--committed").lines == ["kept", "kept too"]
    assert cli("consume", topic).lines == ["kept", "dropped", "kept too", "undecided"]
    producer.abort_transaction(30)
    assert cli("consume", topic, "--committed").lines == ["kept", "kept too"]


def test_measurements(cli: Cli, topic: str) -> None:
    produced = cli.json("perf", "produce", topic, "-n", "500", "-s", "50")
    assert (produced["records"], produced["bytes"]) == (500, 25_000)
    assert produced["latency_ms"]["p50"] <= produced["latency_ms"]["p99"] <= produced["latency_ms"]["max"]
    consumed = cli.json("perf", "consume", topic)
    assert (consumed["records"], consumed["bytes"]) == (500, 25_000)
    assert set(consumed["fetch_ms"]) == {"average", "p50", "p95", "p99", "p99.9", "max"}
    assert cli.json("perf", "consume", topic, "-n", "10")["records"] == 10
    latency = cli.json("perf", "latency", topic, "-n", "5")
    assert latency["records"] == 5
    assert set(latency["end_to_end_ms"]) == {"average", "p50", "p95", "p99", "p99.9", "max"}
    shown = cli("perf", "produce", topic, "-n", "5", "--rate", "1000").out
    assert "records/s" in shown and "p99.9" in shown


# --- as a process ------------------------------------------------------------------------


def start(bootstrap: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ottla", *arguments, "-b", bootstrap],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has them ignore interrupts, and what they start too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_following_shows_lines_as_they_are_typed_until_it_is_told_to_stop(
    bootstrap: str, topic: str, unique: Names, stop: signal.Signals, code: int
) -> None:
    group = unique("group")
    with start(bootstrap, "consume", topic, "--follow", "--group", group) as reader:
        with start(bootstrap, "produce", topic) as writer:
            assert writer.stdin and reader.stdout
            for line in ("first\n", "second\n"):
                writer.stdin.write(line)
                writer.stdin.flush()
                assert reader.stdout.readline() == line  # while the writer waits for more to be typed
            writer.stdin.close()
            assert writer.wait(30) == 0
        reader.send_signal(stop)
        assert reader.wait(30) == code
        assert reader.stderr and reader.stderr.read() == ""

    # It left the group and did not take its offsets with it.
    cli = Cli(bootstrap)
    assert cli.json("group", "describe", group)["members"] == []
    assert [each["committed"] for each in cli.json("group", "lag", group)] == [2]


@pytest.mark.parametrize("group", [False, True], ids=["alone", "in a group"])
def test_following_goes_on_with_partitions_that_are_added(
    bootstrap: str, cli: Cli, topic: str, unique: Names, group: bool
) -> None:
    cli("produce", topic, given="old\n")
    options = ["--follow", "-f", "%p %v\\n", *(["--group", unique("group")] if group else [])]
    with start(bootstrap, "consume", topic, *options) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "0 old\n"
        cli("topic", "add-partitions", topic, "1")
        cli("produce", topic, "-p", "1", given="new\n")
        assert reader.stdout.readline() == "1 new\n"
        cli("produce", topic, "-p", "0", given="newer\n")
        assert reader.stdout.readline() == "0 newer\n"
        reader.send_signal(signal.SIGINT)
        assert reader.wait(30) == 130


@pytest.mark.parametrize("group", [False, True], ids=["alone", "in a group"])
def test_following_a_pattern_finds_topics_that_are_made_later(
    bootstrap: str, cli: Cli, unique: Names, group: bool
) -> None:
    stem = unique("shop")
    options = ["--follow", "-f", "%t %v\\n", *(["--group", unique("group")] if group else [])]
    with start(bootstrap, "consume", "--include", f"{stem}-.*", *options) as reader:
        assert reader.stdout
        for name in (f"{stem}-one", f"{stem}-two"):
            cli("produce", name, given="new\n")
            assert reader.stdout.readline() == f"{name} new\n"
        cli("produce", f"{stem}-one", given="newer\n")
        assert reader.stdout.readline() == f"{stem}-one newer\n"
        reader.send_signal(signal.SIGINT)
        assert reader.wait(30) == 130


def test_a_reader_that_has_had_enough_is_no_error(bootstrap: str, topic: str) -> None:
    Cli(bootstrap)("produce", topic, given="".join(f"{number:0100}\n" for number in range(5000)))
    with start(bootstrap, "consume", topic) as reader:
        assert reader.stdout and reader.stderr
        assert reader.stdout.readline().endswith("0\n")
        reader.stdout.close()
        assert reader.stderr.read() == ""
        assert reader.wait(30) == 0


def in_a_shell(command: str, bootstrap: str) -> subprocess.CompletedProcess[str]:
    environment = ENVIRONMENT | {"OTTLA": f"{sys.executable} -m ottla", "OTTLA_BOOTSTRAP": bootstrap}
    return subprocess.run(["sh", "-c", command], env=environment, text=True, capture_output=True, timeout=60)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("command", ["--help", "topic list", "consume {topic}"])
def test_output_that_finds_no_room_is_told_in_one_line(bootstrap: str, topic: str, command: str) -> None:
    Cli(bootstrap)("produce", topic, given="hello\n")
    ran = in_a_shell(f"$OTTLA {command.format(topic=topic)} >/dev/full", bootstrap)
    assert (ran.returncode, ran.stderr) == (1, "ottla: cannot write the output: No space left on device\n")


def test_closed_streams_are_empty_ones(bootstrap: str, topic: str) -> None:
    for command in (f"produce {topic} <&-", "topic list >&-", "topic list <&- >&- 2>&-"):
        ran = in_a_shell(f"$OTTLA {command}", bootstrap)
        assert (ran.returncode, ran.stderr) == (0, ""), command
    assert Cli(bootstrap)("consume", topic).lines == []


def test_an_interrupt_ends_a_producer_that_waits_for_input(bootstrap: str, topic: str) -> None:
    with start(bootstrap, "produce", topic) as writer:
        assert writer.stdin and writer.stderr
        writer.stdin.write("arrives\n")
        writer.stdin.flush()
        cli = Cli(bootstrap)
        deadline = time.monotonic() + 30
        while not cli("consume", topic).lines and time.monotonic() < deadline:
            pass
        writer.send_signal(signal.SIGINT)
        assert writer.wait(30) == 130
        assert writer.stderr.read() == ""


def test_offsets_of_a_group_are_those_that_other_clients_see(
    cli: Cli, bootstrap: str, topic: str, unique: Names
) -> None:
    from confluent_kafka import Consumer

    group = unique("group")
    cli("produce", topic, given="a\nb\n")
    cli("consume", topic, "--group", group)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        assert committed.offset == 2
    finally:
        consumer.close()


# --- on a terminal -----------------------------------------------------------------------


def on_terminal(bootstrap: str, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Exit code and everything shown, of a command whose input and outputs are a terminal."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments, "-b", bootstrap],
            env={**ENVIRONMENT, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # what a terminal says when nobody is left on the other side
            while chunk := os.read(ours, 65_536):
                shown += chunk
        return process.wait(30), shown.decode()
    finally:
        os.close(ours)


def test_people_get_tables_with_colour(bootstrap: str, topic: str) -> None:
    code, shown = on_terminal(bootstrap, "topic", "list")

    assert code == 0
    assert "\x1b[" in shown and "─" in shown
    assert topic in shown


def test_people_are_asked_before_something_is_lost(bootstrap: str, topic: str) -> None:
    code, shown = on_terminal(bootstrap, "topic", "delete", topic, typed="n\n")
    assert code == 1
    assert f"Delete {topic} with all records?" in shown and "ottla: nothing was changed" in shown

    code, shown = on_terminal(bootstrap, "topic", "delete", topic, typed="y\n")
    assert code == 0
    assert f"deleted topic {topic}" in shown


def test_people_see_how_far_a_measurement_is(bootstrap: str, topic: str) -> None:
    code, shown = on_terminal(bootstrap, "perf", "produce", topic, "-n", "3000")
    assert code == 0
    assert "producing" in shown and "/3000" in shown and "p99.9" in shown

    code, shown = on_terminal(bootstrap, "perf", "produce", topic, "-n", "10", "--quiet")
    assert code == 0
    assert "producing" not in shown


def test_lines_typed_at_a_terminal_are_sent(bootstrap: str, topic: str) -> None:
    code, shown = on_terminal(bootstrap, "produce", topic, typed="typed\n\x04")

    assert code == 0
    assert f"sent 1 record to {topic}" in shown
    assert Cli(bootstrap)("consume", topic).lines == ["typed"]


# --- clusters that want to know who we are -------------------------------------------------


def test_a_cluster_with_tls_and_passwords(tmp_path: Path) -> None:
    door = Doorman(tls=server_context(), users={"ada": "secret"}, mechanism="SCRAM-SHA-256")
    with broker_behind(door) as bootstrap:
        cli = Cli(bootstrap)
        properties = tmp_path / "client.properties"
        properties.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=ada\nsasl.password=secret\n"
            f"ssl.truststore.location={CERTIFICATES / 'authority.pem'}\nssl.truststore.type=PEM\n"
        )
        secured = ("--client-config", str(properties))
        cli(*secured, "produce", "greetings", given="hello\n")
        assert cli(*secured, "consume", "greetings", "--group", "readers").lines == ["hello"]
        wrong = cli.fails(*secured, "-X", "sasl.password=guessed", "topic", "list")
        assert "secret" not in wrong and "guessed" not in wrong
        cli.fails("topic", "list", "--timeout", "2")
