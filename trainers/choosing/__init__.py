"""The choice of an encoding: options, advice and its report."""
