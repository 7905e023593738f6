"""Prints the code that reads and writes one version of a message.

make codec API=produce VERSION=9
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ottla.protocol.apis import Api, api, api_named
from ottla.protocol.codec import reader, writer


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Print the code that a message is compiled to.")
    parser.add_argument("api", help="a name as Kafka or our files spell it, or a key")
    parser.add_argument("version", type=int, nargs="?", help="the newest when not given")
    given = parser.parse_args(arguments)
    try:
        found = find(given.api)
    except KeyError:
        print(f"there is no API {given.api}", file=sys.stderr)
        return 2
    version = found.request.versions.last if given.version is None else given.version
    if version not in found.request.versions:
        print(f"{found.name} has versions {found.request.versions}, not {version}", file=sys.stderr)
        return 2
    print(source(found, version))
    return 0


def find(name: str) -> Api:
    return api(int(name)) if name.isdigit() else api_named(name)


def source(found: Api, version: int) -> str:
    parts = []
    for message in (found.request, found.response):
        for verb, function in (("read", reader(message, version)), ("write", writer(message, version))):
            text: Any = function
            parts.append(f"# {verb} {message.__name__} version {version}\n{text.__source__}")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
