"""`ottla node` at work: a broker of its own, lines from stdin, answers to stdout."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import Final

from ottla.gateways.json_lines import JsonLinesNode
from ottla.gateways.partition_logs import PartitionLogs
from ottla.server.broker import Broker, ConfigError, DirectoryInUse, StartupError, new_event_loop

DONE, CANNOT_START = 0, 1
# One line holds one message, and a topic takes messages of up to a megabyte.
LINE_BYTES_MAX: Final = 16 << 20


def serve(data_dir: Path | None, port: int, full: bool) -> int:
    """Answer the lines on stdin until it ends; returns the exit code."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(data_dir, port, full))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return DONE
    except (ConfigError, StartupError, DirectoryInUse, OSError) as error:
        _complain(str(error))
        return CANNOT_START
    return DONE


async def _serve(data_dir: Path | None, port: int, full: bool) -> None:
    lines = await _stdin()
    async with Broker(data_dir=data_dir, port=port) as broker:
        _complain(f"the topics are on {broker.bootstrap} as well, in {', '.join(broker.data_dirs)}")
        partitions = await PartitionLogs.of(broker)
        try:
            await JsonLinesNode(partitions, _write, _complain, full=full).run(lines)
        except* BrokenPipeError:
            # Nobody reads our answers any more. Python would complain once again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            partitions.close()


async def _stdin() -> asyncio.StreamReader:
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty():
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer
        )
    else:  # a file cannot be waited for, nor need it be
        lines.feed_data(sys.stdin.buffer.read())
        lines.feed_eof()
    return lines


def _write(line: str) -> None:
    print(line, flush=True)


def _complain(text: str) -> None:
    # stdout belongs to the messages.
    print(f"ottla: {text}", file=sys.stderr, flush=True)
