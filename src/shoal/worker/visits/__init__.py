"""One try at one task: robots.txt, fetch, parse, validate; how it ended, and what it leads to.

Sites are contacted here and nowhere else. What is to be stored goes to the committer as a
report.
"""
