"""Fetching and building the client programs with the tools of their languages, below `.interop/`.

Each function answers the words that start a program, or raises NotAvailable with the reason. What is built
once is kept; `rm -r .interop` begins again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.kafka.distribution import PROJECT, write_whole

HOME = PROJECT / ".interop"
SOURCES = PROJECT / "interop"
BUILD_SECONDS = 1200.0


class NotAvailable(RuntimeError):
    """A toolchain, a registry or a package is not to be had here."""


class DoesNotCompile(RuntimeError):
    """A program of ours is wrong: no excuse for not running it."""


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotAvailable(f"no `{name}` on the PATH")
    return found


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Stdout of a build step; what it said when it failed."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=os.environ | dict(environment or {}),
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotAvailable(f"{' '.join(words[:3])} took longer than {BUILD_SECONDS:g} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NotAvailable(f"{Path(words[0]).name} {' '.join(words[1:3])}: {' / '.join(said[-3:])[:400]}")
    return done.stdout


def compile_with(words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    try:
        run(words, folder, environment)
    except NotAvailable as error:
        raise DoesNotCompile(str(error)) from None


def copy_sources(client: str, folder: Path) -> bool:
    """Brings the sources into the build folder; false if it was built from just these before."""
    source = SOURCES / client
    digest = hashlib.sha256()
    for file in sorted(file for file in source.rglob("*") if file.is_file()):
        digest.update(str(file.relative_to(source)).encode() + file.read_bytes())
    stamp = folder / ".built"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return False
    stamp.unlink(missing_ok=True)
    shutil.copytree(source, folder, dirs_exist_ok=True)
    write_whole(folder / ".building", digest.hexdigest())
    return True


def built(folder: Path) -> None:
    (folder / ".building").replace(folder / ".built")


def python_program(client: str, *packages: str) -> list[str]:
    """The Python clients are development dependencies of the project itself; more packages go beside."""
    program = [sys.executable, str(SOURCES / client / "main.py")]
    if not packages:
        return program
    folder = HOME / client
    stamp = folder / ".built"
    if not stamp.exists() or stamp.read_text() != " ".join(packages):
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        folder.mkdir(parents=True, exist_ok=True)
        run([*pip, "--upgrade", "--no-deps", "--target", str(folder / "packages"), *packages], folder)
        stamp.write_text(" ".join(packages))
    return [tool("env"), f"PYTHONPATH={folder / 'packages'}", *program]


def node_program(client: str, environment: Mapping[str, str] | None = None) -> list[str]:
    node, npm, folder = tool("node"), tool("npm"), HOME / client
    if copy_sources(client, folder):
        flags = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        run([npm, "install", *flags], folder, environment)
        built(folder)
    own = folder / "node_modules" / "node" / "bin" / "node"  # a client may bring a newer one, by npm too
    return [str(own) if own.exists() else node, str(folder / "main.mjs")]


def go_program(client: str) -> list[str]:
    go, folder = tool("go"), HOME / client
    if copy_sources(client, folder):
        environment = {"GOFLAGS": "-mod=mod"}
        run([go, "mod", "download"], folder, environment)
        compile_with([go, "build", "-o", "program", "."], folder, environment)
        built(folder)
    return [str(folder / "program")]


def cargo_program(client: str) -> list[str]:
    cargo, folder = tool("cargo"), HOME / client
    if copy_sources(client, folder):
        run([cargo, "fetch", "--quiet"], folder)
        compile_with([cargo, "build", "--release", "--quiet"], folder)
        built(folder)
    return [str(folder / "target" / "release" / "program")]


def java_program(version: str, leave_out: Sequence[str] = ()) -> list[str]:
    """One set of sources for every kafka-clients; files that an old one cannot compile are left out."""
    java, javac, maven = tool("java"), tool("javac"), tool("mvn")
    client = "kafka-clients"
    folder = HOME / f"{client}-{version}"
    if copy_sources(client, folder):
        pom = folder / "pom.xml"
        text = pom.read_text().replace("${kafka.version}", version)
        write_whole(pom, text)
        goal = "dependency:copy-dependencies"
        run([maven, "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={folder / 'lib'}"], folder)
        sources = [str(file) for file in sorted(folder.glob("*.java")) if file.stem not in leave_out]
        compile_with(
            [javac, "-nowarn", "-cp", f"{folder / 'lib'}/*", "-d", str(folder / "classes"), *sources], folder
        )
        built(folder)
    return [
        java,
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        f"{folder / 'classes'}:{folder / 'lib'}/*",
        "Main",
    ]


def debian_program(client: str, package: str) -> list[str]:
    """A program of the distribution: the installed one, or the package unpacked beside it."""
    script = [sys.executable, str(SOURCES / client / "main.py")]
    found = shutil.which(package)
    if found is not None:
        return [*script, found]
    apt, unpack, folder = tool("apt-get"), tool("dpkg-deb"), HOME / client
    root = folder / "root"
    program = root / "usr" / "bin" / package
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in (package, *missing_libraries(package)):
            run([apt, "download", "-q", name], folder)
        for archive in folder.glob("*.deb"):
            run([unpack, "-x", str(archive), str(root)], folder)
    return [*script, str(program)]


def debian_library(header: str, *packages: str) -> dict[str, str]:
    """The environment in which a compiler finds a library: the installed one, or packages unpacked beside."""
    if (Path("/usr/include") / header).exists():
        return {}
    apt, unpack, folder = tool("apt-get"), tool("dpkg-deb"), HOME / "libraries"
    root = folder / "root"
    if not (root / "usr" / "include" / header).exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in packages:
            run([apt, "download", "-q", name], folder)
        for archive in folder.glob("*.deb"):
            run([unpack, "-x", str(archive), str(root)], folder)
    found = ":".join(sorted({str(file.parent) for file in (root / "usr" / "lib").rglob("*.so")}))
    return {"CPATH": str(root / "usr" / "include"), "LIBRARY_PATH": found}


def missing_libraries(package: str) -> list[str]:
    """What the package depends on and is not installed here."""
    listed = run([tool("apt-cache"), "depends", "--recurse", "-i", package], HOME)
    names = {line.strip() for line in listed.splitlines() if line and not line.startswith((" ", "<", "|"))}
    query = [tool("dpkg-query"), "-W", "-f", "${Package}\n"]
    installed = set(run(query, HOME).split())
    return sorted(name for name in names - installed - {package} if ":" not in name)
