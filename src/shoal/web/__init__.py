"""The web (`shoal serve`): an API, a dashboard and what probes ask, in one aiohttp server.
Imports insight and what is below it; only the command line imports it.

    listening   where to listen            access      tokens, roles, the cookie
    guard       what every request passes  problems    errors as RFC 9457 has them
    routes      one table of all routes    openapi     its description, made from the table
    sampler     asks the frontier          api/        what programs ask
    server      the service itself         screens/    what people see
"""
