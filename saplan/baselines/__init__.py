"""The opponents: a planner without algebra, reinforcement learning with a curriculum, and an oracle."""
