"""The session and Java for it, and the source over Spark Connect."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark import java
from ottla.spark.cache import cache_directory
from ottla.spark.home import ARCHIVES, spark_home
from ottla.spark.session import CHECKPOINT_FILES
from tests.spark.conftest import FOR_TESTS, Broker

if sys.platform == "win32":
    pytest.skip("needs a POSIX shell", allow_module_level=True)


SCRIPT = """
import os, sys
from ottla.spark.session import session

spark = session("without java", master="local[1]", **SETTINGS)
print(os.environ["JAVA_HOME"], type(spark).__module__)
print(spark.conf.get("spark.sql.streaming.checkpointFileManagerClass"))
options = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2]}
print(spark.read.format("ottla").options(**options).load().selectExpr("sum(offset) as s").collect()[0].s)
# Spark's processes end with this one, and take their time if they are asked to.
sys.stdout.flush()
os._exit(0)
"""


def test_spark_connect_on_a_machine_without_java(broker: Broker, tmp_path: Path) -> None:
    topic = broker.filled(3)
    # The programs that Spark's scripts need, and no Java: it is taken from its package.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (
        "bash",
        "sh",
        "cat",
        "chmod",
        "dirname",
        "env",
        "id",
        "ls",
        "mkdir",
        "ps",
        "readlink",
        "rm",
        "uname",
    ):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_HOME")
    }
    environment = {**inherited, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    script = SCRIPT.replace("SETTINGS", repr({**FOR_TESTS, "spark.api.mode": "connect"}))
    done = subprocess.run(
        [sys.executable, "-c", script, broker.bootstrap, topic],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    home, module, files, offsets = done.stdout.split()
    assert Path(home).is_relative_to(tmp_path / "cache")
    assert module.startswith("pyspark.sql.connect.")
    assert files == CHECKPOINT_FILES
    assert offsets == "3", "the source was found without registration"


# --- Java, without Spark -------------------------------------------------------------------


def fake_java(directory: Path, version: str) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    program.chmod(0o755)
    return directory


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25)])
def test_the_version_of_java_is_read(tmp_path: Path, version: str, major: int) -> None:
    assert java.java_version(fake_java(tmp_path, version) / "bin" / "java") == major


def test_what_is_not_java_has_no_version(tmp_path: Path) -> None:
    assert java.java_version(tmp_path / "nothing") == 0


def test_java_of_the_environment_wins_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, old = fake_java(tmp_path / "new", "21.0.2"), fake_java(tmp_path / "old", "11.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("PATH", str(on_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert java.java_home() == new
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert java.java_home() == on_path


def test_without_a_java_that_is_new_enough_the_packaged_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    home = java.java_home()
    assert home.parent == tmp_path / "cache" / "ottla"
    assert java.java_version(home / "bin" / "java") >= java.OLDEST
    assert (home / "bin" / "java").stat().st_mode & stat.S_IXUSR
    assert java.java_home() == home, "made once"
    assert [path.name for path in home.parent.iterdir()] == [home.name], "nothing is left beside it"


def test_the_packaged_java_starts_with_what_spark_asks_of_it(tmp_path: Path) -> None:
    program = java.packaged_home(tmp_path) / "bin" / "java"
    asked = ["--add-modules=jdk.incubator.vector", "-Dsome.name=with  spaces", "-version"]
    done = subprocess.run([program, *asked], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


WHERE_FROM = """
import os
from ottla.spark.session import session

spark = session("where from", master="local[1]", **SETTINGS)
print(os.environ["SPARK_HOME"])
print(spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).collect()[0])
"""


def test_python_processes_import_the_pyspark_that_is_compiled(tmp_path: Path) -> None:
    import pyspark

    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", WHERE_FROM.replace("SETTINGS", repr(FOR_TESTS))],
        env={**inherited, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    home, imported = done.stdout.split()
    assert Path(home) == spark_home(tmp_path / "ottla")
    assert Path(imported).samefile(pyspark.__file__)
    installed = {path.name for path in Path(pyspark.__file__).parent.iterdir()}
    assert {path.name for path in Path(home).iterdir()} == installed - {ARCHIVES}


def test_a_directory_of_somebody_else_is_not_run_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # so that there can be no cache
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = cache_directory()
    assert own == tmp_path / f"ottla-{os.getuid()}" == cache_directory()
    own.chmod(0o777)
    other = cache_directory()
    assert other != own and stat.S_IMODE(other.stat().st_mode) == 0o700
    own.rmdir()
    own.symlink_to(tmp_path)
    assert cache_directory() != own
