"""Ottla beside Apache Kafka: the same work, the same clients, the same machine, in alternating rounds.

`python -m bench` (or `make bench`) takes about a quarter of an hour; `--quick` a few minutes, `--all` hours.
Without Apache Kafka's jars it says so and measures Ottla alone. docs/benchmarks.md says how it is done, and
holds the table of the last run.

Figures depend on the machine: compare columns of one run, not runs of two machines. The broker's CPU time is
the steadiest of them.
"""
