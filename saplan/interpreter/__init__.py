"""Programs evaluated by NumPy, operation by operation, where compiling would take longer than running."""
