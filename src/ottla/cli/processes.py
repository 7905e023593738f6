"""`ottla serve --processes N`: a cluster of N nodes on this machine, each a process with its own directory.

This process only starts the nodes, passes on what they log, starts again the one that dies, and stops them.
All they need to know of each other is in a property file beside their data, so any of them could as well be
started by hand, or on another machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla import __version__
from ottla.cli import logs
from ottla.cli.format import claim, new_id
from ottla.cli.given import ENVIRONMENT_PREFIX, Given, properties, said
from ottla.cli.serve import BAD_USAGE, CANNOT_GO_ON, STOPPED, _complain, _own_name, _say
from ottla.config.listeners import SocketAddress, check_static, parse_address
from ottla.config.properties import parse_properties, write_properties
from ottla.config.settings import ConfigError
from ottla.storage.meta_properties import MetaPropertiesError, read_meta_properties

MOST: Final = 9
REMEMBERED: Final = "cluster.properties"
NODE_PROPERTIES: Final = "server.properties"
CONTROLLER: Final = "CONTROLLER"
READY: Final = "  listening on"
# A node that dies is started again after this long, and twice as long each time, as long as it keeps dying.
FIRST_PAUSE, LONGEST_PAUSE, CALM_SECONDS = 0.5, 30.0, 60.0
STOP_SECONDS: Final = 30.0


class Plan(NamedTuple):
    """One node: its number, where its properties and data are, and where clients find it."""

    id: int
    home: Path
    address: str


def serve_processes(count: int, given: Given, log_level: str) -> int:
    """Run the nodes until told to stop; returns the exit code."""
    with logs.configured(log_level):
        try:
            plans = prepare(count, given)
        except (ConfigError, MetaPropertiesError) as error:
            return _complain(error, BAD_USAGE)
        except OSError as error:
            return _complain(f"{error.filename}: {error.strerror}", CANNOT_GO_ON)
        return asyncio.run(_Nodes(plans, log_level).run())


# --- what each node is told -----------------------------------------------------------------


def prepare(count: int, given: Given) -> list[Plan]:
    """Property files and directories for all nodes. Raises ConfigError if the nodes cannot be told apart."""
    if not 1 <= count <= MOST:
        raise ConfigError(f"--processes {count}: from 1 to {MOST} nodes can share a machine")
    common = properties(given, os.environ)
    root = _root(common)
    client = _client_listener(common)
    found = _remembered(root)
    if found and (before := _size(found)) != count:
        raise ConfigError(
            f"--processes {count}: {root} is the data of {before} nodes; "
            f"say --processes {before}, or choose another --data-dir"
        )
    ports = [client.port + number if client.port else _free_port() for number in range(count)]
    controllers = [_still_free(found.get(f"node.{id}.controller.port")) for id in range(1, count + 1)]
    cluster_id = found.get("cluster.id") or new_id()
    root.mkdir(parents=True, exist_ok=True)
    _write(
        root / REMEMBERED,
        {"cluster.id": cluster_id}
        | {f"node.{id}.controller.port": str(port) for id, port in enumerate(controllers, 1)},
    )
    voters = ",".join(f"{id}@127.0.0.1:{port}" for id, port in enumerate(controllers, 1))
    plans = []
    for id, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1):
        home = root / f"node-{id}"
        address = client._replace(port=port)
        own = {
            **_copies(count, said(given, os.environ)),
            "node.id": str(id),
            "process.roles": "broker,controller",
            "listeners": f"{address},{CONTROLLER}://127.0.0.1:{controller}",
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": voters,
            "log.dirs": str(home.resolve()),
        }
        mapped = common.get("listener.security.protocol.map", "")
        if mapped and CONTROLLER not in mapped:
            own["listener.security.protocol.map"] = f"{mapped},{CONTROLLER}:PLAINTEXT"
        check_static({**common, **own})
        claim(home, id, cluster_id)
        _write(home / NODE_PROPERTIES, {**common, **own})
        plans.append(Plan(id, home, f"{address.host or '127.0.0.1'}:{port}"))
    return plans


def _root(common: Mapping[str, str]) -> Path:
    root = Path(common.get("log.dirs", common.get("log.dir", "data")))
    if "," in str(root):
        raise ConfigError("--processes: log.dirs should be one directory, which will hold one for every node")
    if read_meta_properties(str(root)) is not None:
        raise ConfigError(f"--processes: {root} is the data of a single node; choose another with --data-dir")
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "advertised.listeners"):
        if common.get(name):
            raise ConfigError(f"--processes: {name} is for nodes that are started one by one; leave it out")
    return root


def _client_listener(common: Mapping[str, str]) -> SocketAddress:
    listeners = [parse_address("listeners", each.strip()) for each in common["listeners"].split(",")]
    if len(listeners) != 1:
        raise ConfigError("--processes: listeners should be one; each node gets it, on a port of its own")
    return listeners[0]


def _copies(count: int, said: Mapping[str, str]) -> dict[str, str]:
    """As many copies as make sense, of whatever nobody has said anything about.

    With three nodes an acknowledged record is on two of them at least, so that any one can be lost.
    """
    copies, floor = str(min(3, count)), "2" if count >= 3 else "1"
    wanted = {
        "default.replication.factor": copies,
        "min.insync.replicas": floor,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": floor,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": floor,
    }
    return {name: value for name, value in wanted.items() if name not in said}


def _remembered(root: Path) -> dict[str, str]:
    try:
        return parse_properties((root / REMEMBERED).read_text())
    except FileNotFoundError:
        return {}


def _size(found: Mapping[str, str]) -> int:
    return sum(name.endswith(".controller.port") for name in found)


def _write(path: Path, lines: Mapping[str, str]) -> None:
    """For the owner's eyes alone, since properties can hold passwords."""
    with suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(write_properties(dict(sorted(lines.items()))))


def _still_free(port: str | None) -> int:
    """The port a controller had before, or another if somebody took it: all nodes are told where it is."""
    with suppress(OSError, TypeError, ValueError), socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", int(port or "")))
        return int(port or "")
    return _free_port()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- running them ----------------------------------------------------------------------------


class _Nodes:
    """The processes, from the first start to the last stop."""

    def __init__(self, plans: list[Plan], log_level: str) -> None:
        self._plans = plans
        self._log_level = log_level
        self._ready: set[int] = set()
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._signals = 0
        self._code = STOPPED
        self._announced = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop_asked)
        async with asyncio.TaskGroup() as tasks:
            for plan in self._plans:
                tasks.create_task(self._keep(plan))
            await self._stopping.wait()
            await self._stop_all()
        return self._code

    def _stop_asked(self) -> None:
        self._signals += 1
        if self._signals == 1:
            _say("stopping; Ctrl-C again does not wait for it")
            self._stopping.set()
        else:
            for process in self._running.values():
                with suppress(ProcessLookupError):
                    process.kill()

    async def _keep(self, plan: Plan) -> None:
        """Start the node, and start it again for as long as it is wanted."""
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._live(plan)
            if self._stopping.is_set():
                return
            if code == BAD_USAGE or (code == CANNOT_GO_ON and not self._announced):
                # It has said why, and would say it again.
                self._code = code
                self._stopping.set()
                return
            pause = FIRST_PAUSE if time.monotonic() - began > CALM_SECONDS else min(2 * pause, LONGEST_PAUSE)
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            _say(f"node {plan.id} {how}: it is started again in {pause:g} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _live(self, plan: Plan) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ottla",
            "serve",
            "--config",
            str(plan.home / NODE_PROPERTIES),
            "--log-level",
            self._log_level,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(),
            # Ctrl-C is for us: we tell them, in order.
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        self._running[plan.id] = process
        assert process.stdout is not None and process.stderr is not None
        try:
            await asyncio.gather(self._hear(plan, process.stdout), _pass_on(plan, process.stderr))
            return await process.wait()
        finally:
            self._running.pop(plan.id, None)

    async def _hear(self, plan: Plan, lines: asyncio.StreamReader) -> None:
        """What the node tells people; the cluster has an announcement of its own."""
        async for line in _lines(lines):
            if line.startswith(READY):
                if self._announced:
                    _say(f"node {plan.id} is back on {plan.address}")
                self._ready.add(plan.id)
                if len(self._ready) == len(self._plans) and not self._announced:
                    self._announced = True
                    self._announce()

    def _announce(self) -> None:
        bootstrap = ",".join(plan.address for plan in self._plans)
        ottla, root = _own_name(), self._plans[0].home.parent.resolve()
        _say(
            "\n".join(
                (
                    f"Ottla {__version__}: a cluster of {len(self._plans)} nodes on this machine",
                    f"  listening on  {bootstrap}",
                    f"  data in       {root}{os.sep}node-1 ... node-{len(self._plans)}",
                    f"  look at it    {ottla} cluster -b {bootstrap}",
                    f"  try           echo hello | {ottla} produce greetings -b {bootstrap}",
                    f"  then          {ottla} consume greetings -b {bootstrap}",
                    f"  break it      kill -9 {self._running[1].pid}    (node 1; it is started again)",
                    "  stop with     Ctrl-C",
                )
            )
        )

    async def _stop_all(self) -> None:
        """All at once: each hands over what it leads while there is somebody to take it."""
        for process in list(self._running.values()):
            with suppress(ProcessLookupError):
                process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in list(self._running.values()):
            try:
                await asyncio.wait_for(process.wait(), max(0.1, deadline - time.monotonic()))
            except TimeoutError:
                _say(f"process {process.pid} did not stop within {STOP_SECONDS:g} s and is killed")
                with suppress(ProcessLookupError):
                    process.kill()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue  # longer than anybody reads
        if not line:
            return
        yield line.decode(errors="replace").rstrip("\n")


async def _pass_on(plan: Plan, stream: asyncio.StreamReader) -> None:
    async for line in _lines(stream):
        with suppress(OSError):
            print(f"node-{plan.id} | {line}", file=sys.stderr, flush=True)


def _environment() -> dict[str, str]:
    """Ours, without properties: those are in the files, where each node has its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}


def _end_with_parent() -> None:
    """Have the kernel stop the node if we are killed, so that none is left behind."""
    import ctypes

    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGTERM)
