"""Measuring the machine: messages, files, memory, arithmetic; statistics, models and comparison of it."""
