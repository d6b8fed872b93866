"""The structured attribute planner of the paper, one box of its diagram per file."""
