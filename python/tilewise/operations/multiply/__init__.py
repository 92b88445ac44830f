"""Products, A · B: options, rule and memory."""
