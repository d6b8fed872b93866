"""Measuring agents."""
