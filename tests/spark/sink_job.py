"""A driver to be killed: copies a topic to another one, in tasks of which one fails at its first attempt.

python -m tests.spark.sink_job BOOTSTRAP SOURCE TOPIC DIRECTORY
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from ottla.spark.session import session


def main(bootstrap: str, source: str, topic: str, directory: str) -> None:
    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 1:
            if context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails when its rows are written")
            Path(directory, "retried").touch()

    spark = session("sink", master="local[2,4]", **{"spark.ui.enabled": False, "spark.log.level": "OFF"})
    kafka = {"kafka.bootstrap.servers": bootstrap}
    # Without minPartitions so few records would be read by a single task.
    reading = {"subscribe": source, "startingOffsets": "earliest", "minPartitions": 3}
    read = spark.readStream.format("ottla").options(**kafka, **reading)
    query = (
        read.load()
        .select("key", "value")
        .mapInArrow(fail_once, "key binary, value binary")
        .writeStream.format("ottla")
        .options(**kafka, topic=topic, checkpointLocation=str(Path(directory, "checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
