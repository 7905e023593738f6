"""The Spark data source `ottla`, and a Spark session that needs nothing installed."""
