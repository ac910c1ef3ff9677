"""The back-test: what this planner and its rivals would have cost on weeks that none had seen."""
