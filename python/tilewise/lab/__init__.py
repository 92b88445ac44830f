"""The laboratory: measurements, statistics, studies and their pages. Jobs do not know it."""
