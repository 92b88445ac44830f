"""The cases of a benchmark: each function measures, and returns rows of the table."""
