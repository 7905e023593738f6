"""What can go wrong between a client and a cluster, beside the errors that a broker answers with.

A broker's own errors are the `KafkaError`s of the protocol. All of these say in one line what happened.
"""

from __future__ import annotations

import os
import ssl
from typing import ClassVar, Final

from ottla.protocol.errors import NONE, KafkaError, error_class

REFUSED: Final = "connection refused"


class ClientError(Exception):
    """The request got no answer."""

    retriable: ClassVar[bool] = False


class Unreachable(ClientError):
    """No connection to a broker could be made."""

    retriable = True


class Refused(Unreachable):
    """The machine answers, and nobody listens there: the process is gone."""


class Disconnected(ClientError):
    """The connection ended before the answer came. Whether the request took effect is not known."""

    retriable = True


class NoAnswer(ClientError):
    """The broker took longer than it was given. Whether the request took effect is not known."""

    retriable = True


class RequestTooLarge(ClientError):
    """The broker hung up on a request that is longer than it reads."""


class NotKafka(ClientError):
    """What listens there does not speak Kafka, or speaks it wrongly."""


class UnsupportedRequest(ClientError):
    """The broker does not know this request in any version that we know."""


class BadAddress(ClientError):
    """A bootstrap address that is not host:port."""


class BadSecurity(ClientError):
    """A security property that cannot be used, or a file it names that cannot."""


class AuthenticationFailed(ClientError):
    """The broker does not accept who we say we are, or cannot prove that it is itself."""


def check(code: int, subject: str, message: str | None = None) -> None:
    """Raise what a broker answered, with what it is about; nothing when it is no error."""
    if code != NONE:
        kind = error_class(code)
        raise kind(f"{subject}: {message or str(kind())}")


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may work a moment later."""
    return isinstance(error, KafkaError | ClientError) and error.retriable


def reason(error: OSError) -> str:
    """What happened to a socket, in a few words and without asyncio's "Multiple exceptions" and addresses."""
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return REFUSED
    if isinstance(error, ssl.SSLError):
        return getattr(error, "verify_message", "") or (error.reason or str(error)).lower().replace("_", " ")
    if error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error) or "the connection was closed"  # asyncio has no words for that
