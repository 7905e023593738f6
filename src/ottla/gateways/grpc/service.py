"""`broker.Broker`: each method of `broker.proto` as a few calls on a `Session`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

import grpc

from ottla.gateways import advice
from ottla.gateways.grpc import messages
from ottla.gateways.grpc.following import Following
from ottla.gateways.grpc.status import status_of
from ottla.gateways.session import EARLIEST, LATEST, READ_BYTES_MAX, Session
from ottla.protocol.batch import Record
from ottla.protocol.errors import InvalidRequest, KafkaError

CONSUME_MESSAGES: Final = 1000
CONSUME_MESSAGES_MAX: Final = 10_000
CONSUME_WAIT_MS_MAX: Final = 60_000
# Messages of a stream that are appended and not answered yet.
PRODUCING_MAX: Final = 256
INT32_MAX: Final = 2**31 - 1

# From the peer of a call, as gRPC names it, to the session of the connection it came through.
FindSession = Callable[[str], Session]


class Service:
    def __init__(self, session_of: FindSession) -> None:
        self._session_of = session_of

    def handlers(self) -> Any:
        """What a gRPC server is given: a handler for each method that `broker.proto` declares."""
        handlers = {}
        for method in messages.service().methods:
            serve = getattr(self, _snake_case(method.name))
            streams = method.server_streaming
            make = {
                (False, False): grpc.unary_unary_rpc_method_handler,
                (False, True): grpc.unary_stream_rpc_method_handler,
                (True, True): grpc.stream_stream_rpc_method_handler,
            }[method.client_streaming, streams]
            handlers[method.name] = make(
                partial(self._stream if streams else self._unary, serve),
                request_deserializer=messages.message(method.input_type.name).FromString,
                response_serializer=messages.message(method.output_type.name).SerializeToString,
            )
        return grpc.method_handlers_generic_handler(messages.SERVICE, handlers)

    async def _unary(
        self, serve: Callable[[Session, Any], Awaitable[Any]], request: Any, context: Any
    ) -> Any:
        try:
            return await serve(self._session_of(context.peer()), request)
        except KafkaError as error:
            await _abort(context, error)

    async def _stream(
        self, serve: Callable[[Session, Any], AsyncIterator[Any]], request: Any, context: Any
    ) -> AsyncIterator[Any]:
        try:
            async for answer in serve(self._session_of(context.peer()), request):
                yield answer
        except KafkaError as error:
            await _abort(context, error)

    # --- topics ----------------------------------------------------------------------------

    async def create_topic(self, session: Session, request: Any) -> Any:
        created = await session.create_topic(
            request.topic,
            request.partitions or -1,
            min(request.replication_factor, 2**15 - 1) or -1,
            request.configs,
        )
        return messages.CreateTopicResponse(topic=created.name, partitions=created.partitions)

    async def list_topics(self, session: Session, request: Any) -> Any:
        topics = [messages.Topic(topic=name, partitions=count) for name, count in await session.topics()]
        return messages.ListTopicsResponse(topics=topics)

    # --- producing -------------------------------------------------------------------------

    async def produce(self, session: Session, request: Any) -> Any:
        record = Record(
            timestamp=request.timestamp if request.HasField("timestamp") else -1,
            key=request.key if request.HasField("key") else None,
            value=None if request.tombstone else request.payload,
            headers=[
                (header.key, header.value if header.HasField("value") else None) for header in request.headers
            ],
        )
        written = await session.produce(
            request.topic, record, request.partition if request.HasField("partition") else None
        )
        return messages.ProduceResponse(
            topic=request.topic,
            partition=written.partition,
            offset=written.offset,
            timestamp=written.timestamp,
        )

    async def produce_stream(self, session: Session, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        # Appended in the order they come, as a task runs up to its first wait before the next one starts;
        # what they wait for overlaps.
        producing: asyncio.Queue[asyncio.Task[Any] | None] = asyncio.Queue(PRODUCING_MAX)
        unanswered: set[asyncio.Task[Any]] = set()

        async def receive() -> None:
            async for request in requests:
                task = asyncio.create_task(self.produce(session, request))
                unanswered.add(task)
                await producing.put(task)
            await producing.put(None)

        receiving = asyncio.create_task(receive())
        try:
            while (task := await producing.get()) is not None:
                answer = await task
                unanswered.discard(task)
                yield answer
        finally:
            await _cancel((receiving, *unanswered))

    # --- consuming -------------------------------------------------------------------------

    async def consume(self, session: Session, request: Any) -> Any:
        if not 0 <= request.max_messages <= CONSUME_MESSAGES_MAX:
            raise InvalidRequest(f"max_messages is out of range: it goes up to {CONSUME_MESSAGES_MAX}")
        left = request.max_messages or CONSUME_MESSAGES
        wait_ms = min(max(request.wait_ms, 0), CONSUME_WAIT_MS_MAX)
        answer = messages.ConsumeResponse(next_offset=request.offset)
        # A read ends where a segment does, so there may be more to have at once.
        while left and answer.ByteSize() < READ_BYTES_MAX:
            before = answer.next_offset
            read = await session.read(
                request.topic,
                request.partition,
                before,
                max_records=left,
                max_bytes=READ_BYTES_MAX - answer.ByteSize(),
                wait_ms=wait_ms,
            )
            answer.messages.extend(_message(request.partition, record) for record in read.records)
            answer.next_offset, answer.end_offset = read.next_offset, read.end_offset
            left -= len(read.records)
            wait_ms = 0
            if read.next_offset in (before, read.end_offset):
                break
        return answer

    async def consume_stream(self, session: Session, request: Any) -> AsyncIterator[Any]:
        topic = request.topic
        partitions = await session.partitions(topic)
        if request.HasField("partition"):
            partitions = [request.partition]
        offsets = {each: await _start(session, topic, each, request) for each in partitions}
        following = Following(session, topic)
        left = request.max_messages or -1
        try:
            following.begin(offsets)
            if not request.HasField("partition"):
                following.grow()
            while left:
                partition, records = await following.next()
                for record in records:
                    yield _message(partition, record)
                    left -= 1
                    if not left:
                        break
        finally:
            await following.close()

    # --- groups ----------------------------------------------------------------------------

    async def commit_offsets(self, session: Session, request: Any) -> Any:
        await session.commit(request.group, request.topic, dict(request.offsets))
        return messages.CommitOffsetsResponse()

    async def committed_offsets(self, session: Session, request: Any) -> Any:
        committed = await session.committed(request.group, request.topic)
        return messages.CommittedOffsetsResponse(offsets=committed)


async def _start(session: Session, topic: str, partition: int, request: Any) -> int:
    match request.WhichOneof("start"):
        case "offset":
            offset: int = request.offset
            return offset
        case "timestamp":
            if request.timestamp < 0:
                raise InvalidRequest("timestamp is milliseconds since 1970: it is not negative")
            return await session.offset_at(topic, partition, request.timestamp)
        case "earliest":
            return await session.offset_at(topic, partition, EARLIEST)
    return await session.offset_at(topic, partition, LATEST)


def _message(partition: int, record: Record) -> Any:
    return messages.Message(
        partition=partition,
        offset=record.offset,
        timestamp=record.timestamp,
        key=record.key,
        payload=record.value or b"",
        tombstone=record.value is None,
        headers=[
            messages.Header(
                key=key.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), value=value
            )
            for key, value in record.headers
        ],
    )


async def _abort(context: Any, error: KafkaError) -> None:
    await context.abort(
        status_of(error),
        f"{error.name}: {advice.on(error)}",
        (("kafka-error", error.name), ("kafka-error-code", str(error.code))),
    )


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
