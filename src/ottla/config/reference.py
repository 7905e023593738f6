"""The reference page of settings, written from their declarations.

`python -m ottla.config.reference` prints docs/reference/settings.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.config.broker import AREAS
from ottla.config.client_metrics import ClientMetricsSettings
from ottla.config.group import GroupSettings
from ottla.config.settings import Kind, Setting, declared
from ottla.config.topic import TopicSettings

_INTRODUCTION = """\
# Settings

Ottla has the settings of Apache Kafka 4.3, under the same names and with the same defaults, and a few of
its own that start with `ottla.`. This page is written by `python -m ottla.config.reference`.

Settings of a broker come, the weaker first, from a property file (`ottla serve --config server.properties`),
from the environment (`OTTLA_LOG_RETENTION_MS` is `log.retention.ms`), and from the command line
(`--set log.retention.ms=3600000`). An unknown name is refused. Settings marked *live* can also be altered
while the broker runs, with `kafka-configs` or any admin client: for one broker, or for all of them where it
says *cluster*. Settings of topics and groups can always be altered.

A setting that tunes the insides of Apache Kafka (its thread pools, say), or a part of Ottla that is still
to come (tiered storage, quotas), is accepted and described, and has no effect.

Where nothing is given, `ottla serve` is set up for one node on this machine: it listens on 127.0.0.1:9092,
keeps its data in `data`, is broker and controller with `node.id` 1, and creates internal topics with one
replica.
"""

_AREA_TITLES = (
    "Node and topic defaults",
    "Network",
    "Log",
    "Replication",
    "Groups",
    "Share groups",
    "Transactions",
    "Metadata quorum",
    "Quotas",
    "Tiered storage",
    "Security",
    "SASL",
    "Ottla's own",
)


def reference() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Broker\n"
    for title, area in zip(_AREA_TITLES, AREAS, strict=True):
        yield f"### {title}\n"
        yield from _table(declared(area).values(), with_live=True)
    for title, cls in (
        ("Topic", TopicSettings),
        ("Group", GroupSettings),
        ("Client metrics subscription", ClientMetricsSettings),
    ):
        yield f"## {title}\n"
        yield from _table(declared(cls).values(), with_live=False)


def _table(described: Iterable[Setting], *, with_live: bool) -> Iterator[str]:
    last = "Live" if with_live else "Broker's"
    yield f"| Name | Type | Default | Values | {last} | |"
    yield "|---|---|---|---|---|---|"
    for each in described:
        if each.internal:
            continue
        if with_live:
            note = {"no": "", "broker": "broker", "cluster": "cluster"}[each.live]
        else:
            note = ", ".join(f"`{name}`" for name in each.synonyms)
        about = each.about.replace("|", "\\|")
        kind = each.kind.name.lower()
        yield f"| `{each.name}` | {kind} | {_default(each)} | {_values(each)} | {note} | {about} |"
    yield ""


def _default(each: Setting) -> str:
    text = each.default_text
    if text is None:
        return ""
    return f"`{text}`" if text else "empty"


def _values(each: Setting) -> str:
    if each.choices:
        return ", ".join(choice.lower() if each.any_case else choice for choice in each.choices)
    if each.kind is Kind.BOOLEAN:
        return "true, false"
    least, most = each.at_least, each.at_most
    if most is not None:
        return f"{least} to {most}"
    return "" if least is None else f"from {least}"


if __name__ == "__main__":
    print(reference(), end="")
