"""`python -m tools.kafka fetch | serve | tool NAME ARGS... | check DIRECTORY | tools | exchange | cluster |
mixed`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from pathlib import Path

from tools.kafka.distribution import VERSION, KafkaUnavailable, jars
from tools.kafka.java_tools import run_java_tools
from tools.kafka.node import KafkaNode
from tools.kafka.run import SHORT_NAMES, ToolFailed, run_tool


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.kafka", description=f"Apache Kafka {VERSION} at hand."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="fetch the jars with Maven, if they are not there yet")
    serve = commands.add_parser("serve", help="run a fresh single node until interrupted")
    serve.add_argument("--port", type=int, default=None)
    serve.add_argument("--data-dir", type=Path, default=None, help="start on this directory, as it is")
    serve.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    tool = commands.add_parser("tool", help=f"run a tool: {', '.join(SHORT_NAMES)} or a class name")
    tool.add_argument("name")
    tool.add_argument("arguments", nargs=argparse.REMAINDER)
    check = commands.add_parser("check", help="let Kafka read a data directory that Ottla wrote")
    check.add_argument("directory", type=Path, nargs="?", default=None, help="default: have Ottla write one")
    tools = commands.add_parser("tools", help="run the tools against a broker that is there")
    tools.add_argument("bootstrap", metavar="HOST:PORT")
    commands.add_parser("exchange", help="run Ottla and Kafka in turn on one directory, and compare")
    commands.add_parser("cluster", help="run the tools against a cluster of three Ottla nodes")
    commands.add_parser("mixed", help="run two nodes of Ottla and one of Kafka as one cluster")
    options = parser.parse_args(arguments)
    try:
        if options.command == "fetch":
            print(jars())
        elif options.command == "serve":
            serve_until_interrupted(options)
        elif options.command == "tool":
            print(run_tool(options.name, *options.arguments, stdin=piped()), end="")
        elif options.command == "tools":
            found = run_java_tools(options.bootstrap)
            print("\n".join(found))
            return int(bool(found))
        elif options.command == "cluster":
            from tools.kafka.cluster_tools import check_cluster

            return int(check_cluster())
        elif options.command == "mixed":
            from tools.kafka.mixed import run_mixed

            return int(not run_mixed())
        elif options.command == "exchange":
            from tools.kafka.exchange import every_exchange

            problems: list[str] = []
            every_exchange(lambda _title, found: problems.extend(found))
            return int(bool(problems))
        else:
            from tools.kafka.check import check_directory

            return check_directory(options.directory)
    except (KafkaUnavailable, ToolFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def serve_until_interrupted(options: argparse.Namespace) -> None:
    properties = dict(assignment.split("=", 1) for assignment in options.set)
    with KafkaNode(options.data_dir, port=options.port, properties=properties) as node:
        print(
            f"Apache Kafka {VERSION} on {node.bootstrap}, process {node.pid}, log {node.log_file}", flush=True
        )
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()


def piped() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
