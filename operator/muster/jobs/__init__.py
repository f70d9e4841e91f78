"""The life of a TrainingJob. Pure: `decide(observed, now)` returns what to do; nothing here does it."""
