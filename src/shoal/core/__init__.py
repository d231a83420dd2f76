"""What everything else is made of: tasks, URLs, policy, the values that parts hand to each other.
Pure: no I/O, no clock, no event loop. Imports nothing of Shoal but its errors.
"""
