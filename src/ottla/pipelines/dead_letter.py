"""The second query of a flow: records that do not decode, whole, to a topic, with headers that say whence and
why.

It reads the same topics with a checkpoint of its own, so it is exactly once by itself and neither query waits
for the other. The price is that records are read and decoded twice.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.read import Source, bad_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

HEADERS = ("ottla.flow", "ottla.topic", "ottla.partition", "ottla.offset", "ottla.timestamp", "ottla.error")


def dead_letters(flow: str, sources: Sequence[Source]) -> DataFrame:
    """Rows for the dead-letter topic: the key and value as they came, their headers, and ours after them."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    if not sources:
        raise PipelineError(
            f"flow {flow} has a dead-letter topic but decodes no topic with read.topic(decode=...)"
        )
    rows = reduce(DataFrame.unionByName, map(bad_records, sources))
    said = (
        F.lit(flow),
        rows["topic"],
        rows["partition"].cast("string"),
        rows["offset"].cast("string"),
        F.date_format(rows["timestamp"], "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
        rows["error"],
    )
    ours = F.array(
        *(
            F.struct(F.lit(name).alias("key"), F.encode(value, "UTF-8").alias("value"))
            for name, value in zip(HEADERS, said, strict=True)
        )
    )
    theirs = F.coalesce(rows["headers"], F.array().cast("array<struct<key:string,value:binary>>"))
    return rows.select("key", "value", F.concat(theirs, ours).alias("headers"))
