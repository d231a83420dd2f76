-- Marks the form of a script for clients with a carrier. Needs step.lua.

is_carrier = true
