"""The JSON-lines door: Maelstrom messages, one a line, each answered by one (`ottla node`).

Two workloads are spoken: partitions as logs (`partition_append`, `partition_read`, `partition_info`) and
Maelstrom's own `kafka` (`send`, `poll`, `commit_offsets`, `list_committed_offsets`), in which a key is a
topic of one partition. Where there are several nodes, each key belongs to one of them, and the others pass on
what they are asked about it.

A message in an envelope is answered with the fields that a course's checker expects, and `full` adds the
others; a body on its own is answered by a body on its own with all fields.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from zlib import crc32

from ottla.client.errors import ClientError
from ottla.gateways.partition_logs import PartitionLogs
from ottla.protocol.errors import (
    CoordinatorLoadInProgress,
    InvalidTopic,
    KafkaError,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownTopicOrPartition,
)

# Maelstrom's error codes that we have a use for.
TIMEOUT: Final = 0
NOT_SUPPORTED: Final = 10
TEMPORARILY_UNAVAILABLE: Final = 11
MALFORMED_REQUEST: Final = 12
CRASH: Final = 13
KEY_DOES_NOT_EXIST: Final = 20
PRECONDITION_FAILED: Final = 22

# How long another node may take to answer for a key of its own.
PEER_SECONDS: Final = 5.0
# A poll answers at most this many messages for each key; the next one goes on from there.
POLL_MESSAGES: Final = 500
# Topics are made with as many partitions as somebody asks for, which has to end somewhere.
PARTITIONS_MAX: Final = 1000
OFFSET_MAX: Final = 2**63 - 1
KINDS: Final = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}
TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

Body = dict[str, Any]
Write = Callable[[str], None]


class RequestError(Exception):
    """A request that is answered with one of Maelstrom's errors."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class JsonLinesNode:
    """One node: lines in through `receive`, lines out through `write`."""

    def __init__(self, logs: PartitionLogs, write: Write, complain: Write, *, full: bool = False) -> None:
        self._logs = logs
        self._write = write
        self._complain = complain
        self._full = full
        self._node_id = ""
        self._peers: list[str] = []
        self._next_msg_id = 0
        self._asked: dict[int, asyncio.Future[Body]] = {}
        self._handlers: dict[str, Callable[[Body], Awaitable[Body]]] = {
            "init": self._init,
            "partition_append": self._partition_append,
            "partition_read": self._partition_read,
            "partition_info": self._partition_info,
            "send": self._send,
            "poll": self._poll,
            "commit_offsets": self._commit_offsets,
            "list_committed_offsets": self._list_committed_offsets,
        }

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Answer every line until there are no more. What this node can answer alone is answered in order."""
        async with asyncio.TaskGroup() as waiting:
            while line := await self._next_line(lines):
                message = self._parse(line)
                if message is None:
                    continue
                body = message["body"]
                in_reply_to = body.get("in_reply_to")
                answered = self._asked.pop(in_reply_to, None) if isinstance(in_reply_to, int) else None
                if answered is not None:
                    if not answered.done():
                        answered.set_result(body)
                elif self._needs_others(body):
                    waiting.create_task(self._answer(message))
                else:
                    await self._answer(message)

    async def _next_line(self, lines: asyncio.StreamReader) -> bytes:
        while True:
            try:
                return await lines.readline()
            except ValueError:
                self._complain("a line that is longer than a line may be was passed over")

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        """A message in an envelope; None, and a word on stderr, for a line that nobody can be answered to."""
        if not line.strip():
            return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._complain(f"not a line of JSON: {error}")
            return None
        if isinstance(message, dict) and "body" not in message and "type" in message:
            message = {"body": message}
        if not isinstance(message, dict) or not isinstance(message.get("body"), dict):
            self._complain("a message is an object with src, dest and body")
            return None
        return message

    async def _answer(self, message: Mapping[str, Any]) -> None:
        asked: Body = message["body"]
        is_bare = "src" not in message
        try:
            answer = await self._handle(asked)
        except RequestError as error:
            answer = {
                "type": "error",
                "in_reply_to": asked.get("msg_id"),
                "code": error.code,
                "text": str(error),
            }
        else:
            kept = answer if self._full or is_bare else _as_expected(answer)
            answer = {"type": f"{asked['type']}_ok", "in_reply_to": asked.get("msg_id"), **kept}
        if is_bare:
            self._write(json.dumps(answer))
            return
        answer["msg_id"] = self._count()
        source = self._node_id or message.get("dest")
        self._write(json.dumps({"src": source, "dest": message["src"], "body": answer}))

    async def _handle(self, asked: Body) -> Body:
        type_ = asked.get("type")
        handler = self._handlers.get(type_) if isinstance(type_, str) else None
        if handler is None:
            known = ", ".join(self._handlers)
            raise RequestError(NOT_SUPPORTED, f"there is no request {type_!r}; there are {known}")
        try:
            return await handler(asked)
        except InvalidTopic as error:
            raise RequestError(MALFORMED_REQUEST, str(error)) from None
        except UnknownTopicOrPartition:
            what = f"{asked.get('topic')}-{asked.get('partition')}"
            raise RequestError(KEY_DOES_NOT_EXIST, f"there is no {what} yet: append to it first") from None
        except OffsetOutOfRange as error:
            raise RequestError(KEY_DOES_NOT_EXIST, str(error)) from None
        except (RequestTimedOut, TimeoutError):
            raise RequestError(TIMEOUT, "it took too long; whether it happened is not known") from None
        except CoordinatorLoadInProgress as error:
            raise RequestError(TEMPORARILY_UNAVAILABLE, str(error)) from None
        except ClientError as error:
            raise RequestError(CRASH, str(error)) from None
        except KafkaError as error:
            code = TEMPORARILY_UNAVAILABLE if error.retriable else PRECONDITION_FAILED
            raise RequestError(code, f"{error.name}: {error}") from None
        except RequestError:
            raise
        except Exception as error:
            # Our mistake costs the one request; Maelstrom's word for it is a crash.
            self._complain(f"{type_} failed: {error!r}")
            raise RequestError(CRASH, "this node made a mistake; it may have been done or not") from error

    def _count(self) -> int:
        number = self._next_msg_id
        self._next_msg_id += 1
        return number

    # --- partitions ----------------------------------------------------------------------

    async def _init(self, asked: Body) -> Body:
        node_id = _wanted(asked, "node_id", str)
        node_ids = asked.get("node_ids") or []
        if not isinstance(node_ids, list) or not all(isinstance(each, str) for each in node_ids):
            raise RequestError(MALFORMED_REQUEST, "node_ids is not a list of names")
        self._node_id = node_id
        self._peers = sorted({node_id, *node_ids})
        return {}

    async def _partition_append(self, asked: Body) -> Body:
        topic, partition = _partition(asked)
        if "message" not in asked:
            raise RequestError(MALFORMED_REQUEST, "message is missing")
        if (owner := self._owner(topic, partition)) is not None:
            return await self._pass_on(owner, asked)
        appended = await self._logs.append(topic, partition, asked["message"])
        return {
            "offset": appended.offset,
            "segment": f"{appended.segment:08d}.log",
            "timestamp": appended.timestamp_ms // 1000,
        }

    async def _partition_read(self, asked: Body) -> Body:
        topic, partition = _partition(asked)
        offset = _offset(_wanted(asked, "offset", int), f"{topic}-{partition}")
        if (owner := self._owner(topic, partition)) is not None:
            return await self._pass_on(owner, asked)
        found = await self._logs.read(topic, partition, offset, 1)
        if not found:
            raise RequestError(
                KEY_DOES_NOT_EXIST, f"{topic}-{partition} has no message at offset {offset} yet"
            )
        at, message = found[0]
        return {"message": message, "offset": at, "next_offset": at + 1}

    async def _partition_info(self, asked: Body) -> Body:
        topic, partition = _partition(asked)
        if (owner := self._owner(topic, partition)) is not None:
            return await self._pass_on(owner, asked)
        info = self._logs.info(topic, partition)
        return {
            "start_offset": info.start_offset,
            "end_offset": info.end_offset,
            "segments": info.segments,
            "total_bytes": info.total_bytes,
        }

    # --- Maelstrom's kafka workload ------------------------------------------------------

    async def _send(self, asked: Body) -> Body:
        key = _key(asked.get("key"))
        if "msg" not in asked:
            raise RequestError(MALFORMED_REQUEST, "msg is missing")
        if (owner := self._owner(key, 0)) is not None:
            return await self._pass_on(owner, asked)
        return {"offset": (await self._logs.append(key, 0, asked["msg"])).offset}

    async def _poll(self, asked: Body) -> Body:
        offsets = _offsets(asked)
        messages: dict[str, list[list[Any]]] = {}
        for owner, keys in self._by_owner(offsets).items():
            if owner is not None:
                part = {key: offsets[key] for key in keys}
                messages |= (await self._pass_on(owner, {"type": "poll", "offsets": part}))["msgs"]
                continue
            for key in keys:
                found = await self._logs.poll(key, offsets[key], POLL_MESSAGES)
                messages[key] = [[offset, message] for offset, message in found]
        return {"msgs": messages}

    async def _commit_offsets(self, asked: Body) -> Body:
        offsets = _offsets(asked)
        for owner, keys in self._by_owner(offsets).items():
            part = {key: offsets[key] for key in keys}
            if owner is not None:
                await self._pass_on(owner, {"type": "commit_offsets", "offsets": part})
            else:
                await self._logs.commit(part)
        return {}

    async def _list_committed_offsets(self, asked: Body) -> Body:
        keys = [_key(each) for each in _wanted(asked, "keys", list)]
        offsets: dict[str, int] = {}
        for owner, part in self._by_owner(keys).items():
            if owner is not None:
                wanted = {"type": "list_committed_offsets", "keys": part}
                offsets |= (await self._pass_on(owner, wanted))["offsets"]
            else:
                offsets |= await self._logs.committed(part)
        return {"offsets": offsets}

    # --- other nodes ---------------------------------------------------------------------

    def _owner(self, topic: str, partition: int) -> str | None:
        """The node that keeps a partition; None when it is this one."""
        if len(self._peers) < 2:
            return None
        owner = self._peers[crc32(f"{topic}-{partition}".encode()) % len(self._peers)]
        return None if owner == self._node_id else owner

    def _by_owner(self, keys: Any) -> dict[str | None, list[str]]:
        parts: dict[str | None, list[str]] = {}
        for key in keys:
            parts.setdefault(self._owner(key, 0), []).append(key)
        return parts

    def _needs_others(self, body: Body) -> bool:
        """Whether an answer may have to wait for another node, whose own comes in through the same lines."""
        return len(self._peers) > 1 and body.get("type") != "init"

    async def _pass_on(self, owner: str, asked: Body) -> Body:
        msg_id = self._count()
        self._asked[msg_id] = asyncio.get_running_loop().create_future()
        body = {**asked, "msg_id": msg_id}
        self._write(json.dumps({"src": self._node_id, "dest": owner, "body": body}))
        try:
            async with asyncio.timeout(PEER_SECONDS):
                answer = await self._asked[msg_id]
        finally:
            self._asked.pop(msg_id, None)
        if answer.get("type") == "error":
            raise RequestError(answer.get("code", CRASH), answer.get("text", "another node could not answer"))
        return {
            name: value for name, value in answer.items() if name not in ("type", "msg_id", "in_reply_to")
        }


def _as_expected(answer: Body) -> Body:
    """Without the fields that the samples of partition logs leave out."""
    return {
        name: value for name, value in answer.items() if name not in ("segment", "timestamp", "next_offset")
    }


def _wanted(asked: Body, name: str, kind: type) -> Any:
    value = asked.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        what = "missing" if name not in asked else f"{json.dumps(value)[:100]}, not {KINDS[kind]}"
        raise RequestError(MALFORMED_REQUEST, f"{name} is {what}")
    return value


def _partition(asked: Body) -> tuple[str, int]:
    topic, partition = _key(_wanted(asked, "topic", str)), _wanted(asked, "partition", int)
    if not 0 <= partition < PARTITIONS_MAX:
        raise RequestError(MALFORMED_REQUEST, f"partition is {partition}, not 0 to {PARTITIONS_MAX - 1}")
    return topic, partition


def _key(value: Any) -> str:
    """A key is the name of a topic, so it has to be able to be one."""
    if not isinstance(value, str) or TOPIC.fullmatch(value) is None or value in (".", ".."):
        raise RequestError(MALFORMED_REQUEST, f"{json.dumps(value)[:100]} cannot be the name of a topic")
    return value


def _offsets(asked: Body) -> dict[str, int]:
    offsets: Any = _wanted(asked, "offsets", dict)
    for key, offset in offsets.items():
        _offset(offset, _key(key))
    return dict(offsets)


def _offset(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value <= OFFSET_MAX:
        raise RequestError(MALFORMED_REQUEST, f"offset {json.dumps(value)[:100]} of {where} cannot be one")
    return value
