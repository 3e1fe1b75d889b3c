"""Chooses one complete target among those that the program assesses. Pure: same answers of the program, same choice."""
