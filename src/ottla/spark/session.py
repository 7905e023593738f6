"""A Spark session that needs nothing installed and nothing tuned.

    from ottla.spark.session import session

    spark = session("orders")

What is set here can be set otherwise: by an argument, or with `spark-submit`, which this gives way to.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from ottla.spark.home import spark_home
from ottla.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT_FILES: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
EVERYWHERE: Final = {
    # Python and Java on one machine talk over a socket file, which costs less than loopback TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Rows in one Arrow batch on their way to Python (sinks, UDFs): the default of 10,000 is a fifth slower.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
}
ON_ONE_MACHINE: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    # The default manager starts a process for each file of a checkpoint, and a small batch takes four times
    # as long. Why this one is as safe on local files: docs/decisions/0011-checkpoint-files.md
    "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
}


def session(app_name: str, *, master: str | None = None, **conf: object) -> SparkSession:
    """The Spark session of this process, made if there is none yet.

    `conf` are Spark's settings by their names: `session("orders", **{"spark.driver.memory": "4g"})`. Without
    `master` it is the one that spark-submit was given, else all cores of this machine.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ImportError("Spark is not installed: pip install 'ottla[spark]'") from None

    builder = SparkSession.builder.appName(app_name)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted:
        os.environ["JAVA_HOME"] = str(java_home())
        master = master or os.environ.get("MASTER")
    is_local = not is_submitted and (master is None or master.startswith("local"))
    settings = {**EVERYWHERE, **(_on_one_machine() if is_local else {})}
    if is_submitted:
        # What spark-submit was given, or has from spark-defaults.conf, is more specific than what suits most.
        # It can be seen once there is a connection to the Java process.
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()
        given = SparkConf()
        settings = {name: value for name, value in settings.items() if not given.contains(name)}
    if master is not None:
        builder = builder.master(master)
    for name, value in {**settings, **conf}.items():
        builder = builder.config(name, _text(value))
    return builder.getOrCreate()


def _on_one_machine() -> dict[str, str]:
    # Workers have to be the Python that Ottla is installed in, not the first one on the PATH.
    if os.environ.setdefault("PYSPARK_PYTHON", sys.executable) == sys.executable:
        os.environ.setdefault("SPARK_HOME", str(spark_home()))
    # State and shuffles of a stream cannot be merged afterwards as those of a batch can; 200 are the default.
    return {**ON_ONE_MACHINE, "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2))}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
