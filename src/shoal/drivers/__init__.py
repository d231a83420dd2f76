"""Raw clients of servers, with our errors for theirs: SQLite in a thread, Redis and its
scripts, RabbitMQ, SQS.
Imports runtime and core.
"""
