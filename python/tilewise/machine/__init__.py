"""This machine and others: facts, storage, measured speeds; knows nothing of jobs."""
