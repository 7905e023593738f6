"""The project that `ottla pipeline init` writes: small, and it runs as it is."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.pipelines.errors import PipelineError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

PIPELINE = '''\
"""Orders from a topic: kept as Parquet files, and summed up per minute into another topic."""

from pyspark.sql import functions as F

from ottla.pipelines import events, flow, read, sinks

ORDER = "id long, customer string, amount double, at timestamp"


@flow(sink=sinks.parquet("out/orders", partition_by=["day"]), dead_letter="{name}-orders.dead")
def orders(spark):
    """Every order once, by day. What is not an order goes to the dead-letter topic."""
    rows = read.topic("{name}-orders", decode=read.json(ORDER))
    unique = events.deduplicated(rows, ["id"], time="at", within="1 hour")
    return unique.withColumn("day", F.to_date("at"))


@flow(sink=sinks.topic("{name}-totals", key="customer"))
def totals(spark):
    """What each customer spends in a minute, once the minute is over."""
    rows = read.topic("{name}-orders", decode=read.json(ORDER), bad_records="skip")
    minutes = events.windowed(rows, time="at", every="1 minute", late="1 minute", by=["customer"])
    return events.flat_window(minutes.agg(F.sum("amount").alias("amount"), F.count("*").alias("orders")))
'''

EVENTS = '''\
"""Prints sample orders, one JSON object per line, and a few lines that are no orders.

    python events.py | ottla produce {name}-orders
"""

import json
import random
from datetime import datetime, timedelta, timezone

start = datetime(2026, 1, 1, tzinfo=timezone.utc)
chance = random.Random(7)

for number in range(1000):
    if number % 250 == 249:
        print("this is not an order")
        continue
    order = {{
        "id": number,
        "customer": chance.choice(["ada", "grace", "edsger", "barbara"]),
        "amount": round(chance.uniform(1, 100), 2),
        "at": (start + timedelta(seconds=number)).isoformat(),
    }}
    print(json.dumps(order))
'''

SETTINGS = """\
bootstrap = "localhost:9092"
# checkpoints = ".ottla/checkpoints"
# registry = "http://localhost:9092"
# master = "local[*]"

# A topic that does not exist yet is made and filled with what this program prints. Remove it for real data.
[seed]
{name}-orders = "events.py"

[spark]
# "spark.driver.memory" = "2g"
"""

README = """\
# {name}

    ottla serve &                          # a broker, if none is running
    ottla pipeline run --available-now     # read what there is, then end
    ottla consume {name}-totals --committed -n 5
    ottla consume {name}-orders.dead --committed

The first run makes the topic `{name}-orders` and fills it from `events.py`. Without `--available-now` the
pipeline waits for more; feed it from another terminal with `python events.py | ottla produce {name}-orders`.

- `pipeline.py`: the flows. `pipeline.toml`: where the broker is, and settings of Spark.
- `out/orders`: the Parquet files. `.ottla`: checkpoints and Spark's log; `ottla pipeline run --full-refresh`
  starts over.
"""

SPEC = """\
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""

TRANSFORMATION = '''\
"""Orders from a topic as a table, and what each customer spends."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
ORDER = "id long, customer string, amount double, at timestamp"


@dp.table
def orders() -> DataFrame:
    records = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", "{bootstrap}")
        .option("subscribe", "{name}-orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    parsed = F.from_json(F.col("value").cast("string"), ORDER).alias("order")
    return records.select(parsed).select("order.*").filter("id IS NOT NULL")


@dp.materialized_view
def totals() -> DataFrame:
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("amount"))
'''

DECLARATIVE_README = """\
# {name}

Spark's own declarative pipeline over a topic.

    ottla serve &            # a broker, if none is running
    ottla pipeline dry-run   # check it
    ottla pipeline run       # read what there is, then end

The first run makes the topic `{name}-orders` and fills it from `events.py`. The tables are below
`.ottla/warehouse`; checkpoints are below `storage`.
"""

IGNORE = """\
.ottla/
out/
storage/
warehouse/
spark-warehouse/
metastore_db/
derby.log
"""


def write_project(folder: Path, *, declarative: bool, bootstrap: str) -> list[Path]:
    """Write the files of a new project; where they are. Refuses a folder that is there already."""
    name = folder.name
    if not _NAME.fullmatch(name):
        raise PipelineError(f"{name!r} cannot be a project's name: letters, digits, '_' and '-', at most 64")
    if folder.exists():
        raise PipelineError(f"{folder} exists already; choose another name")
    files = {"events.py": EVENTS, "pipeline.toml": SETTINGS, ".gitignore": IGNORE}
    if declarative:
        files |= {
            "README.md": DECLARATIVE_README,
            "spark-pipeline.yml": SPEC,
            "transformations/orders.py": TRANSFORMATION,
        }
    else:
        files |= {"README.md": README, "pipeline.py": PIPELINE}
    storage = (folder.resolve() / "storage").as_uri()
    written = []
    for path, text in sorted(files.items()):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        filled = (
            text if path == ".gitignore" else text.format(name=name, storage=storage, bootstrap=bootstrap)
        )
        if path == "pipeline.toml":
            filled = filled.replace("localhost:9092", bootstrap)
        file.write_text(filled)
        written.append(file)
    return written
