"""Norms: how large a matrix is."""
