"""Decides how a job is done; everything in here is a value made before anything runs."""
