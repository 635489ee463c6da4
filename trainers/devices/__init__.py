"""Devices: strategies, workers, waiting for them, interruption."""
