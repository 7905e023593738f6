"""Apache Kafka beside Ottla: fetched from Maven Central, run as a referee and as a reader of our files.

Nothing here is needed to use Ottla. `python -m tools.kafka --help` lists what it can do.
"""
