"""How proxies are asked for a way to a host, on the raw socket. What they answer is as untrusted as
what any server does: it is bounded in bytes here, and in time by who calls."""
