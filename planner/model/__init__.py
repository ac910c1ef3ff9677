"""The model: what is decided, what it costs, and one function for each constraint."""
