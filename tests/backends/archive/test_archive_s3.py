"""The archive contract on servers that speak S3's protocol, and what can go wrong with a bucket."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import web

from contract.archive_suite import ArchiveContract, Connect, Opened, opened
from shoal.archive import open_archive, s3
from shoal.archive.s3 import S3Objects
from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageFailed
from support.s3_servers import BUCKET, Ministack, Rclone, S3Server
from support.sites import Site, serving
from support.tcp_proxy import TcpProxy

_prefixes = itertools.count()


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with Ministack(tmp_path_factory.mktemp("ministack")) as server:
        yield server


@pytest.fixture(scope="module")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with Rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


def use(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
async def connect(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connect]:
    use(server, monkeypatch)
    address = f"s3://{BUCKET}/some/prefix-{next(_prefixes)}/"
    made: list[Opened] = []

    def connect(fmt: str) -> Opened:
        made.append(opened(S3Objects(address), fmt))
        return made[-1]

    yield connect
    for one in made:
        await one.archive.close()


class TestMinistack(ArchiveContract):
    @pytest.fixture
    def server(self, ministack: S3Server) -> S3Server:
        return ministack


class TestRclone(ArchiveContract):
    @pytest.fixture
    def server(self, rclone: S3Server) -> S3Server:
        return rclone


# What can go wrong with a bucket

ADDRESS = f"s3://{BUCKET}/some/prefix"


async def all_calls(objects: S3Objects) -> set[str]:
    """What every kind of call says, which must all be errors of ours."""
    said = set()
    for call in (objects.check(), objects.put("a", b"a"), objects.get("a"), objects.names("a")):
        with pytest.raises(ConfigError) as raised:
            await call
        said.add(str(raised.value))
    return said


@pytest.mark.parametrize("name", ["ministack", "rclone"])
async def test_there_is_no_such_bucket(
    request: pytest.FixtureRequest, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(request.getfixturevalue(name), monkeypatch)
    assert await all_calls(S3Objects("s3://nowhere/x")) == {
        "s3://nowhere/x: there is no such bucket: make it first, or name another one"
    }


@pytest.mark.parametrize(
    ("variable", "code"),
    [
        ("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId"),
    ],
)
async def test_a_wrong_login(
    rclone: S3Server, monkeypatch: pytest.MonkeyPatch, variable: str, code: str
) -> None:
    use(rclone, monkeypatch)
    monkeypatch.setenv(variable, "s3cr3t")
    (said,) = await all_calls(S3Objects(ADDRESS))
    assert said.startswith(f"{ADDRESS}: access denied ({code}): check AWS_ACCESS_KEY_ID")
    assert "s3cr3t" not in said


async def test_no_login(rclone: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    use(rclone, monkeypatch)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with TcpProxy(1) as nobody:  # For the place where a machine of Amazon asks who it is.
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{nobody.port}")
        assert await all_calls(S3Objects(ADDRESS)) == {
            f"{ADDRESS}: no login: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        }


async def test_the_service_goes_away_and_comes_back(
    rclone: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(rclone, monkeypatch)
    monkeypatch.setattr(s3, "ANSWER_S", 0.5)
    with TcpProxy(rclone.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        objects = S3Objects(ADDRESS)
        await objects.put("before/a", b"data")
        for fail, says in ((proxy.cut, "cannot reach the service"), (proxy.freeze, "no answer")):
            fail()
            for call in (objects.put("a", b"a"), objects.get("before/a"), objects.names("before")):
                with pytest.raises(StorageBusy, match=says):
                    await call
            proxy.heal()
        monkeypatch.setattr(s3, "ANSWER_S", 30.0)
        assert await objects.get("before/a") == b"data"
        assert await objects.names("before") == ["before/a"]


@pytest.mark.parametrize(
    ("status", "code", "kind", "says"),
    [
        (500, "InternalError", StorageBusy, "InternalError"),
        (503, "SlowDown", StorageBusy, "SlowDown"),
        (503, "", StorageBusy, "HTTP 503"),
        (429, "", StorageBusy, "HTTP 429"),
        (409, "ConditionalRequestConflict", StorageBusy, "somebody else writes a"),
        (400, "RequestTimeout", StorageBusy, "RequestTimeout"),
        (400, "ExpiredToken", ConfigError, r"access denied \(ExpiredToken\)"),
        (400, "AuthorizationHeaderMalformed", ConfigError, "another region: set AWS_REGION"),
        (301, "PermanentRedirect", ConfigError, "another region: set AWS_REGION"),
        (403, "", ConfigError, r"access denied \(403\)"),
        (400, "EntityTooLarge", StorageFailed, "EntityTooLarge"),
        (501, "NotImplemented", StorageFailed, "does not know this request"),
    ],
)
async def test_an_answer_that_is_an_error(
    rclone: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    kind: type[ShoalError],
    says: str,
) -> None:
    async def answer(path: str) -> web.Response:
        return web.Response(status=status, text=code and f"<Error><Code>{code}</Code></Error>")

    use(rclone, monkeypatch)
    with serving(Site(answer)) as site:
        monkeypatch.setenv("AWS_ENDPOINT_URL", site.url)
        with pytest.raises(kind, match=f"^{ADDRESS}: .*{says}"):
            await S3Objects(ADDRESS).put("a", b"a")


async def test_a_service_that_knows_no_conditions(
    rclone: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first answer is that it does not; from then on it is not asked again."""
    asked = 0

    async def answer(path: str) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(status=501) if asked == 1 else web.Response(headers={"ETag": "x"})

    use(rclone, monkeypatch)
    with serving(Site(answer)) as site:
        monkeypatch.setenv("AWS_ENDPOINT_URL", site.url)
        objects = S3Objects(ADDRESS)
        assert await objects.put("a", b"a")
        assert await objects.put("b", b"b")
    assert asked == 3


@pytest.mark.parametrize(
    "address",
    [
        *("s3:", "s3://", "s3:///prefix", "s3://a b/c", "s3://bucket/a//b", "s3://bucket/../x"),
        *("s3://me:s3cr3t@bucket/x", "s3://bucket?secret=s3cr3t", "s3://bucket/x?key=s3cr3t"),
    ],
)
def test_what_is_no_address_of_a_bucket(address: str) -> None:
    with pytest.raises(ConfigError, match="write s3://bucket/prefix") as raised:
        open_archive(address, "blobs")
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize("endpoint", ["nonsense", "ftp://x", "localhost:9000"])
def test_a_wrong_endpoint(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(ConfigError, match="AWS_ENDPOINT_URL is no http"):
        open_archive("s3://bucket", "blobs")
