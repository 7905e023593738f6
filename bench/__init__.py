"""What Ottla costs and how fast it is, in one table; beside Apache Kafka if wanted.

`python -m bench` takes a minute, `python -m bench --full` several. Figures depend on the machine: compare
columns of one run, not runs of two machines. The broker's CPU time is the steadiest of them.
"""
