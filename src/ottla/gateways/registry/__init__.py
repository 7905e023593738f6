"""The schema registry's REST API, which is part of the HTTP door."""
