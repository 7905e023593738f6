"""The jars of Spark's Kafka connector, resolved by Maven into the project's `.kafka/` folder.

`SPARK_CONNECTOR_LIB` names a folder of jars to take instead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import version as installed
from pathlib import Path
from typing import NamedTuple

from tools.kafka.distribution import PROJECT, write_whole

GIVEN = os.environ.get("SPARK_CONNECTOR_LIB")
CONNECTOR = "spark-sql-kafka-0-10_2.13"
TOKENS = "spark-token-provider-kafka-0-10_2.13"
# What the connector needs and pyspark does not bring.
NEEDED = (CONNECTOR, TOKENS, "kafka-clients", "commons-pool2")


class ConnectorUnavailable(RuntimeError):
    """The connector cannot be fetched here."""


class Artifact(NamedTuple):
    group: str
    name: str
    version: str


class Release(NamedTuple):
    """A connector. With `parts`, exactly these jars; else what Maven finds that it needs."""

    version: str
    parts: tuple[Artifact, ...] = ()

    @property
    def home(self) -> Path:
        return PROJECT / ".kafka" / f"{CONNECTOR}-{self.version}"

    @property
    def is_here(self) -> bool:
        return (self.home / "complete").exists()


# For repositories that do not have the connector of the installed Spark. This one runs on Spark 4.3. Its
# library of delegation tokens, which nothing here uses, is older, as repositories lack the newer ones too.
EARLIER = Release(
    "4.2.0",
    (
        Artifact("org.apache.spark", CONNECTOR, "4.2.0"),
        Artifact("org.apache.spark", TOKENS, "4.0.0"),
        Artifact("org.apache.kafka", "kafka-clients", "3.9.2"),
        Artifact("org.apache.commons", "commons-pool2", "2.13.1"),
    ),
)


def releases() -> list[Release]:
    """Best first."""
    return [Release(installed("pyspark")), EARLIER]


def jars() -> list[Path]:
    """The jars: those that are given, those that are here, or those that can be fetched."""
    if GIVEN:
        found = sorted(Path(GIVEN).resolve().glob("*.jar"))
        if not any(CONNECTOR in jar.name for jar in found):
            raise ConnectorUnavailable(f"SPARK_CONNECTOR_LIB={GIVEN} has no {CONNECTOR} jar in it")
        return found
    here = next((release for release in releases() if release.is_here), None) or fetch()
    return sorted((here.home / "lib").glob("*.jar"))


def version_of(found: list[Path]) -> str:
    names = [re.fullmatch(rf"{CONNECTOR}-(.+)\.jar", jar.name) for jar in found]
    return next(name.group(1) for name in names if name is not None)


def fetch() -> Release:
    """Fetch the best one that can be had."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ConnectorUnavailable(f"no `mvn` on the PATH to fetch {CONNECTOR} with")
    failures = []
    for release in releases():
        failure = None if release.is_here else copy_jars(maven, release)
        if failure is None:
            return release
        failures.append(failure)
    raise ConnectorUnavailable("\n".join(failures))


def copy_jars(maven: str, release: Release) -> str | None:
    """What went wrong, if anything did."""
    pom = release.home / "pom.xml"
    write_whole(pom, pom_text(release))
    done = subprocess.run(
        [
            *(maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"),
            f"-DoutputDirectory={release.home / 'lib'}",
            "-DincludeScope=runtime",
            f"-DincludeArtifactIds={','.join(NEEDED)}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(release.home)
        first = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr)
        return f"{CONNECTOR} {release.version}: {first[:600]}"
    (release.home / "complete").touch()
    return None


def pom_text(release: Release) -> str:
    parts = release.parts or (Artifact("org.apache.spark", CONNECTOR, release.version),)
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "\n".join(
        f"    <dependency><groupId>{part.group}</groupId><artifactId>{part.name}</artifactId>"
        f"<version>{part.version}</version>{alone if release.parts else ''}</dependency>"
        for part in parts
    )
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ottla.tools</groupId>
  <artifactId>spark-connector</artifactId>
  <version>{release.version}</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
