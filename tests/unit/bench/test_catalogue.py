from __future__ import annotations

from bench.catalogue import catalogue, chosen
from bench.throughput import cases
from bench.workload import Family, Selection


def test_names_are_told_apart() -> None:
    names = [workload.name for workload in catalogue(1_000)]
    assert len(names) == len(set(names))


def test_a_smoke_run_has_something_of_every_family() -> None:
    assert {each.family for each in chosen(catalogue(10), Selection.SMOKE, [])} == set(Family)


def test_every_combination_is_in_a_full_run() -> None:
    found = [each for each in chosen(catalogue(10), Selection.ALL, []) if each.name.startswith("throughput ")]
    assert len(list(cases())) == 3 * 2 * 3 * 3
    assert {f"throughput {case}, {case.guarantee}" for case in cases()} <= {each.name for each in found}


def test_a_word_chooses_within_the_selection_and_beyond_it_if_it_must() -> None:
    everything = catalogue(10)
    zstd = chosen(everything, Selection.DEFAULT, ["zstd"])
    assert [each.name for each in zstd] == ["throughput 1 KB, 12 partitions, zstd, acks=1"]
    beyond = chosen(everything, Selection.DEFAULT, ["10 KB, 1 partition, zstd, idempotent"])
    assert len(beyond) == 1
