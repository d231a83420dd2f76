"""The connection to Redis, and the scripts that go over it."""
