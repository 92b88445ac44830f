"""Starts the worker, watches it, and turns what it says into a record."""
