"""A local page on which to watch plans being made and carried out. It needs the extra `viewer`."""
