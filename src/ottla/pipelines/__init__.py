"""Pipelines over topics: flows, what they decode, where they write, and a runner that shows their progress.

    from ottla.pipelines import events, flow, read, sinks

    @flow(sink=sinks.parquet("out/orders"), dead_letter="orders.dead")
    def orders(spark):
        return read.topic("orders", decode=read.json("id long, customer string, amount double"))

`ottla pipeline run` runs every flow of a file. Importing this needs neither Spark nor Arrow; a flow does.
"""

from __future__ import annotations

from ottla.pipelines import events, read, sinks
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.flows import Flow, flow

__all__ = ["Flow", "PipelineError", "events", "flow", "read", "sinks"]
