"""Labelled sequences: options and problems of examples."""
