"""Figures of reports: one house style, curves and heat maps, and what each report draws with them."""
