"""What each customer spends in a minute, from topic to topic, exactly once.

A window is written when it is final: when orders two minutes younger than its end have been seen. Stop it,
kill it, run it again: no window is missing, and none is there twice.
"""

from pyspark.sql import functions as F

from ottla.pipelines import events, flow, read, sinks

ORDER = "id long, customer string, amount double, at timestamp"


@flow(sink=sinks.topic("totals", key="customer"))
def windowed_totals(spark):
    orders = read.topic("orders", decode=read.json(ORDER), bad_records="skip")
    unique = events.deduplicated(orders, ["id"], time="at", within="2 minutes")
    minutes = events.windowed(unique, time="at", every="1 minute", by=["customer"])
    return events.flat_window(
        minutes.agg(F.count("*").alias("orders"), F.round(F.sum("amount"), 2).alias("amount"))
    )
