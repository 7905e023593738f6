"""Running rows of the matrix, and showing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from tools.interop.brokers import Brokers
from tools.interop.cell import NotHere, run_cell
from tools.interop.clients import Client
from tools.interop.features import FEATURES, Feature
from tools.interop.results import (
    BOTH_FAILED,
    CANNOT,
    FAILED,
    NOT_RUN,
    OK,
    REFEREE_FAILED,
    Cell,
    Results,
    Row,
    outcome,
    today,
)
from tools.interop.toolchains import DoesNotCompile, NotAvailable

SIGNS = {
    OK: "✓",
    FAILED: "✗",
    REFEREE_FAILED: "✓ only",
    BOTH_FAILED: "✗ both",
    CANNOT: "—",
    NOT_RUN: "not run",
}


def run_row(client: Client, features: Iterable[Feature], brokers: Brokers, say: Callable[[str], None]) -> Row:
    row = Row(client.version, client.language, today())
    try:
        words = client.command()
    except NotAvailable as error:
        say(f"{client.name}: not run: {error}")
        row.cells = {feature.name: Cell(NOT_RUN, reason=str(error)) for feature in features}
        return row
    except DoesNotCompile as error:
        say(f"{client.name}: {error}")
        row.cells = {feature.name: Cell(FAILED, [str(error)]) for feature in features}
        return row
    for feature in features:
        if feature.name in client.cannot:
            cell = Cell(CANNOT, reason=client.cannot[feature.name])
        else:
            try:
                cell = run_both(words, feature, brokers)
            except NotHere as error:
                cell = Cell(NOT_RUN, reason=str(error))
        row.cells[feature.name] = cell
        say(f"{client.name:30} {feature.name:18} {SIGNS[cell.outcome]}{told(cell)}")
    return row


def run_both(words: list[str], feature: Feature, brokers: Brokers) -> Cell:
    """The same program on both brokers at once; they share nothing."""
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(run_cell, words, feature, brokers.ottla)
        theirs = pool.submit(run_cell, words, feature, brokers.kafka) if brokers.kafka else None
        ottla, without = ours.result()
        kafka = theirs.result()[0] if theirs else []
    return Cell(outcome(ottla, kafka), ottla, kafka, without, refereed=theirs is not None)


def told(cell: Cell) -> str:
    said = [f"\n      Ottla: {problem}" for problem in cell.ottla]
    said += [f"\n      Apache Kafka: {problem}" for problem in cell.kafka]
    return "".join(said) + (f"  without {', '.join(cell.without)}" if cell.without else "")


def terminal(results: Results) -> str:
    """Features down, clients across, so that it fits."""
    names = list(results)
    lines = [f"{number + 1:3}  {name}" for number, name in enumerate(names)]
    lines += ["", f"{'':18}" + "".join(f"{number + 1:>9}" for number in range(len(names)))]
    shown = [feature for feature in FEATURES if any(feature in row.cells for row in results.values())]
    for feature in shown:
        cells = [results[name].cells.get(feature, Cell(NOT_RUN)) for name in names]
        lines.append(f"{feature:18}" + "".join(f"{sign(cell):>9}" for cell in cells))
    return "\n".join(lines)


def sign(cell: Cell) -> str:
    alone = " alone" if cell.outcome == OK and not cell.refereed else ""
    return SIGNS[cell.outcome] + ("*" if cell.without else "") + alone
