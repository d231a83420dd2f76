"""Names of objects: safe as paths, one for each crawl, in the order of time."""

from __future__ import annotations

from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from shoal.archive.gzip import compressed, decompressed
from shoal.archive.names import batch_name, blob_name, crawl_folder
from shoal.core.content import page_digest

any_text = st.text(st.characters())


@given(any_text)
@example(".")
@example("..")
@example("a/b")
@example("\ud800")
def test_a_crawls_folder_is_one_harmless_part_of_a_path(crawl: str) -> None:
    folder = crawl_folder(crawl)
    assert folder
    assert not folder.startswith(".")
    assert not set(folder) & set("/\\\0#?")
    assert folder.isascii()
    assert folder == "%" or unquote(folder, errors="surrogatepass") == crawl


def test_names_sort_by_time_and_do_not_collide() -> None:
    names = [batch_name("shop", "pages", ".gz") for _ in range(1000)]
    assert len(set(names)) == len(names)
    moments = [name.partition("Z-")[0] for name in names]
    assert moments == sorted(moments)
    assert len({len(name) for name in names}) == 1


def test_a_blob_is_found_by_the_digest_of_its_body() -> None:
    digest = page_digest(b"body")
    assert blob_name(digest).replace("/", "") == f"blobs{digest.hex()}.gz"


@given(st.binary())
def test_the_same_data_is_compressed_the_same_way(data: bytes) -> None:
    assert compressed(data) == compressed(data)
    assert decompressed(compressed(data), "it") == data
