"""Demand to come and what to commit to: forecasts, scenarios, and advice on reserved GPUs."""

from planner.forecast.scenarios import Event, Forecast, Method, forecast

__all__ = ["Event", "Forecast", "Method", "forecast"]
