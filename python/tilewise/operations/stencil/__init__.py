"""Stencils: every element becomes a weighted sum of its neighbours, again and again."""
