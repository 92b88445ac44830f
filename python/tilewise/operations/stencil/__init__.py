"""Stencils: every number becomes a weighted sum of its neighbours, again and again."""
