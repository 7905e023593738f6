"""The properties of a broker, area by area. `ottla.config.broker` puts them together."""
