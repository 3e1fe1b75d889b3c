"""What things cost and what is worth keeping, in nanoseconds of this machine. Pure functions."""
