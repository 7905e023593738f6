"""The picture of `make demo`: what was sent and read in each moment, and how far behind reading was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

Points = list[tuple[float, float]]
Sent = Sequence[tuple[float, int]]  # when, and how many until then

COLOURS = ("#1f6fb4", "#d9772b", "#3c9a5f")
GREY = "#555555"
RATE_SECONDS = 0.5


@dataclass(frozen=True)
class Read:
    """A batch of a flow: from when to when, and how many records."""

    flow: str
    began: float
    ended: float
    rows: int

    @property
    def rate(self) -> float:
        return self.rows / max(0.001, self.ended - self.began)


def sent_per_second(sent: Sent) -> Points:
    """The rate of sending from each point on, over half a second or a little more."""
    marks = [sent[0]]
    for at, count in sent:
        if at - marks[-1][0] >= RATE_SECONDS:
            marks.append((at, count))
    if marks[-1] != sent[-1]:
        marks.append(sent[-1])
    rates = [
        (began, (count - before) / (ended - began)) for (began, before), (ended, count) in pairwise(marks)
    ]
    return [*rates, (marks[-1][0], 0.0)]


def lag(sent: Sent, reads: Sequence[Read], since: float) -> Points:
    """How many records were sent and not yet read: more with each one sent, fewer when a batch is done."""
    changes = [(read.ended, -read.rows) for read in reads]
    before = 0
    for at, count in sent:
        changes.append((max(at, since), count - before))
        before = count
    points: Points = []
    behind = 0
    for at, change in sorted(changes):
        points += [(at, behind), (at, behind + change)]
        behind += change
    return points


def draw(picture: Path, sent: Sent, reads: Sequence[Read], words: Mapping[str, str]) -> None:
    """`sent` and `reads` have times of one clock. The picture begins with the stream of orders; `words` are
    written where the flow that they are about begins in it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import StrMethodFormatter

    figure, (rates, lags) = pyplot.subplots(2, 1, sharex=True, figsize=(10, 6.5), layout="constrained")
    zero = sent[1][0]
    steps = [(at - zero, rate) for at, rate in sent_per_second(sent[1:])]
    rates.step(*zip(*steps, strict=True), where="post", color=GREY, linewidth=1.2, label="sent")
    for flow, colour in zip(dict.fromkeys(read.flow for read in reads), COLOURS, strict=False):
        mine = [read for read in reads if read.flow == flow]
        _bars(rates, [read for read in mine if read.rows], zero, colour, f"read by {flow}")
        line = [(at - zero, behind) for at, behind in lag(sent, mine, mine[0].began)]
        lags.plot(*zip(*line, strict=True), color=colour, linewidth=1.4, label=flow)
        lags.fill_between(*zip(*line, strict=True), color=colour, alpha=0.12, linewidth=0)
        if flow in words:
            beginning = (max(0.0, mine[0].began - zero), 0.96)
            rates.annotate(
                words[flow],
                beginning,
                xycoords=rates.get_xaxis_transform(),
                xytext=(5, 0),
                textcoords="offset points",
                color=colour,
                va="top",
            )
    rates.set_title("Throughput: a bar is a micro-batch, as wide as it took", loc="left", fontsize=11)
    rates.set_ylabel("records per second")
    lags.set_title("Lag: sent, and not in a finished batch yet", loc="left", fontsize=11)
    lags.set_ylabel("records")
    lags.set_xlabel("seconds since the feed began")
    for axes in (rates, lags):
        axes.set_xlim(0, max(read.ended for read in reads) - zero + 0.5)
        axes.set_ylim(0, axes.get_ylim()[1] * 1.15)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
    handles, labels = rates.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(picture, dpi=120)
    pyplot.close(figure)


def _bars(axes: Any, reads: Sequence[Read], zero: float, colour: str, label: str) -> None:
    axes.bar(
        [read.began - zero for read in reads],
        [read.rate for read in reads],
        width=[read.ended - read.began for read in reads],
        align="edge",
        color=f"{colour}55",
        edgecolor=colour,
        linewidth=1,
        label=label,
    )
