"""Matrices made by rule."""
