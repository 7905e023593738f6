"""librdkafka's own performance program, built from the packages that Debian has of it.

`python -m tools.rdkafka_performance` fetches `librdkafka-dev` (which brings the program as source) and
`librdkafka1` with apt, as files and without installing anything, and compiles the program into `.kafka/`.
One that is on the PATH is taken as it is.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / ".kafka" / "rdkafka_performance"
PACKAGES = ("librdkafka-dev", "librdkafka1")
SOURCE = "rdkafka_performance.c"

# The program belongs into librdkafka's source tree and asks for two private headers. It uses this of them.
PRIVATE_HEADER = """\
#pragma once
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#define RD_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RD_MAX(a, b) ((a) > (b) ? (a) : (b))
#define rd_snprintf snprintf
typedef int64_t rd_ts_t;
static inline rd_ts_t rd_clock(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (rd_ts_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
"""


class ProgramUnavailable(RuntimeError):
    """The program is neither here nor can it be built here."""


def program() -> str:
    """Where it is; nothing is fetched."""
    found = shutil.which("rdkafka_performance") or shutil.which(HOME / "rdkafka_performance")
    if found is None:
        raise ProgramUnavailable(
            "no rdkafka_performance here (`make kafka` builds it where apt has librdkafka)"
        )
    return found


def build() -> str:
    unpacked, examples, private = HOME / "unpacked", HOME / "examples", HOME / "src"
    for folder in (unpacked, examples, private):
        folder.mkdir(parents=True, exist_ok=True)
    run("apt-get", "download", *PACKAGES, directory=HOME)
    for package in sorted(HOME.glob("*.deb")):
        run("dpkg", "-x", str(package), str(unpacked))
    found = sorted(unpacked.rglob(f"{SOURCE}*"))
    if not found:
        raise ProgramUnavailable(f"{PACKAGES[0]} does not bring {SOURCE}")
    read = gzip.open if found[0].suffix == ".gz" else open
    with read(found[0], "rb") as source:
        (examples / SOURCE).write_bytes(source.read())
    for name in ("rd.h", "rdtime.h"):
        (private / name).write_text(PRIVATE_HEADER)
    (library,) = unpacked.rglob("librdkafka.so.1")
    run(
        *("cc", "-w", "-O2", "-D_GNU_SOURCE", f"-I{private}", f"-I{unpacked}/usr/include/librdkafka"),
        *(str(examples / SOURCE), str(library), f"-Wl,-rpath,{library.parent}", "-lpthread"),
        *("-o", str(HOME / "rdkafka_performance")),
        directory=HOME,
    )
    return str(HOME / "rdkafka_performance")


def run(*command: str, directory: Path | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise ProgramUnavailable(f"no `{command[0]}` here to build rdkafka_performance with")
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ProgramUnavailable(f"{' '.join(command[:2])} failed:\n{(done.stdout + done.stderr)[-1000:]}")


def main() -> int:
    try:
        print(build())
    except ProgramUnavailable as error:
        print(f"rdkafka_performance will not be measured: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
