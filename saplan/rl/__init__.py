"""Reinforcement-learning machinery that all methods share."""
