"""The languages that schemas are written in, one module each."""
