"""Serves the API, the dashboard and the answers to probes (`shoal serve`) in one aiohttp server.

Imports insight and the layers below it; only the command line imports it.

    listening   the address, host names    access      tokens, roles, the cookie
    guard       checks on every request    problems    errors, as RFC 9457 defines them
    routes      the table of all routes    openapi     the API's description, from that table
    sampler     cached frontier queries    api/        for programs
    server      the service itself         screens/    for people
"""
