"""Demand to come and what to commit to: forecasts, scenarios, and advice on reserved GPUs."""
