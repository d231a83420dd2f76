-- The form of a script for clients that have a carrier. Needs step.lua.

is_carrier = true
