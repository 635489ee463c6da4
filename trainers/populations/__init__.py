"""Many small models at once: options, training, records."""
