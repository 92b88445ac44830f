"""Conversion: a matrix in another format, type or order of storage."""
