"""What people see: maps, plans and films, in pixels and in text."""
