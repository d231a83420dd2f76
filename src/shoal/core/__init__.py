"""The building blocks of Shoal: tasks, URLs, policies, and the values that its parts exchange.

Pure code: no I/O, no clock, no event loop. Of Shoal's other packages it imports only the errors.
"""
