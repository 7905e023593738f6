"""The Spark session of a run: tuned, in the project, with what Spark says in files instead of on the
terminal."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.project import OWN_DIRECTORY, Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def open_session(project: Project, *, verbose: bool) -> SparkSession:
    """The session, on the master that the settings name or on this machine."""
    require("pyspark", "spark")
    from ottla.spark.java import NoJava
    from ottla.spark.session import session

    settings = spark_settings(project, verbose=verbose)
    try:
        with nullcontext() if verbose else _standard_error_to(output_file(project)):
            spark = session(project.name, master=project.settings.master, **settings)
    except NoJava as error:
        raise PipelineError(str(error)) from None
    if not verbose:
        # PySpark prints what it then raises, with all of Java's stack, and we report what is raised.
        logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    return spark


def spark_settings(project: Project, *, verbose: bool) -> dict[str, str]:
    """What this project's session is given besides what suits everybody."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(project.root / OWN_DIRECTORY / "warehouse"),
        **project.settings.spark,
    }
    if not verbose:
        options = f"-Dlog4j2.configurationFile={_logging_file(project).as_uri()}"
        given = settings.get("spark.driver.extraJavaOptions", "")
        settings["spark.driver.extraJavaOptions"] = f"{given} {options}".strip()
    return settings


def log_file(project: Project) -> Path:
    """Where Spark's own log is."""
    return project.root / OWN_DIRECTORY / "spark.log"


def output_file(project: Project) -> Path:
    """Where goes what Java, and Python in Spark's tasks, print."""
    return project.root / OWN_DIRECTORY / "spark.out"


@contextmanager
def _standard_error_to(file: Path) -> Iterator[None]:
    """Processes that are started meanwhile write there, as long as they live. If they cannot be started, what
    they said is shown."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    before = os.dup(2)
    with file.open("wb") as output:
        os.dup2(output.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(before, file.read_bytes())
        raise
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _logging_file(project: Project) -> Path:
    file = project.root / OWN_DIRECTORY / "log4j2.properties"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_LOGGING.format(level="warn", log=log_file(project)))
    return file


def child_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a Spark that is started as a process of its own."""
    from ottla.spark.java import NoJava, java_home

    result = dict(os.environ if environment is None else environment)
    try:
        result["JAVA_HOME"] = str(java_home())
    except NoJava as error:
        raise PipelineError(str(error)) from None
    result.setdefault("PYSPARK_PYTHON", sys.executable)
    result.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return result
