"""A conversation as people read it: turns, rounds, tool cards, the meter, and pages of these."""
