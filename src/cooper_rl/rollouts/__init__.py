"""A step's samples: texts for those who judge, columns of numbers for those who learn."""
