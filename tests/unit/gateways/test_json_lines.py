"""The JSON-lines door: Maelstrom messages to a real broker in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from ottla.gateways.json_lines import JsonLinesNode
from ottla.gateways.partition_logs import PartitionLogs
from ottla.server.broker import Broker

LINE_BYTES_MAX = 4_000_000
QUICK = {"ottla.durability": "kafka", "offsets.topic.num.partitions": "1"}


class Conversation:
    """One node, and what it has said."""

    def __init__(self, logs: PartitionLogs, *, full: bool = False) -> None:
        self.lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        self.said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.complaints: list[str] = []
        self.node = JsonLinesNode(
            logs, lambda line: self.said.put_nowait(json.loads(line)), self.complaints.append, full=full
        )

    def tell(self, message: object) -> None:
        self.lines.feed_data(json.dumps(message).encode() + b"\n")

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the answer to a request from a client."""
        self.tell({"src": "c1", "dest": "n1", "body": body})
        answer: dict[str, Any] = (await self.said.get())["body"]
        return answer


@asynccontextmanager
async def logs_of_a_broker() -> AsyncIterator[PartitionLogs]:
    async with Broker(properties=QUICK) as broker:
        logs = await PartitionLogs.of(broker)
        try:
            yield logs
        finally:
            logs.close()


def converse(
    story: Callable[[Conversation], Coroutine[Any, Any, None]], *, full: bool = False
) -> Conversation:
    """Run a story against one node, to the end of its input."""

    async def run() -> Conversation:
        async with logs_of_a_broker() as logs:
            conversation = Conversation(logs, full=full)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(conversation.node.run(conversation.lines))
                await story(conversation)
                conversation.lines.feed_eof()
            return conversation

    return asyncio.run(run())


def test_a_full_node_answers_with_every_field() -> None:
    async def story(node: Conversation) -> None:
        wanted = {"topic": "orders", "partition": 0}
        appended = await node.ask({"type": "partition_append", "msg_id": 1, "message": "one", **wanted})
        assert appended["segment"] == "00000000.log" and appended["timestamp"] > 1_700_000_000
        read = await node.ask({"type": "partition_read", "msg_id": 2, "offset": 0, **wanted})
        assert (read["message"], read["offset"], read["next_offset"]) == ("one", 0, 1)
        info = await node.ask({"type": "partition_info", "msg_id": 3, **wanted})
        assert (info["start_offset"], info["end_offset"], info["segments"]) == (0, 1, 1)
        assert info["total_bytes"] > 61

    converse(story, full=True)


def test_errors_are_maelstroms() -> None:
    async def story(node: Conversation) -> None:
        await node.ask(
            {"type": "partition_append", "msg_id": 1, "topic": "t", "partition": 0, "message": "x"}
        )
        for body, code in (
            ({"type": "fly"}, 10),
            ({"type": ["fly"]}, 10),
            ({"type": "partition_append", "topic": "t", "partition": 0}, 12),
            ({"type": "partition_append", "topic": "a/b", "partition": 0, "message": "x"}, 12),
            ({"type": "partition_append", "topic": "t", "partition": -1, "message": "x"}, 12),
            ({"type": "partition_append", "topic": "t", "partition": 10**9, "message": "x"}, 12),
            ({"type": "partition_append", "topic": "t", "partition": True, "message": "x"}, 12),
            ({"type": "partition_read", "topic": "t", "partition": 0, "offset": "0"}, 12),
            ({"type": "partition_read", "topic": "t", "partition": 0, "offset": 1}, 20),
            ({"type": "partition_read", "topic": "t", "partition": 0, "offset": 5}, 20),
            ({"type": "partition_read", "topic": "t", "partition": 4, "offset": 0}, 20),
            ({"type": "partition_info", "topic": "nowhere", "partition": 0}, 20),
            ({"type": "partition_append", "topic": "t", "partition": 0, "message": "x" * 2_000_000}, 22),
            ({"type": "partition_read", "topic": "t", "partition": 0, "offset": -1}, 12),
            ({"type": "partition_read", "topic": "t", "partition": 0, "offset": 2**63}, 12),
            ({"type": "poll", "offsets": {"t": -1}}, 12),
            ({"type": "commit_offsets", "offsets": {"t": 2**63}}, 12),
            ({"type": "init", "node_id": "n1", "node_ids": ["n1", 2]}, 12),
            ({"type": "init", "node_id": "n1", "node_ids": 5}, 12),
            ({"type": "fly", "in_reply_to": []}, 10),
            ({"type": "send", "key": 5, "msg": 1}, 12),
        ):
            answer = await node.ask({**body, "msg_id": 9})
            assert (answer["type"], answer.get("code"), answer["in_reply_to"]) == ("error", code, 9), answer
            assert answer["text"]
        # And the node lives on.
        assert (await node.ask({"type": "send", "msg_id": 10, "key": "t", "msg": 1}))["offset"] == 1

    converse(story)


def test_lines_that_are_no_messages_are_complained_about_and_passed_over() -> None:
    async def story(node: Conversation) -> None:
        node.lines.feed_data(b"[" * 200_000 + b"\n")
        node.lines.feed_data(b"\n{\n[1]\n5\n" + b" " * (LINE_BYTES_MAX + 1) + b"\n")
        assert (await node.ask({"type": "init", "msg_id": 1, "node_id": "n1", "node_ids": ["n1"]}))[
            "msg_id"
        ] == 0

    assert len(converse(story).complaints) == 5


def test_the_kafka_workload_of_maelstrom() -> None:
    async def story(node: Conversation) -> None:
        for number, value in enumerate([5, "5", {"a": [1, None]}, None]):
            answer = await node.ask({"type": "send", "msg_id": 1, "key": "9", "msg": value})
            assert answer["offset"] == number
        answer = await node.ask({"type": "poll", "msg_id": 2, "offsets": {"9": 1, "unknown": 0}})
        assert answer["msgs"] == {"9": [[1, "5"], [2, {"a": [1, None]}], [3, None]], "unknown": []}
        answer = await node.ask({"type": "list_committed_offsets", "msg_id": 3, "keys": ["9"]})
        assert answer["offsets"] == {}
        answer = await node.ask({"type": "commit_offsets", "msg_id": 4, "offsets": {"9": 3, "later": 1}})
        assert answer["type"] == "commit_offsets_ok"
        answer = await node.ask({"type": "list_committed_offsets", "msg_id": 5, "keys": ["9", "k", "later"]})
        assert answer["offsets"] == {"9": 3, "later": 1}

    converse(story)


def test_a_topic_gets_the_partitions_that_are_written_to() -> None:
    async def story(node: Conversation) -> None:
        for partition in (0, 3, 1):
            body = {
                "type": "partition_append",
                "msg_id": 1,
                "topic": "t",
                "partition": partition,
                "message": "x",
            }
            assert (await node.ask(body))["offset"] == 0

    converse(story)


def test_nodes_pass_on_what_belongs_to_another() -> None:
    async def run() -> None:
        async with logs_of_a_broker() as one, logs_of_a_broker() as two:
            nodes = {"n1": Conversation(one), "n2": Conversation(two)}
            answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

            async def deliver(name: str) -> None:
                """The network: what a node says to another reaches it, and what it says to clients, us."""
                while True:
                    message = await nodes[name].said.get()
                    if message["dest"] in nodes:
                        nodes[message["dest"]].tell(message)
                    else:
                        answers.put_nowait(message["body"])

            async def ask(name: str, body: dict[str, Any]) -> dict[str, Any]:
                nodes[name].tell({"src": "c1", "dest": name, "body": {**body, "msg_id": 1}})
                return await answers.get()

            async with asyncio.TaskGroup() as tasks:
                for node in nodes.values():
                    tasks.create_task(node.node.run(node.lines))
                network = [asyncio.create_task(deliver(name)) for name in nodes]
                for name in nodes:
                    await ask(name, {"type": "init", "node_id": name, "node_ids": ["n1", "n2"]})
                keys = [str(number) for number in range(8)]
                for number in range(3):
                    for key in keys:
                        via = "n1" if (number + int(key)) % 2 else "n2"
                        assert (await ask(via, {"type": "send", "key": key, "msg": number}))[
                            "offset"
                        ] == number
                everything = {key: [[0, 0], [1, 1], [2, 2]] for key in keys}
                for name in nodes:
                    answer = await ask(name, {"type": "poll", "offsets": dict.fromkeys(keys, 0)})
                    assert answer["msgs"] == everything
                await ask("n1", {"type": "commit_offsets", "offsets": dict.fromkeys(keys, 2)})
                answer = await ask("n2", {"type": "list_committed_offsets", "keys": keys})
                assert answer["offsets"] == dict.fromkeys(keys, 2)
                lost = {"type": "partition_read", "topic": "0", "partition": 0, "offset": 77}
                assert {(await ask(name, lost))["code"] for name in nodes} == {20}
                for node in nodes.values():
                    node.lines.feed_eof()
            for task in network:
                task.cancel()

    asyncio.run(run())
