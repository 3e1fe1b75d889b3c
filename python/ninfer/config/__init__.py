"""What a model is and how it is to be run, as validated values."""
