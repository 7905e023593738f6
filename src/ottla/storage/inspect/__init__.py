"""Reading the files of a log directory without a broker, and without ever writing: for people and for checks.

It trusts nothing that it reads, stops at nothing, and works beside a running broker, Ottla's or Kafka's.
"""
