"""Shows what was done: the closing table, the plan, the progress bar."""
