"""Watching a plan: a local page, and the same picture as a film. Needs the extra `viewer` for the page."""
