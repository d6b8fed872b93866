"""Files that are written atomically and validated in full when they are read."""
