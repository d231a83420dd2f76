"""The accounts that a process logs in with: where they are read, what the fleet is told of them,
and how their cookies are kept. Who may use one is decided in the frontier. Imports frontier, config
and core.
"""
