"""The broker process of a test: commands on stdin and answers on stdout, a line of JSON each.

It ends with its parent: when stdin closes without a word, whoever started it is gone, and it removes its
data and goes too. So a test run that is killed leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sys
from typing import Any

from ottla.server.broker import Broker, ConfigError, DirectoryInUse, StartupError, new_event_loop
from ottla.testing.faults import Fault, FaultScript


async def serve(lines: asyncio.StreamReader) -> None:
    asked = json.loads(await lines.readline())
    script = FaultScript()
    try:
        broker = Broker(properties=asked["properties"], intercept=script.intercept)
        await broker.start()
    except (ConfigError, StartupError, DirectoryInUse, OSError) as error:
        _say(error=str(error))
        return
    stopped = False
    try:
        _say(bootstrap=broker.bootstrap)
        while line := await lines.readline():
            command = json.loads(line)
            match command.pop("do"):
                case "fault":
                    _say(number=script.add(Fault(**command)))
                case "heal":
                    script.remove(command["number"])
                    _say(hits=script.hits())
                case "hits":
                    _say(hits=script.hits())
                case "stop":
                    stopped = True
                    break
    finally:
        await broker.stop()
        if stopped:
            _say(stopped=True)
        else:
            shutil.rmtree(asked["remove"], ignore_errors=True)


def _say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


async def _main() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer
    )
    await serve(lines)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_main())
