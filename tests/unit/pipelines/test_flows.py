from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ottla.pipelines import flow, read, sinks
from ottla.pipelines.errors import PipelineError, require
from ottla.pipelines.flows import flows_of


def nothing(spark: Any) -> Any:
    return None


def test_a_decorated_function_is_a_flow_of_its_name() -> None:
    made = flow(sink=sinks.console(), dead_letter="dead", trigger="1 second")(nothing)
    assert (made.name, made.function, made.dead_letter, made.trigger) == (
        "nothing",
        nothing,
        "dead",
        "1 second",
    )
    assert made.dead_letter_name == "nothing-dead-letter"
    assert flow(nothing).sink is None
    assert flow(name="other")(nothing).name == "other"


def test_flows_are_found_in_the_order_of_the_file() -> None:
    second, first = flow(name="b")(nothing), flow(name="a")(nothing)
    assert flows_of({"x": second, "y": 1, "z": first, "again": second}) == [second, first]


def test_two_flows_of_one_name_are_refused() -> None:
    with pytest.raises(PipelineError, match="two flows are named a"):
        flows_of({"x": flow(name="a")(nothing), "y": flow(name="a", mode="update")(nothing)})


@pytest.mark.parametrize("name", ["a/b", "..", "", " a", "x-dead-letter", "x" * 101])
def test_a_name_that_could_not_be_a_directory_is_refused(name: str) -> None:
    with pytest.raises(PipelineError, match="cannot be the name of a flow"):
        flow(name=name or " ")(nothing)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(PipelineError, match="none of append, update, complete"):
        flow(mode="overwrite")(nothing)  # type: ignore[call-overload]


def test_an_upsert_needs_an_order_and_an_order_needs_a_key() -> None:
    with pytest.raises(PipelineError, match="key= wants order_by="):
        sinks.delta("x", key="id")
    with pytest.raises(PipelineError, match="go with key="):
        sinks.iceberg("x", order_by="at")


def test_a_missing_library_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(
        PipelineError, match=r"no_such_library is not installed; run: pip install 'ottla\[x\]'"
    ):
        require("no_such_library.part", "x")


def test_a_topic_cannot_be_read_without_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    with pytest.raises(PipelineError, match="there is no Spark session"):
        read.topic("orders")


def test_importing_pipelines_and_the_command_line_loads_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, ottla.pipelines, ottla.cli.main;"
        "print([m for m in ('pyspark', 'pyarrow', 'pandas', 'deltalake', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
