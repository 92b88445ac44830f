"""Products, A · B: options, plan, cost and words."""
