"""The other doors: text, HTTP and gRPC, on the port that speaks Kafka."""
