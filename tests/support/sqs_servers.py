"""Servers that speak SQS's protocol: real ones, private, on free ports, gone in the end.

Ministack is fast; moto is the reference for what errors are called. Neither keeps what it has when
it is killed.
"""

from __future__ import annotations

from support.s3_servers import Ministack, S3Server, script


class SqsServer(S3Server):
    """A server of queues: of the buckets it has none."""

    def _make_bucket(self) -> None:
        pass


class SqsMinistack(SqsServer, Ministack):
    pass


class Moto(SqsServer):
    def _command(self) -> list[str]:
        return [script("moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]
