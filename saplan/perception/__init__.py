"""Attributes that are learnt from labelled observations."""
