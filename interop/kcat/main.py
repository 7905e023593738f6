"""kcat, by its command line. See ../README.md for what each feature asks.

It has no way to ask for the offsets of a group, so confluent-kafka asks for them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

KCAT, BOOTSTRAP, FEATURE, NAME = sys.argv[1:5]
PATIENCE = 60.0
FIRST_TIME = 1_600_000_000_000

# A package that was only unpacked has its libraries beside it.
LIBRARIES = sorted({str(file.parent) for file in Path(KCAT).parents[1].glob("lib/*/lib*.so*")})
ENVIRONMENT = os.environ | ({} if KCAT.startswith("/usr/") else {"LD_LIBRARY_PATH": ":".join(LIBRARIES)})


def kcat(*words: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        [KCAT, "-b", BOOTSTRAP, *words],
        input=stdin,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"kcat {' '.join(words)}: {done.stderr}")
    return done.stdout


def record(line: str) -> dict[str, Any]:
    found = json.loads(line)
    names = found.get("headers", [])
    return {
        "p": found["partition"],
        "o": found["offset"],
        "k": found["key"],
        "v": found["payload"],
        "h": [[name, value] for name, value in zip(names[::2], names[1::2], strict=True)],
        "t": found["ts"],
    }


def read(*words: str, topic: str = NAME) -> list[dict[str, Any]]:
    """Everything up to the ends of the partitions."""
    lines = kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J", *words).splitlines()
    return [record(line) for line in lines]


def numbered(*words: str, suffix: str = "") -> None:
    for partition in range(4):
        lines = [f"key-{n}:value-{n}{suffix}\n" for n in range(partition, 100, 4)]
        kcat("-P", "-t", NAME, "-p", str(partition), "-K", ":", *words, stdin="".join(lines))


def produce(*words: str) -> dict[str, Any]:
    numbered(*words)
    return {"records": read()}


def codec() -> dict[str, Any]:
    numbered("-z", FEATURE, suffix=" compressible" * 20)
    return {"records": read()}


def headers() -> dict[str, Any]:
    given = ("-H", "a=1", "-H", "a=2", "-H", "empty=", "-H", "näme=wért", "-H", "null")
    kcat("-P", "-t", NAME, "-p", "0", *given, stdin="with\n")
    kcat("-P", "-t", NAME, "-p", "0", stdin="out\n")
    return {"records": read()}


def keys() -> dict[str, Any]:
    lines = [f"key-{n}:value-{n}\n" for n in range(49)] + ["key-49:\n"]
    partitioner = ("-X", "topic.partitioner=murmur2_random")
    kcat("-P", "-t", NAME, "-K", ":", "-Z", *partitioner, stdin="".join(lines))
    return {"records": read()}


def read_committed() -> dict[str, Any]:
    return {
        "records": read("-X", "isolation.level=read_committed"),
        "all": read("-X", "isolation.level=read_uncommitted"),
    }


class Member:
    """A kcat in the group; which partitions it has is what it last said on stderr."""

    def __init__(self, *words: str) -> None:
        self.found: list[dict[str, Any]] = []
        self.partitions: list[int] = []
        self.changes = 0
        self.process = subprocess.Popen(
            [KCAT, "-b", BOOTSTRAP, "-G", NAME, "-J", "-u", "-X", "auto.offset.reset=earliest", *words, NAME],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.listen, self.watch)]
        for thread in self.threads:
            thread.start()

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.found.append(record(line))

    def watch(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "rebalanced" in line:
                self.changes += 1
                numbers = re.findall(r"\[(\d+)\]", line)
                self.partitions = [int(number) for number in numbers] if "assigned:" in line else []

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        for thread in self.threads:
            thread.join(PATIENCE)


def until(question: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not question() and time.monotonic() < deadline:
        time.sleep(0.05)


def committed() -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": NAME})
    found = consumer.committed([TopicPartition(NAME, partition) for partition in range(4)], timeout=30)
    consumer.close()
    return {at.partition: at.offset for at in found}


def group() -> dict[str, Any]:
    members = [Member(), Member()]
    until(
        lambda: (
            len({found["v"] for member in members for found in member.found}) == 100
            and all(len(member.partitions) == 2 for member in members)
        )
    )
    assigned = [list(member.partitions) for member in members]
    for member in members:
        member.close()
    found = [one for member in members for one in member.found]
    return {"assigned": assigned, "records": found, "committed": committed()}


def static() -> dict[str, Any]:
    def start(suffix: str) -> Member:
        return Member("-X", f"group.instance.id={NAME}-{suffix}", "-X", "session.timeout.ms=30000")

    first, other = start("a"), start("b")
    until(lambda: len(first.partitions) == len(other.partitions) == 2)
    before, kept = first.partitions, other.partitions
    first.close()
    other.changes = 0
    first = start("a")
    until(lambda: len(first.partitions) == 2)
    time.sleep(0.5)
    report = {"before": before, "other": kept, "after": first.partitions, "rebalances": other.changes}
    first.close()
    other.close()
    return report


def old() -> dict[str, Any]:
    numbered()
    member = Member()
    until(lambda: len(member.found) >= 100)
    member.close()
    return {"records": member.found, "committed": committed()[0]}


FEATURES: dict[str, Callable[[], dict[str, Any]]] = {
    "produce": produce,
    **dict.fromkeys(("gzip", "snappy", "lz4", "zstd"), codec),
    "headers": headers,
    "keys": keys,
    "idempotence": lambda: produce("-X", "enable.idempotence=true"),
    "read-committed": read_committed,
    "group-classic": group,
    "static": static,
    "old-versions": old,
}

print(json.dumps(FEATURES[FEATURE]()))
