"""What arrives from FOCUS."""
