"""The jars of one Apache Kafka release, resolved by Maven into the project's `.kafka/` folder.

`KAFKA_LIB` names a folder of jars to take instead, such as `libs` of Kafka's own archive.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
GIVEN = os.environ.get("KAFKA_LIB")


def version_in(library: Path) -> str | None:
    """The release whose broker is in this folder of jars."""
    names = [jar.name for jar in library.glob("kafka_2.13-*.jar")]
    found = [match.group(1) for name in names if (match := re.fullmatch(r"kafka_2\.13-([\d.]+)\.jar", name))]
    return found[0] if found else None


VERSION = (GIVEN and version_in(Path(GIVEN))) or os.environ.get("KAFKA_VERSION", "4.3.0")

# Kafka's poms leave the choice of a logger to whoever runs it, so one is named here.
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.apache.kafka", "kafka-shell", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.4"),
)

LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = {target}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d{{ISO8601}}] %p %m (%c{{1}})%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""


class KafkaUnavailable(RuntimeError):
    """Apache Kafka cannot be fetched or run here."""


def home() -> Path:
    """Where this release lives; it need not be there yet."""
    return PROJECT / ".kafka" / VERSION


def jars() -> Path:
    """The folder of jars: the one that is given, or one that is fetched on first use."""
    if GIVEN:
        if version_in(Path(GIVEN)) is None:
            raise KafkaUnavailable(f"KAFKA_LIB={GIVEN} has no kafka_2.13 jar in it")
        return Path(GIVEN).resolve()
    library = home() / "lib"
    if not (home() / "complete").exists():
        fetch(library)
    return library


def java() -> str:
    found = shutil.which("java")
    if found is None:
        raise KafkaUnavailable("no `java` on the PATH (Apache Kafka needs Java 17 or newer)")
    return found


# What Kafka's own start script gives a server (kafka-run-class.sh).
SERVER_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


def command(
    main_class: str, *arguments: str, heap: str = "256m", quiet: bool = True, brief: bool = True
) -> list[str]:
    """The command line that runs one of Kafka's classes.

    A tool gets its log on stderr and only when something is wrong, so that stdout is what it prints;
    a server logs to stdout. One that is done in a moment is not worth the optimising compiler.
    """
    classpath = f"{jars()}/*"
    logging = logging_file("quiet" if quiet else "server")
    return [
        java(),
        f"-Xmx{heap}",
        *(("-XX:TieredStopAtLevel=1",) if quiet and brief else SERVER_OPTIONS),
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j2.configurationFile={logging}",
        "-cp",
        classpath,
        main_class,
        *arguments,
    ]


def logging_file(name: str) -> Path:
    path = home() / f"log4j2-{name}.properties"
    if not path.exists():
        text = LOGGING.format(
            level="error" if name == "quiet" else "info",
            target="SYSTEM_ERR" if name == "quiet" else "SYSTEM_OUT",
        )
        write_whole(path, text)
    return path


def fetch(library: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable("no `mvn` on the PATH to fetch Apache Kafka with")
    java()
    home().mkdir(parents=True, exist_ok=True)
    pom = home() / "pom.xml"
    write_whole(pom, pom_text())
    goal = "dependency:copy-dependencies"
    done = subprocess.run(
        [maven, "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={library}", "-DincludeScope=runtime"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise KafkaUnavailable(f"mvn {goal} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    (home() / "complete").touch()


def pom_text() -> str:
    dependencies = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in ARTIFACTS
    )
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ottla.tools</groupId>
  <artifactId>apache-kafka</artifactId>
  <version>{VERSION}</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


def write_whole(path: Path, text: str) -> None:
    """Two processes may do this at once (pytest-xdist), so the file appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
