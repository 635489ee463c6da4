"""Who computes: devices, processes and machines."""
