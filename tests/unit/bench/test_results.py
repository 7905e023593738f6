from __future__ import annotations

from pathlib import Path

import pytest

from bench import results as kept
from bench.brokers import Setup
from bench.report.page import BEGIN, END, write_page
from bench.report.words import busy, is_better, measured, times_floor
from bench.results import Durability, Results, Row
from bench.throughput import RECEIVE, RECEIVE_SYNCED
from bench.workload import Family, Figure, Workload

FAST = Workload(Family.THROUGHPUT, "fast", lambda site: [])
SYNCED = Workload(Family.LATENCY, "synced", lambda site: [], synced=True)


def run_of(*rounds: tuple[Workload, Setup, Figure]) -> Results:
    results = Results(when="today", rounds=3)
    for workload, setup, figure in rounds:
        results.add(workload, setup, [figure])
    return results


def rate(value: float) -> Figure:
    return Figure("rate", "1/s", value, higher_is_better=True)


def wait(value: float) -> Figure:
    return Figure("wait", "ms", value)


def only_ratio(results: Results) -> float | None:
    (comparison,) = results.rows[0].comparisons()
    return comparison.ratio


def test_more_of_what_is_good_is_a_ratio_above_one() -> None:
    assert only_ratio(run_of((FAST, Setup.OTTLA, rate(300)), (FAST, Setup.KAFKA, rate(100)))) == 3


def test_less_of_what_is_bad_is_a_ratio_above_one() -> None:
    assert only_ratio(run_of((FAST, Setup.OTTLA, wait(2)), (FAST, Setup.KAFKA, wait(8)))) == 4


def test_rounds_become_a_median_and_half_of_their_range() -> None:
    results = run_of(*((FAST, Setup.OTTLA, rate(value)) for value in (90, 100, 120)))
    summary = results.rows[0].summary(Setup.OTTLA)
    assert summary is not None
    assert (summary.median, summary.spread) == (100, 0.15)
    assert measured(summary) == "100 ±15%"


def test_each_durability_holds_the_setups_against_each_other_that_have_it() -> None:
    results = run_of(
        (SYNCED, Setup.OTTLA, wait(4)),
        (SYNCED, Setup.OTTLA_UNSYNCED, wait(1)),
        (SYNCED, Setup.KAFKA, wait(2)),
        (SYNCED, Setup.KAFKA_SYNCED, wait(8)),
    )
    ratios = {each.durability: each.ratio for each in results.rows[0].comparisons()}
    assert ratios == {Durability.SHIPPED: 0.5, Durability.OFF: 2, Durability.ON: 2}


def test_ottla_alone_is_shown_without_a_ratio() -> None:
    results = run_of((SYNCED, Setup.OTTLA, wait(4)), (SYNCED, Setup.OTTLA_UNSYNCED, wait(1)))
    shown = [(each.durability, each.ratio) for each in results.rows[0].comparisons()]
    assert shown == [(Durability.SHIPPED, None), (Durability.OFF, None)]
    assert not results.has_kafka()


def test_a_cost_is_compared_with_the_kernels_for_the_same_bytes_in_the_same_rounds() -> None:
    cost = Figure("produce", "s/GB", 1.5, floor=RECEIVE)
    results = run_of(
        (FAST, Setup.OTTLA, cost), (SYNCED, Setup.OTTLA, Figure("other", "s/GB", 3, floor=RECEIVE))
    )
    for seconds in (0.5, 0.6, 0.1):
        results.add_floor(FAST, RECEIVE, seconds, of=RECEIVE)
    results.add_floor(SYNCED, RECEIVE, 0.3, of=RECEIVE)
    shown = [times_floor(row, comparison) for row in results.rows for comparison in row.comparisons()]
    assert shown == ["3.0", "10.0"]


def test_kafka_that_syncs_is_compared_with_a_kernel_that_syncs() -> None:
    def cost(seconds: float) -> Figure:
        return Figure("produce", "s/GB", seconds, floor=RECEIVE)

    results = run_of((SYNCED, Setup.OTTLA, cost(1)), (SYNCED, Setup.KAFKA_SYNCED, cost(4)))
    results.add_floor(SYNCED, RECEIVE, 0.5, of=RECEIVE)
    results.add_floor(SYNCED, RECEIVE_SYNCED, 1, of=RECEIVE)
    shown = {each.durability: times_floor(results.rows[0], each) for each in results.rows[0].comparisons()}
    assert shown[Durability.ON] == "2.0 / 4.0"


def test_a_rate_and_its_cost_tell_how_busy_the_broker_was() -> None:
    rates = Figure("consume", "MB/s", 500, higher_is_better=True), Figure("fetch", "1/s", 20_000)
    costs = Figure("consume: broker CPU", "s/GB", 0.3), Figure("fetch: broker CPU", "s/100k", 4)
    results = run_of(*((FAST, Setup.OTTLA, figure) for figure in (*rates, *costs)))
    results.add(FAST, Setup.KAFKA, [rates[0], Figure("consume: broker CPU", "s/GB", 1)])
    shown = [busy(row, results.rows, each) for row in results.rows for each in row.comparisons()]
    assert shown == ["15% / 50%", "80%", "", ""]


def test_a_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    results = run_of((FAST, Setup.OTTLA, rate(1)), (FAST, Setup.KAFKA, rate(2)))
    results.write(tmp_path / "kept" / "results.json")
    assert kept.read(tmp_path / "kept" / "results.json") == results


def test_workloads_that_were_not_run_again_are_kept() -> None:
    before = run_of((FAST, Setup.OTTLA, rate(1)), (SYNCED, Setup.OTTLA, wait(1)))
    now = run_of((FAST, Setup.OTTLA, rate(5)))
    now.keep(before)
    values: dict[str, list[float]] = {row.name: row.samples[Setup.OTTLA.value] for row in now.rows}
    assert values == {"rate": [5], "wait": [1]}


def test_the_page_keeps_what_is_written_by_hand_and_says_where_ottla_is_behind(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# By hand\n\n{BEGIN}\nold table\n{END}\n\nAlso by hand.\n")
    results = run_of(
        (FAST, Setup.OTTLA, rate(300)),
        (FAST, Setup.KAFKA, rate(100)),
        (FAST, Setup.OTTLA, wait(9)),
        (FAST, Setup.KAFKA, wait(3)),
    )
    write_page(results, page, tmp_path / "images")
    text = page.read_text()
    assert text.startswith("# By hand\n") and text.endswith("\nAlso by hand.\n")
    assert "old table" not in text
    assert "- wait (as shipped): 9 ms against 3, ratio 0.33" in text
    assert "**3.00**" in text
    assert (tmp_path / "images" / "bench-throughput.png").stat().st_size > 0
    assert "(images/bench-throughput.png)" in text


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("# By hand\n")
    with pytest.raises(ValueError, match="no markers"):
        write_page(Results(rows=[Row("Latency", "x", "y", "ms")]), page, tmp_path)
    assert page.read_text() == "# By hand\n"


def test_one_is_ahead_only_where_no_round_of_the_other_comes_near() -> None:
    def judged(ours: tuple[float, ...], theirs: tuple[float, ...]) -> bool | None:
        rounds = [(FAST, Setup.OTTLA, wait(value)) for value in ours]
        rounds += [(FAST, Setup.KAFKA, wait(value)) for value in theirs]
        (comparison,) = run_of(*rounds).rows[0].comparisons()
        return is_better(comparison)

    assert judged((1, 2, 3), (4, 5, 6)) is True
    assert judged((4, 5, 6), (1, 2, 3)) is False
    assert judged((1, 2, 4), (3, 5, 6)) is None
    assert judged((1,), ()) is None
