"""One client connection: frames in, replies out, in order.

Requests are started in the order they arrive. One that finishes without waiting is answered in the same
turn of the loop; one that waits goes on when that is over (`stepping`), and replies still leave in request
order. So appends keep the client's order, waits overlap, and the queue of unanswered requests is the
back-pressure: when it is full, or the client does not read its answers, we stop reading from the socket.

A *turn* is what one wake-up of the socket brings: every whole frame is handled, then each log that took
appends is written once, then the replies leave in one write.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.core.files import Buffer
from ottla.core.java import host_address
from ottla.core.principal import ANONYMOUS
from ottla.protocol import headers
from ottla.protocol.errors import KafkaError
from ottla.protocol.wire import MalformedFrame
from ottla.server import failures
from ottla.server.api import API_VERSIONS
from ottla.server.context import Context, Disconnect
from ottla.server.produce_lane import ProduceLanes
from ottla.server.routes import Route, records_size
from ottla.server.stepping import Steps, Suspended

if TYPE_CHECKING:
    from ottla.core.principal import Principal
    from ottla.server.authentication.session import Session
    from ottla.server.listener import Listener
    from ottla.server.routes import Routes

logger = logging.getLogger("ottla.connection")

PRODUCE: Final = 0
# api key, api version, correlation id, length of the client id
HEADER = struct.Struct(">hhih")
SIZE = struct.Struct(">i")
SIZE_AND_CORRELATION = struct.Struct(">ii")
# How every TLS connection begins: a record of the handshake, of version 3.x.
TLS_HELLO: Final = b"\x16\x03"

# A request that has started and is not answered holds its decoded form and perhaps its frame: this many
# per connection, and this many bytes of frames, before we stop reading.
UNANSWERED_MAX: Final = 256
UNANSWERED_BYTES_MAX: Final = 32 << 20
# Answers of one turn are handed to the socket whenever they come to this many bytes, so that pipelined
# fetches cannot pile up answers a slow client will not read.
UNSENT_MAX: Final = 1 << 20
# Before the next request is even started when those of fetches come to this many. Small ones leave together.
UNSENT_RECORDS_MAX: Final = 64 << 10
WRITE_BUFFER_MAX: Final = 2 << 20
# Of which TLS has made ciphertext already.
CIPHERTEXT_MAX: Final = 256 << 10

# Frames above this size are received into a buffer of their own, once this much of them has arrived; until
# then they stay in the shared one. A peer that only announces a large frame therefore costs nothing, and
# one that sends it never makes us allocate more than four times what it has sent.
LARGE_FRAME: Final = 128 << 10
LARGE_FRAME_START: Final = 32 << 10
# Buffers of large frames that are kept for the next ones, and how large. A new one costs a pass over it.
SPARE_FRAMES: Final = 4
SPARE_FRAME_MAX: Final = 2 << 20

PENDING: Final = object()


class Scratch:
    """The receive buffer that all connections of a loop share: its bytes live for one turn.

    It starts at +48 because a large bytearray begins 16 bytes into a page, and destinations just past a
    page start make the kernel's copy five times slower on some CPUs.
    """

    OFFSET: Final = 48
    CAPACITY: Final = 512 << 10

    def __init__(self) -> None:
        self.buffer = bytearray(self.CAPACITY + self.OFFSET)
        self.view = memoryview(self.buffer)[self.OFFSET :]
        self._spares: list[bytearray] = []

    def take_spare(self, size: int) -> bytearray | None:
        """A buffer for a frame of this size, if one is left over."""
        for number, spare in enumerate(self._spares):
            if len(spare) - self.OFFSET >= size:
                return self._spares.pop(number)
        return None

    def leave(self, frame: bytearray) -> None:
        """A buffer whose frame was dealt with: handlers that need its bytes after their turn have a copy."""
        spares = self._spares
        if len(frame) <= SPARE_FRAME_MAX:
            spares.append(frame)
            if len(spares) > SPARE_FRAMES:
                del spares[min(range(len(spares)), key=lambda number: len(spares[number]))]


class Reply:
    """A place in the queue of replies; taken when a request starts, filled when it is answered."""

    __slots__ = ("correlation_id", "frame_bytes", "response", "route", "suspended")

    def __init__(self, route: Route, correlation_id: int, frame_bytes: int) -> None:
        self.route = route
        self.correlation_id = correlation_id
        self.frame_bytes = frame_bytes
        self.response: Any = PENDING
        self.suspended: Suspended | None = None


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_closing",
        "_fetching",
        "_frame",
        "_frame_view",
        "_have",
        "_is_answering",
        "_is_fresh",
        "_lanes",
        "_left",
        "_listener",
        "_need",
        "_node",
        "_reading_paused",
        "_replies",
        "_scratch",
        "_transport",
        "_unanswered_bytes",
        "_unsent_records",
        "_write_paused",
        "address",
        "endings",
        "last_active",
        "listener_name",
        "principal",
        "routes",
        "session",
    )

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._node = listener.node
        self._scratch = listener.scratch
        self.listener_name = listener.name
        # Who is at the other end, and where that was found out by SASL, until when.
        self.principal = ANONYMOUS
        self.session: Session | None = None
        self.routes = listener.routes
        self._transport: asyncio.Transport
        self._left: bytes = b""  # the start of a frame that has not all arrived
        self._frame: bytearray | None = None  # a large frame on its way
        self._frame_view: memoryview
        self._have = self._need = 0
        # A list: a deque takes 700 bytes, of every connection, and this one is seldom longer than a few.
        self._replies: list[Reply] = []
        self._lanes: ProduceLanes | None = None  # most connections never produce
        self._unanswered_bytes = 0
        self._unsent_records = 0
        self._fetching = False
        self._is_answering = False  # soon, that is
        self._is_fresh = True  # nothing has been asked yet
        self.endings: dict[object, Callable[[], None]] = {}  # what is to be done when the connection ends
        self._closing = False
        self._write_paused = False
        self._reading_paused = False
        self.last_active = 0.0

    # --- the transport's calls -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._transport = transport
        peer = transport.get_extra_info("peername") or ("", 0)
        self.address = self._listener.one_for_all(host_address(peer[0]))
        if not self._listener.admit(self):
            self._closing = True
            transport.abort()
            return
        transport.set_write_buffer_limits(high=WRITE_BUFFER_MAX, low=WRITE_BUFFER_MAX // 4)

    def secured(self, transport: asyncio.Transport, principal: Principal) -> None:
        """TLS was agreed on: what was the transport carries this one from now on."""
        self._transport.set_write_buffer_limits(high=CIPHERTEXT_MAX)
        self._transport = transport
        self.principal = principal
        transport.set_write_buffer_limits(high=WRITE_BUFFER_MAX, low=WRITE_BUFFER_MAX // 4)

    def take(self, received: bytes) -> None:
        """Bytes that arrived before the transport was ours."""
        start = Scratch.OFFSET
        self._turn(bytearray(start) + received, start, start + len(received))

    def route_by(self, routes: Routes) -> None:
        """From now on only what these routes lead to is served."""
        self.routes = routes
        self._lanes = None

    @property
    def listener(self) -> Listener:
        return self._listener

    @property
    def is_closing(self) -> bool:
        return self._closing

    @property
    def client_host(self) -> str:
        return f"/{self.address}"

    @property
    def dialled_host(self) -> str:
        return str(self._dialled()[0])

    @property
    def dialled_port(self) -> int:
        return int(self._dialled()[1])

    def _dialled(self) -> tuple[Any, ...]:
        """The address of ours that this client came to. Few ask, so it is not kept."""
        return self._transport.get_extra_info("sockname") or ("127.0.0.1", 0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._listener.forget(self)
        replies, self._replies = self._replies, []
        for reply in replies:
            if reply.suspended is not None:
                reply.suspended.cancel()
        for end in self.endings.values():
            end()
        self._left = b""
        self._frame = None

    def eof_received(self) -> bool:
        return False  # close the transport: a client that has stopped sending has stopped listening

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._resume()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return self._frame_view[self._have :]
        left = self._left
        if left:
            view = self._scratch.view
            view[: len(left)] = left
            return view[len(left) :]
        return self._scratch.view

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self._listener.loop.time()
        start = Scratch.OFFSET
        frame = self._frame
        if frame is None:
            end = start + len(self._left) + nbytes
            self._left = b""
            self._turn(self._scratch.buffer, start, end)
            return
        self._have += nbytes
        if self._have == self._need:
            self._frame = None
            self._turn(frame, start, start + self._need)
            self._scratch.leave(frame)
        elif self._have == len(self._frame_view):
            self._own_frame(self._frame_view, self._need)

    # --- a turn --------------------------------------------------------------------------

    def _turn(self, buffer: bytearray, position: int, end: int) -> None:
        try:
            while True:
                position = self._handle_frames(buffer, position, end)
                self._answer()
                if position == end or self._closing:
                    return
                # Stopped at the start of a frame, or as there was too much to answer, which may be over.
                if self._is_full() or not _is_whole(buffer, position, end):
                    self._keep(buffer, position, end)
                    return
        except Exception:
            self._broke()

    def _handle_frames(self, buffer: bytearray, position: int, end: int) -> int:
        """Start every whole frame, as far as back-pressure allows. Answers where it stopped."""
        unpack_size = SIZE.unpack_from
        largest = self._listener.request_bytes_max
        while end - position >= 4:
            (size,) = unpack_size(buffer, position)
            if not HEADER.size <= size <= largest:
                if self._is_fresh and self._listener.open_door(
                    self, self._transport, bytes(buffer[position:end])
                ):
                    return end
                if self._is_fresh and buffer.startswith(TLS_HELLO, position):
                    self._refuse(
                        "the client speaks TLS (https, or security.protocol=SSL), this listener is plain"
                    )
                elif not self._listener.is_ready:
                    self._refuse("the node is still starting")
                else:
                    self._refuse(f"a frame of {size} bytes (socket.request.max.bytes is {largest})")
                return end
            next_position = position + 4 + size
            if next_position > end or self._is_full():
                break
            self._start(buffer, position + 4, next_position)
            if self._closing:
                return end
            position = next_position
        return position

    def _start(self, buffer: bytearray, position: int, end: int) -> None:
        """Decode one request and run its handler up to its first wait."""
        key, version, correlation_id, length = HEADER.unpack_from(buffer, position)
        lanes = self._lanes
        if key == PRODUCE and lanes is not None:
            lane = lanes.find(buffer, position, version)
            if lane is not None:
                answer = lane.append(buffer, position, end, correlation_id)
                if answer is not None:
                    lane.route.requests += 1
                    reply = Reply(lane.route, correlation_id, 0)
                    if isinstance(answer, bytes):
                        reply.response = answer
                        self._replies.append(reply)
                    else:
                        self._run(reply, answer)
                    return
        route = self.routes.find(key, version)
        if route is None:
            self._not_served(key, version, correlation_id)
            return
        self._is_fresh = False
        route.requests += 1
        reply = Reply(route, correlation_id, end - position)
        try:
            body = position + 10
            if length > 0:
                name = buffer[body : body + length]
                body += length
                if body > end:
                    raise MalformedFrame("the client id runs past the end")
                client_id: str | None = name.decode()
            else:
                client_id = None if length < 0 else ""
            if route.is_flexible:
                if body < end and not buffer[body]:
                    body += 1
                else:
                    _, body = headers.read_request_header(buffer, position, end)
            request, _ = route.read(buffer, body, end)
        except (MalformedFrame, UnicodeDecodeError) as error:
            self._refuse(f"a malformed {route.name} v{version} request: {error}")
            return
        ctx = Context(version, client_id, self, self._node)
        self._run(reply, route.handle(request, ctx))
        # Who intercepts requests is to see every one of them.
        if key == PRODUCE and not self._closing and self._listener.routes.intercept is None:
            if lanes is None:
                lanes = self._lanes = ProduceLanes(self._node.authorizer)
            lanes.learn(ctx, route, request, buffer, position, end)

    def _run(self, reply: Reply, steps: Steps) -> None:
        """Run a handler up to its first wait, or to its end."""
        route = reply.route
        try:
            waits_for = steps.send(None)
        except StopIteration as done:
            reply.response = done.value
        except Disconnect as reason:
            self._refuse(str(reason))
            return
        except Exception as error:
            if not self._failed(reply, error):
                return
        else:
            self._unanswered_bytes += reply.frame_bytes
            self._fetching = route.carries_records
            began = monotonic()
            reply.suspended = Suspended(
                steps, waits_for, lambda result, error: self._finished(reply, began, result, error)
            )
        self._replies.append(reply)
        if route.carries_records and reply.response is not PENDING:
            self._unsent_records += records_size(reply.response)
            if self._unsent_records > UNSENT_RECORDS_MAX:
                self._answer()

    def _finished(self, reply: Reply, began: float, result: Any, error: BaseException | None) -> None:
        """A handler that had to wait is done."""
        reply.suspended = None
        reply.route.waited(monotonic() - began)
        self._unanswered_bytes -= reply.frame_bytes
        if reply.route.carries_records:
            self._fetching = False
        if self._closing:
            return  # nobody is left to be told
        if error is None:
            reply.response = result
        elif isinstance(error, asyncio.CancelledError):
            # Not by us: what it waited for was given up, and without its answer no later one could leave.
            self._refuse(f"{reply.route.name} was given up")
            return
        elif isinstance(error, Disconnect):
            self._refuse(str(error))
            return
        elif not self._failed(reply, error):
            return
        if self._replies and self._replies[0] is reply:
            if len(self._replies) == 1:
                self._answer_suspended()
            elif not self._is_answering:
                # One sync or one rebalance releases many: all that are done in this turn of the loop leave in
                # one write.
                self._is_answering = True
                self._listener.loop.call_soon(self._answer_suspended)

    def _answer_suspended(self) -> None:
        """Answer what had to wait, and go on with what waited behind it."""
        self._is_answering = False
        if not self._closing:
            try:
                self._answer()
            except Exception:
                self._broke()
            self._resume()

    def _answer(self) -> None:
        """Write the logs this turn appended to, then send every reply whose turn has come."""
        replicas = self._node.replicas
        replies = self._replies
        if replicas.dirty:
            failed = replicas.write_pending()
            if failed:
                for reply in replies:
                    reply.response = failures.withdrawn(reply.response, reply.route, failed)
        out = bytearray()
        chunks: list[Buffer] = []
        unsent = self._unsent_records = 0
        while replies and replies[0].response is not PENDING:
            reply = replies.pop(0)
            response, route = reply.response, reply.route
            if type(response) is bytes:
                out += response
                continue
            if response is None:
                continue  # acks=0: the client expects nothing
            start = len(out)
            if route.carries_records:
                if out:
                    chunks.append(out)
                    out = bytearray()
                head = reply.correlation_id.to_bytes(4, "big", signed=True)
                made = route.encode_chunks(response, head + b"\0" if route.tagged_reply else head)
                chunks += made
                unsent += sum(map(len, made))
            else:
                out += SIZE_AND_CORRELATION.pack(0, reply.correlation_id)
                if route.tagged_reply:
                    out.append(0)
                route.write(response, out)
                SIZE.pack_into(out, start, len(out) - start - 4)
            if unsent > UNSENT_MAX:
                self._send(chunks, out)
                out, chunks, unsent = bytearray(), [], 0
        self._send(chunks, out)

    def _send(self, chunks: list[Buffer], out: bytearray) -> None:
        if self._closing:
            return
        if chunks:
            if out:
                chunks.append(out)
            self._transport.writelines(chunks)
        elif out:
            self._transport.write(out)

    # --- bytes that have to wait ---------------------------------------------------------

    def _is_full(self) -> bool:
        # A waiting fetch holds back what follows it, as Kafka does for every request: its answer may be
        # large, and a pipeline of such answers would wait in memory for the first of them.
        return (
            self._write_paused
            or self._fetching
            or len(self._replies) >= UNANSWERED_MAX
            or self._unanswered_bytes > UNANSWERED_BYTES_MAX
        )

    def _keep(self, buffer: bytearray, position: int, end: int) -> None:
        """Hold on to the start of a frame, or to frames that back-pressure keeps waiting."""
        have = end - position
        view = memoryview(buffer)[position:end]
        if have >= 4:
            need = SIZE.unpack_from(buffer, position)[0] + 4
            if need > LARGE_FRAME and LARGE_FRAME_START <= have < need:
                self._have, self._need = have, need
                self._own_frame(view, need)
                return
        self._left = bytes(view)
        if self._is_full() and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _own_frame(self, received: memoryview, need: int) -> None:
        start = Scratch.OFFSET
        frame = self._scratch.take_spare(need) or bytearray(start + min(need, 4 * len(received)))
        self._frame_view = memoryview(frame)[start : start + need]
        self._frame_view[: len(received)] = received
        self._frame = frame

    def _resume(self) -> None:
        """Room again: go on with the frames that were kept, then with the socket."""
        if not self._reading_paused or self._closing or self._is_full():
            return
        start = Scratch.OFFSET
        kept = bytearray(start) + self._left
        self._left = b""
        self._turn(kept, start, len(kept))
        if not self._closing and not self._is_full():
            self._reading_paused = False
            self._transport.resume_reading()

    # --- ends ----------------------------------------------------------------------------

    def _not_served(self, key: int, version: int, correlation_id: int) -> None:
        if self.routes is not self._listener.routes:
            self._refuse(f"API key {key} where only authenticating again is left")
            return
        if key != API_VERSIONS:
            self._refuse(f"API key {key} version {version}, which is not served")
            return
        # The one case in which Kafka answers in another version than it was asked (KIP-511): a client
        # newer than the broker learns from a version 0 answer what it may say.
        from ottla.server.handlers.api_versions import unsupported_version

        route = self._listener.routes.find(API_VERSIONS, 0)
        assert route is not None
        reply = Reply(route, correlation_id, 0)
        reply.response = unsupported_version()
        self._replies.append(reply)

    def _failed(self, reply: Reply, error: BaseException) -> bool:
        """A handler raised: answer with the error if the message has a place for one, else hang up."""
        if not isinstance(error, KafkaError):
            logger.error(
                "handler failed api=%s client=%s", reply.route.name, self.client_host, exc_info=error
            )
        reply.response = failures.failed(reply.route.response_class, error)
        if reply.response is None:
            self._refuse(f"{reply.route.name} failed: {error!r}")
            return False
        return True

    def _broke(self) -> None:
        """A mistake of ours in the middle of a turn: it costs this client its connection, others nothing."""
        logger.exception("connection failed client=%s", self.client_host)
        # What was appended lies in the buffer, which the next connection overwrites.
        self._node.replicas.write_pending()
        self.abort()

    def _refuse(self, what: str) -> None:
        logger.info("closing connection client=%s reason=%s", self.client_host, what)
        self.close()

    def close(self) -> None:
        """Close after what has been handed to the socket is sent; nothing more is read or answered."""
        if not self._closing:
            # What earlier requests of this turn have earned is still theirs.
            self._answer()
            self._closing = True
            if not self._transport.is_closing():
                # Closing TLS takes a while, in which more would be received.
                self._transport.pause_reading()
            self._transport.close()

    def expire(self) -> None:
        """Close for being idle. Who was closed before and has not taken the last answers since is cut off."""
        if self._closing:
            self.abort()
        else:
            self.close()

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()


def _is_whole(buffer: bytearray, position: int, end: int) -> bool:
    return end - position >= 4 and end - position >= 4 + SIZE.unpack_from(buffer, position)[0]
