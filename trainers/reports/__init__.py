"""Reports of many runs beside published numbers."""
