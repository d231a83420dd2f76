"""The accounts that a process logs in with: reads them, tells the fleet about them, and encrypts
their cookies.

The frontier decides which worker may use an account. Imports frontier, config and core.
"""
