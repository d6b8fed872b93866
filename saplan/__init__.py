"""saplan: train once without any task, then reach any goal you can write as attributes."""
