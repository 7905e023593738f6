"""Running a command against a cluster: connect, do it, and turn what goes wrong into one line."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

import typer

from ottla.cli import client_properties
from ottla.cli.commands import drop_output
from ottla.cli.exit_codes import BAD_USAGE as BAD_USAGE
from ottla.cli.exit_codes import DONE as DONE
from ottla.cli.exit_codes import FAILED as FAILED
from ottla.cli.exit_codes import INTERRUPTED as INTERRUPTED
from ottla.cli.exit_codes import TERMINATED as TERMINATED
from ottla.cli.options import DEFAULT_TIMEOUT
from ottla.client.cluster import Cluster
from ottla.client.errors import BadAddress, BadSecurity, ClientError, NotKafka, Unreachable
from ottla.config.settings import ConfigError
from ottla.protocol.errors import KafkaError

T = TypeVar("T")

# What to do next, by the error's name in Kafka.
_NEXT = {
    "UNKNOWN_TOPIC_OR_PARTITION": (
        "`ottla topic list` shows the topics there are, `ottla topic create` makes one"
    ),
    "TOPIC_ALREADY_EXISTS": "delete it first, or add --if-not-exists",
    "INVALID_REPLICATION_FACTOR": "`ottla cluster` shows how many brokers there are",
    "GROUP_ID_NOT_FOUND": "`ottla group list` shows the groups there are",
    "NON_EMPTY_GROUP": "stop its consumers first",
    "UNKNOWN_MEMBER_ID": "its consumers must be stopped first",
    "TRANSACTIONAL_ID_NOT_FOUND": "`ottla transactions list` shows those there are",
    "OFFSET_OUT_OF_RANGE": "`ottla topic describe` shows which offsets there are",
    "MESSAGE_TOO_LARGE": "raise max.message.bytes of the topic, or send smaller records",
    "NOT_ENOUGH_REPLICAS": "`ottla topic describe` shows which replicas are in sync",
    "LEADER_NOT_AVAILABLE": "`ottla topic describe` shows which brokers are missing",
    "TOPIC_AUTHORIZATION_FAILED": "ask for the permission, or use another identity",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for the permission, or use another identity",
    "SECURITY_DISABLED": (
        "start the broker with "
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer to have access rules"
    ),
}


class Refused(Exception):
    """A command cannot be carried out. The message is one line that says why and what to do."""


class Misused(Exception):
    """A command was given something that it does not take."""


def run(bootstrap: str, command: Callable[[Cluster], Awaitable[T]], *, timeout: float = DEFAULT_TIMEOUT) -> T:
    """What the command answers; leaves the process with one line and a code if it fails."""

    async def connected() -> T:
        _end_when_terminated()
        async with Cluster(bootstrap, security=client_properties.security(), timeout=timeout) as cluster:
            return await command(cluster)

    return guarded(lambda: asyncio.run(connected()), bootstrap)


def _end_when_terminated() -> None:
    """Have SIGTERM end this task as Ctrl-C does: a member leaves its group instead of being missed by it."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def guarded(command: Callable[[], T], bootstrap: str = "") -> T:
    try:
        answer = command()
        sys.stdout.flush()
        return answer
    except BrokenPipeError:
        drop_output()  # whoever read it has had enough
        raise typer.Exit(DONE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except asyncio.CancelledError:
        raise typer.Exit(TERMINATED) from None
    except (Misused, BadAddress, BadSecurity, ConfigError) as error:
        fail(str(error), BAD_USAGE)
    except Exception as error:
        line = explain(error, bootstrap)
        if line is None:
            raise
        fail(line, FAILED)


def explain(error: BaseException, bootstrap: str = "") -> str | None:
    """One line for an error that is nobody's bug; None for one that is ours."""
    if isinstance(error, ExceptionGroup):
        return explain(error.exceptions[0], bootstrap)
    if isinstance(error, Unreachable | NotKafka) and not str(error).endswith("?"):  # that is advice already
        local = any(name in bootstrap for name in ("localhost", "127.0.0.1", "[::1]"))
        start = "start a broker with `ottla serve`, or " if local else ""
        return f"{error}; {start}name another with --bootstrap"
    if isinstance(error, KafkaError):
        text = str(error).rstrip(".")
        advice = _NEXT.get(error.name)
        return f"{text} ({error.name})" + (f"; {advice}" if advice else "")
    if isinstance(error, ClientError | Refused):
        return str(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return None


def fail(line: str, code: int) -> NoReturn:
    _complain(line)
    raise typer.Exit(code)


def complain(error: KafkaError) -> str:
    """Tell that one of many things failed, so that the others can still be done; answers the line."""
    line = explain(error)
    assert line is not None, f"{error!r} is an answer of a broker"
    _complain(line)
    return line


def _complain(line: str) -> None:
    sys.stdout.flush()
    print(f"ottla: {' '.join(line.split())}", file=sys.stderr, flush=True)
