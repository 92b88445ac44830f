"""Singular value decompositions: A = U · diag(s) · Vᵀ."""
