"""`ottla serve`: run a broker until told to stop.

The first SIGINT or SIGTERM stops it cleanly: requests are finished, logs flushed, a clean
shutdown noted. A second one means now.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla import __version__
from ottla.cli import logs
from ottla.cli.commands import drop_output
from ottla.cli.given import Given, properties
from ottla.config.listeners import check_static
from ottla.config.settings import ConfigError

if TYPE_CHECKING:
    from ottla.protocol.stored.metadata import UserScramCredentialRecord
    from ottla.server.broker import Broker

STOPPED, CANNOT_GO_ON, BAD_USAGE = 0, 1, 2

# How many objects are made between two looks for garbage, and how many of those looks go one generation
# further. Few of ours are in cycles, and with thousands of connections a look at all of them is long.
COLLECTED_EVERY = (20_000, 20, 20)

USUAL = ("localhost:9092", "127.0.0.1:9092")
"""Addresses that the other commands find without being told."""


def serve(given: Given, log_level: str, add_scram: Sequence[str] = ()) -> int:
    """Run a broker in this process; returns the exit code."""
    with logs.configured(log_level):
        return _serve(given, add_scram)


def _serve(given: Given, add_scram: Sequence[str]) -> int:
    try:
        wanted = properties(given, os.environ)
        check_static(wanted)
        users = _first_users(add_scram)
    except ConfigError as error:
        return _complain(error, BAD_USAGE)
    gc.disable()  # what a start makes, stays
    # Not before the properties are known to be good: a slip should be told at once.
    from ottla.server.broker import DirectoryInUse, StartupError, new_event_loop

    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_run(wanted, users))
    except asyncio.CancelledError:
        return STOPPED
    except ConfigError as error:
        return _complain(error, BAD_USAGE)
    except (StartupError, DirectoryInUse) as error:
        return _complain(error, CANNOT_GO_ON)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}", CANNOT_GO_ON)
    finally:
        gc.enable()


def _first_users(add_scram: Sequence[str]) -> list[UserScramCredentialRecord]:
    if not add_scram:
        return []
    from ottla.cli.first_users import first_users

    return first_users(add_scram, os.environ)


async def _run(wanted: Mapping[str, str], users: Sequence[UserScramCredentialRecord]) -> int:
    from ottla.server.broker import Broker

    stop = _StopSignals()
    async with Broker(properties=wanted, first_users=users) as broker:
        _collect_garbage()
        _announce(broker)
        stopping, dying = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(broker.died())
        try:
            await asyncio.wait((stopping, dying), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            dying.cancel()
        if stopping.done():
            _say("stopping")
            return STOPPED
        return _complain(dying.result(), CANNOT_GO_ON)


def _collect_garbage() -> None:
    """From now on, and without looking at what is there already: imports, which never become garbage."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_EVERY)
    gc.enable()


class _StopSignals:
    """SIGINT and SIGTERM as something to wait for.

    One that comes before anybody waits cancels the task that made this object: the broker is
    still starting, and gives up what it has begun.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._received = 0
        self._waiter: asyncio.Future[None] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._receive, number)

    async def wait(self) -> None:
        """Return at the first signal."""
        if not self._received:
            self._waiter = self._loop.create_future()
            await self._waiter

    def _receive(self, number: signal.Signals) -> None:
        self._received += 1
        if self._received > 1:
            # Whatever is stuck stays stuck; recovery at the next start makes it good.
            os._exit(128 + number)
        if self._waiter is None:
            self._task.cancel()
        elif not self._waiter.done():
            self._waiter.set_result(None)


def first_commands(bootstrap: str, security_protocol: str = "PLAINTEXT") -> tuple[str, str]:
    """Two lines to paste into a shell that show the broker at work."""
    where = "" if bootstrap in USUAL else f" -b {bootstrap}"
    ottla = _own_name()
    if security_protocol != "PLAINTEXT":
        ottla += " --client-config client.properties"
    return f"echo hello | {ottla} produce greetings{where}", f"{ottla} consume greetings{where}"


def _own_name() -> str:
    """How a shell calls this program: by name, or by path when it was started from an environment that the
    shell does not know of, as `make run` does."""
    started = Path(sys.argv[0])
    if started.name != "ottla" or shutil.which("ottla") == str(started.resolve()):
        return "ottla"
    here = Path.cwd()
    return str(started.relative_to(here) if started.is_relative_to(here) else started)


def _announce(broker: Broker) -> None:
    data = f"  data in       {', '.join(str(Path(each).resolve()) for each in broker.data_dirs)}"
    if not broker.addresses:
        where = ",".join(f"{host}:{port}" for host, port in broker.controller_addresses)
        _say(f"Ottla {__version__}\n  controller on {where}\n{data}\n  stop with     Ctrl-C")
        return
    bootstrap = broker.bootstrap
    protocol = broker.security_protocol
    send, receive = first_commands(bootstrap, protocol)
    lines = (
        f"Ottla {__version__}",
        f"  listening on  {bootstrap}" + ("" if protocol == "PLAINTEXT" else f" ({protocol})"),
        data,
        f"  try           {send}",
        f"  then          {receive}",
        "  stop with     Ctrl-C",
    )
    _say("\n".join(lines))


def _say(text: str) -> None:
    """A broker whose output nobody reads any more (`ottla serve | head`) goes on all the same."""
    try:
        print(text, flush=True)
    except OSError:
        drop_output()


def _complain(error: object, code: int) -> int:
    print(f"ottla: {error}", file=sys.stderr, flush=True)
    return code
