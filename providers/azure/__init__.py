"""What arrives from Azure."""
