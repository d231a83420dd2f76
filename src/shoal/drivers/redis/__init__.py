"""The connection to Redis, its errors, and the loader of Lua scripts."""
