"""What arrives from AWS."""
