"""Clients x features: what each Kafka client does with Ottla, and the same with Apache Kafka as referee.

`python -m tools.interop --help` lists what it can do; docs/interop.md is what came out last.
"""
