"""Episodes in flight."""
