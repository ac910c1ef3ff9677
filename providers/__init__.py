"""Where records come from: one folder per cloud, each turning its exports into canonical tables."""
