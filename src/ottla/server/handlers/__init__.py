"""What the broker can do: one file per API, named as Kafka names it."""
