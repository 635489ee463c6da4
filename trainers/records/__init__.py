"""Records of a run, on disk and on the screen."""
