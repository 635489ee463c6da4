"""The parts of the fault drill; `python -m benchmarks.fault_drill` runs it."""
