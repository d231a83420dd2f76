"""Raw clients of the servers, with our errors for theirs: SQLite in a thread, Redis with its scripts.
Imports runtime and core.
"""
