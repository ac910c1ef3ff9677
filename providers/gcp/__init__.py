"""What arrives from Google Cloud."""
