"""The hub: what a row means, how it is checked and where it is kept."""
