"""From tables to tables: demand, model, plan, recommendations."""

__version__ = "0.1.0"
