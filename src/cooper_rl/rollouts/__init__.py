"""A step's samples: as texts for rules and rewards, as columns of numbers for learners."""
