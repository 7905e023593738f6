"""Asks the active controller on another node, and asks again while there is none.

A broker speaks for itself in the requests that are its own, such as heartbeats. What a client asked for goes
in an Envelope, with the client's name and address on it, so that the controller can judge what that client
may do (KIP-590). A controller that is not the active one says so and has done nothing; one that could not be
heard may have done it, and is asked again all the same, as Apache Kafka does.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.client.errors import ClientError, UnsupportedRequest
from ottla.core.principal import Principal
from ottla.protocol.apis import api
from ottla.protocol.codec import decode, encode
from ottla.protocol.errors import (
    NotController,
    RequestTimedOut,
    UnknownServerError,
    UnsupportedVersion,
    error_class,
)
from ottla.protocol.headers import read_response_header, request_head, response_header_version
from ottla.protocol.messages.alter_partition import AlterPartitionRequest
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.wire import MalformedFrame
from ottla.raft.membership import Address
from ottla.runtime.channels import Channels

if TYPE_CHECKING:
    from ottla.protocol.messages.envelope import EnvelopeRequest

logger = logging.getLogger("ottla.forwarding")

# How long a client's request looks for a controller, and how long what a broker needs for itself.
CLIENTS_S: Final = 5.0
# The pause after an attempt that failed, growing to the last. A change of leader ends it.
FIRST_PAUSE_S: Final = 0.02
LAST_PAUSE_S: Final = 0.5
# One attempt: a leader that hangs is not waited for longer, there may be another one by then.
ATTEMPT_S: Final = 30.0

# Requests that should not wait behind others on a connection: answers come in the order of the requests.
PURPOSES: Final[dict[type, str]] = {BrokerHeartbeatRequest: "heartbeat", AlterPartitionRequest: "isr"}


class Caller(Protocol):
    """The client in whose name a request is forwarded: a connection of the server is one."""

    @property
    def principal(self) -> Principal: ...
    @property
    def address(self) -> str: ...


class Forwarding:
    """`leader` answers where the leader of the quorum listens; `changed` waits until that may be another."""

    def __init__(
        self,
        channels: Channels,
        leader: Callable[[], Address | None],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._channels = channels
        self._leader = leader
        self._changed = changed

    async def ask(self, request: Any, version: int, caller: Caller | None, within: float) -> Any:
        """One answer of the active controller.

        Raises `NotController` when the node that is asked does not lead any more, or nobody does, and
        `RequestTimedOut` when it cannot be heard.
        """
        at = self._leader()
        if at is None:
            raise NotController("there is no leader of the metadata quorum")
        within = min(within, ATTEMPT_S)
        kind = type(request)
        purpose = PURPOSES.get(kind, "controller")
        try:
            if caller is not None:
                response = await self._ask_in_envelope(at, request, version, caller, within)
            else:
                answer = api(kind.api_key).response
                response = await self._channels.ask_controller(
                    at, request, answer, purpose=purpose, within=within, version=version
                )
        except UnsupportedRequest as error:
            raise UnsupportedVersion(str(error)) from error
        except ClientError as error:
            raise RequestTimedOut(f"the controller could not be asked: {error}") from error
        if is_refused(response):
            raise NotController("the leader of the metadata quorum is another one")
        return response

    async def pause(self, attempt: int, remaining: float) -> None:
        """Wait before the next attempt, but not longer than until there may be another leader.

        A moment it is in any case: it may be the same leader, with news in its log all the time.
        """
        longest = min(FIRST_PAUSE_S * 2 ** min(attempt, 10), LAST_PAUSE_S)
        await asyncio.sleep(min(FIRST_PAUSE_S / 2, max(remaining, 0.0)))
        try:
            async with asyncio.timeout(min(longest * (0.5 + random.random() / 2), max(remaining, 0.0))):
                await self._changed()
        except TimeoutError:
            pass

    async def _ask_in_envelope(
        self, at: Address, request: Any, version: int, caller: Caller, within: float
    ) -> Any:
        from ottla.protocol.messages.envelope import EnvelopeResponse

        answer = await self._channels.ask_controller(
            at, envelope(request, version, caller), EnvelopeResponse, purpose="envelope", within=within
        )
        if answer.error_code:
            error = error_class(answer.error_code)
            if not issubclass(error, NotController | RequestTimedOut):
                logger.error("the controller refused an envelope error=%s", error.__name__)
            raise error("the controller refused the request")
        return opened(request, version, answer.response_data or b"")


def envelope(request: Any, version: int, caller: Caller) -> EnvelopeRequest:
    """A client's request as it goes to the controller."""
    # Imported here: a node that is alone sends none.
    from ottla.protocol.messages.envelope import EnvelopeRequest
    from ottla.protocol.stored.principal import DefaultPrincipalData

    key = type(request).api_key
    principal = DefaultPrincipalData(type=caller.principal.type, name=caller.principal.name)
    return EnvelopeRequest(
        request_data=request_head(key, version, 0, "") + encode(request, version),
        # The version comes first, as in Kafka's own principal builder.
        request_principal=b"\x00\x00" + encode(principal, 0),
        client_host_address=_packed(caller.address),
    )


def opened(request: Any, version: int, data: bytes) -> Any:
    """The response in the answer to an envelope."""
    key = type(request).api_key
    try:
        _, body = read_response_header(data, 0, len(data), response_header_version(key, version))
        return decode(api(key).response, version, data, body)
    except MalformedFrame as error:
        raise UnknownServerError(f"the controller's answer cannot be read: {error}") from error


def is_refused(response: Any) -> bool:
    """Whether a response says, in the way of its API, that this is not the active controller."""
    if hasattr(response, "error_code"):
        return bool(response.error_code == NotController.code)
    # What was refused for another reason may be among it, such as topics that a client may not make.
    return any(
        getattr(part, "error_code", None) == NotController.code
        for name in ("topics", "results", "responses", "filter_results")
        for part in getattr(response, name, ())
    )


def _packed(address: str) -> bytes:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).packed
    except ValueError:
        return ipaddress.ip_address("127.0.0.1").packed
