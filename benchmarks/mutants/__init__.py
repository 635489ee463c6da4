"""Mutants: small errors put into the source, which the tests should notice."""
