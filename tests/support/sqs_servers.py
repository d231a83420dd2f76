"""Real servers of the SQS protocol: private, on free ports, gone at the end.

Ministack is fast; moto is the reference for the names of errors. Neither keeps its data when it is
killed.
"""

from __future__ import annotations

from support.s3_servers import Ministack, S3Server, script


class SqsServer(S3Server):
    """A server of queues, without a bucket."""

    def _make_bucket(self) -> None:
        pass


class SqsMinistack(SqsServer, Ministack):
    pass


class Moto(SqsServer):
    def _command(self) -> list[str]:
        return [script("moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]


class StrictMoto(Moto):
    """Knows nobody, so every login is refused."""

    @property
    def _environment(self) -> dict[str, str]:
        return {"INITIAL_NO_AUTH_ACTION_COUNT": "0"}
