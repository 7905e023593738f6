"""Messages that Kafka keeps in its own topics and files, in the same encoding as requests."""
