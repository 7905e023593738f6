"""docs/interop.md: the parts of it that come out of a run, between markers."""

from __future__ import annotations

from collections import Counter

from tools.interop.command_line import Found
from tools.interop.features import FEATURES
from tools.interop.matrix import sign
from tools.interop.results import CANNOT, NOT_RUN, OK, REFEREE_FAILED, Cell, Results
from tools.interop.suites import EXPECTED, LEFT_OUT, Suite
from tools.kafka.distribution import PROJECT, VERSION

PAGE = PROJECT / "docs" / "interop.md"


def write_page(
    results: Results,
    suite: Suite | None,
    directory: list[tuple[str, list[str]]] | None,
    tools: Found | None,
) -> None:
    text = PAGE.read_text()
    text = between(text, "matrix", matrix(results))
    if suite is not None:
        text = between(text, "suites", suites(suite))
    if directory is not None:
        text = between(text, "directory", steps(directory))
    if tools is not None:
        text = between(text, "tools", releases(tools))
    PAGE.write_text(text)


def between(text: str, name: str, content: str) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n\n{content}\n\n{end}{tail}"


def matrix(results: Results) -> str:
    features = list(FEATURES)
    lines = ["| | " + " | ".join(str(number + 1) for number in range(len(results))) + " |"]
    lines.append("|---|" + "---|" * len(results))
    for feature in features:
        cells = [row.cells.get(feature, Cell(NOT_RUN)) for row in results.values()]
        lines.append(f"| {FEATURES[feature].about} | " + " | ".join(map(sign, cells)) + " |")
    lines += ["", "| | client | language | version | run on |", "|---|---|---|---|---|"]
    lines += [
        f"| {number} | {name} | {row.language} | {row.version} | {row.date} |"
        for number, (name, row) in enumerate(results.items(), 1)
    ]
    return "\n".join([*lines, "", counts(results), "", *notes(results)])


def counts(results: Results) -> str:
    found = Counter(cell.outcome for row in results.values() for cell in row.cells.values())
    refereed = sum(
        cell.refereed and cell.outcome == OK for row in results.values() for cell in row.cells.values()
    )
    said = [
        f"{found[OK]} cells pass with Ottla, {refereed} of them with Apache Kafka {VERSION} as referee",
        f"{found[REFEREE_FAILED]} pass with Ottla only",
        f"{found['failed']} fail with Ottla only",
        f"{found['both']} fail with both",
        f"{found[CANNOT]} the client has no call for",
        f"{found[NOT_RUN]} were not run",
    ]
    return "; ".join(said) + "."


def notes(results: Results) -> list[str]:
    """What stands behind every sign that is not a plain ✓."""
    lines = ["| client | feature | | why |", "|---|---|---|---|"]
    for name, row in results.items():
        for feature, cell in row.cells.items():
            why = cell.reason or "; ".join([*cell.ottla[:2], *cell.kafka[:2]])
            if cell.without:
                why = f"without {', '.join(cell.without)}"
            if why:
                lines.append(f"| {name} | {feature} | {sign(cell)} | {escaped(why)} |")
    return lines


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:300]


def suites(suite: Suite) -> str:
    if suite.not_run:
        return f"Not run: {suite.not_run}"
    lines = [f"kafka-python {suite.version}:", "", "| | passed | skipped | failed |", "|---|---|---|---|"]
    for name, outcomes in (("Ottla", suite.ottla), (f"Apache Kafka {VERSION}", suite.kafka)):
        passed, skipped = (list(outcomes.values()).count(word) for word in ("passed", "skipped"))
        shown = f"{passed} | {skipped} | {len(outcomes) - passed - skipped}" if outcomes else "not run | |"
        lines.append(f"| {name} | {shown} |")
    lines.append("")
    for test, result in suite.ottla.items():
        if result not in ("passed", "skipped"):
            lines.append(f"- `{test}` fails: {EXPECTED.get(test, result)}.")
    lines += [f"- `{file}` is left out: its tests {why}." for file, why in LEFT_OUT.items()]
    return "\n".join(lines)


def releases(tools: Found) -> str:
    lines = [f"| | Ottla | Apache Kafka {VERSION} |", "|---|---|---|"]
    for release, brokers in tools.items():
        cells = [brokers.get(name, ["not run"]) for name in ("Ottla", "Apache Kafka")]
        shown = [escaped(problems[0]) if problems else "✓" for problems in cells]
        lines.append(f"| tools of Kafka {release} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def steps(directory: list[tuple[str, list[str]]]) -> str:
    lines = ["| step | |", "|---|---|"]
    lines += [
        f"| {title} | {'✗ ' + escaped(problems[0]) if problems else '✓'} |" for title, problems in directory
    ]
    return "\n".join(lines)
