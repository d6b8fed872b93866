"""Files that are written whole and read with suspicion."""
