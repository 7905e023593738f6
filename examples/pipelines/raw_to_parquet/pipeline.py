"""Raw events to Parquet files by day and hour. What is no order goes to a dead-letter topic."""

from pyspark.sql import functions as F

from ottla.pipelines import events, flow, read, sinks

ORDER = "id long, customer string, amount double, at timestamp"


@flow(sink=sinks.parquet("out/orders", partition_by=["day", "hour"]), dead_letter="orders.dead")
def orders_to_parquet(spark):
    """Every order once, though some are sent twice, with where in the topic it was."""
    rows = read.topic("orders", decode=read.json(ORDER), keep=["partition", "offset"])
    unique = events.deduplicated(rows, ["id"], time="at", within="10 minutes")
    return unique.withColumn("day", F.to_date("at")).withColumn("hour", F.hour("at"))
