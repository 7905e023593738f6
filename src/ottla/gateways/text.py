"""The text door: one command a line, as typed into `nc`.

    PRODUCE Payments key1 HelloWorld        OK Payments 0 0
    CONSUME Payments 0 0                    0 0 key1 HelloWorld
                                            END 1

A line that cannot be done is answered `ERR <KAFKA_ERROR_NAME> <what to do>`, and the next one is read. How
words are quoted is in `quoting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container
from typing import Final

from ottla.gateways import advice
from ottla.gateways.quoting import next_word, quoted, unquoted, whole_line
from ottla.gateways.session import EARLIEST, LATEST, Session, share_of_bytes
from ottla.protocol.batch import Record
from ottla.protocol.errors import InvalidRequest, KafkaError, MessageTooLarge, UnknownTopicOrPartition
from ottla.server.doors import UNREAD_MAX, Visit

LINE_MAX: Final = UNREAD_MAX
# What CONSUME answers at most, unless it is told another number.
CONSUME_RECORDS: Final = 1000
CONSUME_RECORDS_MAX: Final = 100_000
FOLLOW_RECORDS: Final = 10_000
# Messages written before other connections get their turn.
SLICE: Final = 200
# A follower with nothing to read looks up this often, to see whether it is still wanted.
FOLLOW_WAIT_MS: Final = 5_000
# And this often, whether its topic has been given more partitions.
LOOK_AGAIN_SECONDS: Final = 2.0
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

HELP: Final = """\
PRODUCE <topic> [<key>] <value>            append a message; - for no key; quote what has spaces
CONSUME <topic> <partition> <offset> [<n>] read messages; an offset, earliest, latest or @<unix ms>
FOLLOW <topic> [<partition> [<offset>]]    read messages as they come; any line stops it
TOPICS                                     list topics
CREATE <topic> [<partitions>]              create a topic
OFFSETS <topic> [<group>]                  first and next offset of each partition, and a group's place
HELP                                       this
QUIT                                       hang up
"""


async def serve(visit: Visit) -> None:
    await Conversation(visit).run()


class Conversation:
    """The lines of one connection, answered in order."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._reader = visit.reader
        self._writer = visit.writer
        self._session = Session(visit.doors, visit.local)
        self._next: str | None = None  # a line that was read while following
        idle_ms = visit.doors.node.settings.connections_max_idle_ms
        self._follow_wait_ms = min(FOLLOW_WAIT_MS, idle_ms // 3) if idle_ms > 0 else FOLLOW_WAIT_MS
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "PRODUCE": self._produce,
            "CONSUME": self._consume,
            "FOLLOW": self._follow,
            "TOPICS": self._topics,
            "CREATE": self._create,
            "OFFSETS": self._offsets,
            "HELP": self._help,
        }

    async def run(self) -> None:
        while True:
            line, self._next = self._next, None
            if line is None:
                line = await self._line()
            if line is None:
                return
            if not line:
                continue
            word, rest = next_word(whole_line(line))
            if word.upper() == "QUIT":
                self._say("OK bye")
                return
            try:
                command = self._commands.get(word.upper())
                if command is None:
                    raise InvalidRequest(f"{word[:40]!r} is no command: HELP lists them")
                await command(rest)
            except KafkaError as error:
                self._refuse(error)
            await self._writer.drain()

    async def _line(self) -> str | None:
        """The next line without its end, or None when there are no more. One that is too long is skipped."""
        try:
            data = await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as cut:
            data = cut.partial  # the last line of `printf 'TOPICS' | nc`
            if not data:
                return None
        except asyncio.LimitOverrunError:
            await self._skip_line()
            self._refuse(
                MessageTooLarge(f"a line has at most {LINE_MAX} bytes: larger messages go by gRPC or Kafka")
            )
            return ""
        return data.decode("utf-8", "surrogateescape").strip("\r\n\t ")

    async def _skip_line(self) -> None:
        while True:
            try:
                await self._reader.readuntil(b"\n")
                return
            except asyncio.LimitOverrunError as overrun:
                await self._reader.readexactly(max(overrun.consumed, 1))
            except asyncio.IncompleteReadError:
                return

    # --- commands ------------------------------------------------------------------------

    async def _produce(self, rest: str) -> None:
        topic, rest = next_word(rest)
        key, value = next_word(rest, keep_quotes=True)
        if not topic or not key:
            raise InvalidRequest("write PRODUCE <topic> <key> <value>, or PRODUCE <topic> <value>")
        if not value:
            key, value = "-", key
        record = Record(key=unquoted(key), value=unquoted(value))
        written = await self._session.produce(topic, record)
        self._say(f"OK {topic} {written.partition} {written.offset}")

    async def _consume(self, rest: str) -> None:
        topic, partition, start, count, *more = _words(rest, 5)
        if not start or more[0]:
            raise InvalidRequest("write CONSUME <topic> <partition> <offset>, such as CONSUME Payments 0 0")
        index = _number(partition, "a partition")
        left = _number(count, "a number of messages") if count else CONSUME_RECORDS
        if left > CONSUME_RECORDS_MAX:
            raise InvalidRequest(f"ask for at most {CONSUME_RECORDS_MAX} messages at once")
        offset = await self._start(topic, index, start)
        while left:
            read = await self._session.read(topic, index, offset, max_records=left)
            await self._tell(index, read.records)
            left -= len(read.records)
            if read.next_offset == offset:
                break
            offset = read.next_offset
        self._say(f"END {offset}")

    async def _follow(self, rest: str) -> None:
        topic, partition, start, *more = _words(rest, 4)
        if not topic or more[0]:
            raise InvalidRequest("write FOLLOW <topic>, or FOLLOW <topic> <partition> <offset>")
        known = await self._session.partitions(topic)
        chosen = [_number(partition, "a partition")] if partition else known
        offsets = {each: await self._start(topic, each, start or "latest") for each in chosen}
        self._say(f"OK following {topic}")
        await self._writer.drain()
        listening = asyncio.create_task(self._listen())
        following: dict[int, asyncio.Task[None]] = {}
        try:
            # Until the client says something, or nothing is left to follow.
            while not listening.done():
                share = share_of_bytes(len(following) + len(offsets))
                for each, offset in offsets.items():
                    reading = self._follow_partition(topic, each, offset, share)
                    following[each] = asyncio.create_task(reading)
                unfinished = [task for task in following.values() if not task.done()]
                if not unfinished:
                    break
                done, _ = await asyncio.wait(
                    (listening, *unfinished), timeout=LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
                offsets = {} if partition else await self._new_partitions(topic, following)
        finally:
            for task in (listening, *following.values()):
                task.cancel()
            await asyncio.wait((listening, *following.values()))
        self._say("END")

    async def _follow_partition(self, topic: str, partition: int, offset: int, max_bytes: int) -> None:
        told: type[KafkaError] | None = None
        while True:
            try:
                read = await self._session.read(
                    topic,
                    partition,
                    offset,
                    max_records=FOLLOW_RECORDS,
                    max_bytes=max_bytes,
                    wait_ms=self._follow_wait_ms,
                )
            except KafkaError as error:
                if type(error) is not told:  # once is enough, while it lasts
                    self._refuse(error)
                told = type(error)
                if not error.retriable or isinstance(error, UnknownTopicOrPartition):
                    return
                await asyncio.sleep(1)
                continue
            told = None
            offset = read.next_offset
            await self._tell(partition, read.records)
            if read.records or not self._reader.at_eof():
                self._visit.stay()  # a client that went away for good is noticed by its idleness

    async def _new_partitions(self, topic: str, known: Container[int]) -> dict[int, int]:
        """Partitions that the topic has been given since, with where they begin: all they hold is new."""
        try:
            new = [each for each in await self._session.partitions(topic) if each not in known]
            return {each: await self._session.offset_at(topic, each, EARLIEST) for each in new}
        except KafkaError:
            return {}  # those who follow it are told, or one that is just being made is there the next time

    async def _listen(self) -> None:
        """Return with the client's next line at hand. One that has only stopped sending still listens."""
        self._next = await self._line()
        if self._next is None:
            await asyncio.Event().wait()

    async def _topics(self, rest: str) -> None:
        topics = await self._session.topics()
        for topic in topics:
            self._say(f"{topic.name} {topic.partitions}")
        self._say(f"END {len(topics)}")

    async def _create(self, rest: str) -> None:
        topic, partitions, *more = _words(rest, 3)
        if not topic or more[0]:
            raise InvalidRequest("write CREATE <topic>, or CREATE <topic> <partitions>")
        created = await self._session.create_topic(
            topic, _number(partitions, "a number of partitions") if partitions else -1
        )
        self._say(f"OK {created.name} {created.partitions}")

    async def _offsets(self, rest: str) -> None:
        topic, group, *more = _words(rest, 3)
        if not topic or more[0]:
            raise InvalidRequest("write OFFSETS <topic>, or OFFSETS <topic> <group>")
        bounds = await self._session.offsets(topic)
        committed = await self._session.committed(group, topic) if group else None
        for each in bounds:
            place = "" if committed is None else f" {committed.get(each.partition, '-')}"
            self._say(f"{each.partition} {each.start} {each.end}{place}")
        self._say(f"END {len(bounds)}")

    async def _help(self, rest: str) -> None:
        self._writer.write(HELP.encode())
        self._say("END")

    # --- words ---------------------------------------------------------------------------

    async def _start(self, topic: str, partition: int, start: str) -> int:
        """The offset that a word stands for."""
        lowered = start.lower()
        if lowered == "earliest":
            return await self._session.offset_at(topic, partition, EARLIEST)
        if lowered == "latest":
            return await self._session.offset_at(topic, partition, LATEST)
        if start.startswith("@"):
            return await self._session.offset_at(
                topic, partition, _number(start[1:], "a time in ms", INT64_MAX)
            )
        return _number(start, "an offset", INT64_MAX)

    async def _tell(self, partition: int, records: list[Record]) -> None:
        for count, record in enumerate(records, 1):
            self._say(f"{partition} {record.offset} {quoted(record.key)} {quoted(record.value, spaces=True)}")
            if count % SLICE == 0:
                await self._writer.drain()
                await asyncio.sleep(0)
        await self._writer.drain()
        await asyncio.sleep(0)

    def _refuse(self, error: KafkaError) -> None:
        self._say(f"ERR {error.name} {advice.on(error)}")

    def _say(self, line: str) -> None:
        self._writer.write(line.encode("utf-8", "surrogateescape") + b"\n")


def _words(rest: str, count: int) -> list[str]:
    """The first words of a line, as many as asked for; empty where there are no more."""
    words = []
    for _ in range(count):
        word, rest = next_word(rest)
        words.append(word)
    return words


def _number(word: str, what: str, most: int = INT32_MAX) -> int:
    if not word.isascii() or not word.isdigit() or len(word) > 18 or int(word) > most:
        raise InvalidRequest(f"{word[:40]!r} is not {what}: write a number")
    return int(word)
