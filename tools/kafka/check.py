"""Apache Kafka reads what Ottla wrote: every file by its dump tool, then the whole directory by its broker.

Each step must hold: Kafka's tools work against Ottla, DumpLogSegments accepts every file of a directory that
Ottla wrote (or that is given), Apache Kafka starts on a copy and serves the same records, and Ottla starts on
what Kafka left.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.broker_process import BrokerProcess
from tools.kafka.dump import dump_directory
from tools.kafka.java_tools import WITH_RULES, run_acl_tools, run_java_tools
from tools.kafka.node import KafkaNode, complaints
from tools.kafka.run import ToolFailed, run_tool
from tools.kafka.workload import Contents, append_everywhere, differences, read_everything, write_workload


def check_directory(given: Path | None) -> int:
    """Exit code 0 if Apache Kafka found nothing to object to."""
    home = Path(tempfile.mkdtemp(prefix="ottla-kafka-check-"))
    try:
        return sum(check(given, home)) and 1
    finally:
        shutil.rmtree(home, ignore_errors=True)


def check(given: Path | None, home: Path) -> list[bool]:
    written = home / "written-by-ottla"
    if given is None:
        contents = ottla_writes(written)
    else:
        shutil.copytree(given, written)
        with BrokerProcess(written) as broker:
            contents = read_everything(broker.bootstrap)
    print(f"Ottla wrote {summary(contents)} to {written}")

    failed = [report("Kafka's own tools work against Ottla", java_tools)]
    failed += [report("DumpLogSegments reads every file", dump_directory(written))]
    failed.append(report("StorageTool accepts meta.properties", storage_info(written)))
    copy = home / "continued-by-kafka"
    shutil.copytree(written, copy)
    failed.append(report("Apache Kafka starts and serves the same", lambda: kafka_serves(copy, contents)))
    failed.append(report("Ottla starts on what Kafka left", lambda: ottla_serves(copy)))
    return failed


def report(title: str, outcome: list[str] | Callable[[], list[str]]) -> bool:
    """Prints one step; true if it failed."""
    if callable(outcome):
        try:
            outcome = outcome()
        except RuntimeError as error:
            outcome = [str(error)]
    print(f"{'FAILED' if outcome else 'ok':>6}  {title}", flush=True)
    for line in outcome[:40]:
        print(f"        {line}")
    return bool(outcome)


def ottla_writes(directory: Path) -> Contents:
    """A directory that has seen a clean stop, a kill, a recovery and another clean stop."""
    broker = BrokerProcess(directory, settings=["log.retention.check.interval.ms=500"])
    try:
        broker.start()
        write_workload(broker.bootstrap)
        broker.stop()
        broker.start()
        append_everywhere(broker.bootstrap, b"after a clean stop")
        broker.kill()
        broker.start()
        append_everywhere(broker.bootstrap, b"after a kill")
        contents = read_everything(broker.bootstrap)
        broker.stop()
    finally:
        broker.kill()
        broker.remove()
    return contents


def java_tools() -> list[str]:
    with BrokerProcess() as broker:
        problems = run_java_tools(broker.bootstrap)
    with BrokerProcess(settings=WITH_RULES) as broker:
        return problems + run_acl_tools(broker.bootstrap)


def storage_info(directory: Path) -> list[str]:
    node = KafkaNode(directory, node_id=node_id(directory))
    try:
        output = run_tool("storage", "info", "-c", str(node.write_properties()))
    except ToolFailed as error:
        return str(error).splitlines()
    finally:
        node.remove()
    return [line for line in output.splitlines() if "Found problem" in line]


def kafka_serves(directory: Path, expected: Contents) -> list[str]:
    with KafkaNode(directory, node_id=node_id(directory)) as kafka:
        problems = differences(expected, read_everything(kafka.bootstrap))
        append_everywhere(kafka.bootstrap, b"by Apache Kafka")
        return problems + complaints(kafka.log())


def ottla_serves(directory: Path) -> list[str]:
    with BrokerProcess(directory) as broker:
        contents = read_everything(broker.bootstrap)
        lost = [
            f"{name}: the record that Kafka appended is missing"
            for name, parts in contents.items()
            for records in parts.values()
            if records and records[-1].value != b"by Apache Kafka"
        ]
        return lost or ([] if contents else ["no topics are left"])


def node_id(directory: Path) -> int:
    lines = (directory / "meta.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return int(properties["node.id"])


def summary(contents: Contents) -> str:
    records = sum(len(records) for parts in contents.values() for records in parts.values())
    partitions = sum(len(parts) for parts in contents.values())
    return f"{len(contents)} topics, {partitions} partitions, {records} records"
