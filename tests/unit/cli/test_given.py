"""Where `ottla serve` takes its properties from, and which place wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.given import Given, properties
from ottla.config.settings import ConfigError


def test_without_anything_given_it_is_a_development_node() -> None:
    found = properties(Given(), {})

    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert found["log.dirs"] == "data"
    assert found["offsets.topic.replication.factor"] == "1"


def test_the_further_right_the_stronger(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nnum.io.threads=2\nbackground.threads=2\nlog.dirs=/file\n")
    environment = {"OTTLA_NUM_IO_THREADS": "3", "OTTLA_BACKGROUND_THREADS": "3", "OTTLA_LOG_DIRS": "/env"}
    assignments = ("background.threads=4", "log.dirs=/set")

    found = properties(Given(file, assignments, data_dir=Path("/flag")), environment)

    assert found["num.partitions"] == "2"
    assert found["num.io.threads"] == "3"
    assert found["background.threads"] == "4"
    assert found["log.dirs"] == "/flag"


def test_our_own_properties_have_a_short_variable() -> None:
    assert properties(Given(), {"OTTLA_DURABILITY": "kafka"})["ottla.durability"] == "kafka"


def test_variables_of_others_are_left_alone() -> None:
    kubernetes = {
        "OTTLA_PORT": "tcp://10.0.0.7:9092",
        "OTTLA_SERVICE_HOST": "10.0.0.7",
        "OTTLA_PORT_9092_TCP_ADDR": "10.0.0.7",
        "PATH": "/bin",
    }

    assert properties(Given(), kubernetes) == properties(Given(), {})


def test_a_slip_in_a_variable_is_told() -> None:
    with pytest.raises(ConfigError, match=r"did you mean OTTLA_LOG_RETENTION_MS\?"):
        properties(Given(), {"OTTLA_LOG_RETENTON_MS": "5"})


def test_a_value_may_contain_equals_signs() -> None:
    found = properties(Given(assignments=("sasl.jaas.config=a=b;",)), {})

    assert found["sasl.jaas.config"] == "a=b;"


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("num.partitions", "--set num.partitions: it should look like name=value"),
        ("=5", "--set =5: it should look like name=value"),
        ("num.partition=5", "--set: unknown property num.partition; did you mean num.partitions?"),
        (
            "num.partitions=x",
            "--set: Invalid value x for configuration num.partitions: Not a number of type INT",
        ),
        ("zookeeper.connect=x", "--set: property zookeeper.connect no longer exists"),
    ],
)
def test_a_bad_assignment_is_told(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        properties(Given(assignments=(assignment,)), {})

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"num.partition=5",
            "server.properties: unknown property num.partition; did you mean num.partitions?",
        ),
        (b"a=b\nc=\\u12", "server.properties: line 2: "),
        (b"\xff\xfe", "it is not a text file in UTF-8"),
    ],
)
def test_an_error_in_the_file_names_the_file(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(content)

    with pytest.raises(ConfigError) as refused:
        properties(Given(file), {})

    assert message in str(refused.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^cannot read .*none.properties: No such file or directory$"):
        properties(Given(tmp_path / "none.properties"), {})


def test_port_changes_the_listener_there_is() -> None:
    alone = Given(assignments=("listeners=PLAINTEXT://localhost:1",), port=2)
    with_controller = Given(
        assignments=(
            "listeners=PLAINTEXT://[::1]:1,CONTROLLER://[::1]:3",
            "controller.listener.names=CONTROLLER",
        ),
        port=2,
    )

    assert properties(Given(port=0), {})["listeners"] == "PLAINTEXT://127.0.0.1:0"
    assert properties(alone, {})["listeners"] == "PLAINTEXT://localhost:2"
    assert properties(with_controller, {})["listeners"] == "PLAINTEXT://[::1]:2,CONTROLLER://[::1]:3"


def test_port_is_refused_where_it_could_mean_several() -> None:
    with pytest.raises(ConfigError, match="there are 2 listeners for clients"):
        properties(Given(assignments=("listeners=A://h:1,B://h:2",), port=3), {})


def test_insecure_is_a_property_too() -> None:
    assert properties(Given(insecure=True), {})["ottla.allow.insecure.listeners"] == "true"
