"""Training runs, their files, and the evaluation of agents."""
