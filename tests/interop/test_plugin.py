"""The pytest plugin, in test runs of its own: fixtures, faults, and that it leaves nothing behind."""

from __future__ import annotations

import shutil
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import psutil
import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
# A checkout that was not installed has no entry points.
IS_INSTALLED = any(each.value == "ottla.testing.plugin" for each in entry_points(group="pytest11"))
PLUGIN = [] if IS_INSTALLED else ["-p", "ottla.testing.plugin"]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project that has Ottla installed and nothing else of ours; its brokers' data is in it."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    return pytester


def run(project: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    project.makepyfile(test)
    result = project.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", *options)
    assert not list((project.path / "temporary").glob("ottla-test-*")), "data was left behind"
    return result


def test_a_test_gets_a_broker_of_its_own(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        seen = []

        def check(ottla):
            topic = ottla.topic("events", partitions=2)
            producer = ottla.producer()
            producer.produce(topic, "hello", partition=1)
            assert producer.flush(30) == 0
            assert (ottla.data_dir / "events-1").is_dir()
            consumer = ottla.consumer(topic)
            assert {each.partition for each in ottla.wait_for_assignment(consumer)} == {0, 1}
            assert [message.value() for message in ottla.take(consumer, 1)] == [b"hello"]
            seen.append(ottla.data_dir)

        def test_one(ottla):
            check(ottla)

        def test_two(ottla):  # the same topic again: this is another broker
            check(ottla)
            assert len(set(seen)) == 2 and not seen[0].exists()
        """,
    )
    result.assert_outcomes(passed=2)


def test_one_broker_can_serve_a_whole_run_on_every_worker(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        seen = set()

        @pytest.mark.parametrize("number", range(6))
        def test_shared(ottla_session, number):
            seen.add(ottla_session.bootstrap)
            assert len(seen) == 1
            assert ottla_session.topic() != ottla_session.topic()
        """,
        "-n",
        "2",
    )
    result.assert_outcomes(passed=6)


def test_aiokafka_is_served_as_well(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import asyncio

        def test_aiokafka(ottla):
            async def story():
                topic = ottla.topic()
                async with ottla.producer("aiokafka") as producer:
                    await producer.send_and_wait(topic, b"hello")
                async with ottla.consumer(topic, client="aiokafka") as consumer:
                    assert await ottla.wait_for_assignment(consumer)
                    (message,) = await ottla.take(consumer, 1)
                    assert message.value == b"hello"
            asyncio.run(story())
        """,
    )
    result.assert_outcomes(passed=1)


def test_properties_are_a_fixture_that_a_project_overrides(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def ottla_properties():
            return {"num.partitions": "5", "auto.create.topics.enable": "true"}
        """
    )
    result = run(
        project,
        """
        def test_properties(ottla):
            topics = ottla.producer().list_topics("new", 30).topics
            consumer = ottla.consumer("new", group="g")
            assert len(ottla.wait_for_assignment(consumer)) == 5
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_broker_that_cannot_start_says_why(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def ottla_properties():
            return {"num.partitionz": "5"}
        """
    )
    result = run(project, "def test_it(ottla): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*BrokerFailed*num.partitionz*num.partitions*"])


def test_faults_that_name_nothing_are_refused_with_a_suggestion(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        def test_names(ottla):
            with pytest.raises(ValueError, match="did you mean 'Produce'"):
                ottla.fail("Produse")
            with pytest.raises(ValueError, match="did you mean 'NOT_LEADER_OR_FOLLOWER'"):
                ottla.fail("Produce", error="NOT_LEADER_OR_FOLOWER")
            with pytest.raises(ValueError):
                ottla.fail("Produce", times=0)
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_run_without_our_fixtures_loads_nothing_of_the_broker(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import sys

        def test_nothing_is_loaded():
            loaded = {name for name in sys.modules if name.startswith("ottla")}
            assert loaded <= {"ottla", "ottla.testing", "ottla.testing.plugin"}
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_run_that_is_killed_takes_its_broker_along(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import os, signal
        from pathlib import Path

        def test_it(ottla):
            Path("data-dir").write_text(str(ottla.data_dir))
            Path("broker-pid").write_text(str(ottla.pid))
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    project.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider")
    pid = int((project.path / "broker-pid").read_text())
    _wait_until_gone(pid)
    assert not Path((project.path / "data-dir").read_text()).exists()


def _wait_until_gone(pid: int) -> None:
    # Where nobody collects orphans it stays a zombie, which is as good.
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            process.wait(30)


def test_the_example_project_passes_its_tests(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(
        ROOT / "examples" / "orders", project.path / "orders", ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.chdir(project.path / "orders")
    result = project.runpytest_subprocess(
        *PLUGIN, "-p", "no:cacheprovider", "--rootdir", ".", "-c", "pytest.ini"
    )
    result.assert_outcomes(passed=5)
