"""Compiles the programs of trainers for TPUs, without a TPU."""
