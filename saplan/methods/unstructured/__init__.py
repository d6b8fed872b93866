"""The predecessor: an attribute planner without algebra."""
