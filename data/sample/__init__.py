"""A made fleet for the quick start and the end-to-end test."""
