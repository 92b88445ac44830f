"""Transposition: rows become columns."""
