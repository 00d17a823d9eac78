"""Graders: whatever says if an answer is right or what it is worth, behind one method. `written.py` reads one."""
