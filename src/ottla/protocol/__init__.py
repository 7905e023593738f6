"""Bytes to typed messages and back: requests, responses, stored records, record batches, error codes.

A message is declared once, as a class (`schema`, `messages/`, `stored/`), and `codec` compiles a reader and a
writer from it for each version on first use.
"""
