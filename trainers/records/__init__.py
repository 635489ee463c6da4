"""What stays of a run, on disk or on the screen."""
