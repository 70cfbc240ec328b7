"""Headers of resumable uploads (tus 1.0.0)."""

from __future__ import annotations

import pytest

from rowcall.core.uploads.resumable import HeaderError, upload_checksum, upload_metadata


def test_metadata() -> None:
    assert upload_metadata("filename d29ybGQ=,draft") == {"filename": "world", "draft": ""}


@pytest.mark.parametrize("text", ["filename \xe9", "filename a", "filename YQ==,filename YQ==", ""])
def test_malformed_metadata(text: str) -> None:
    with pytest.raises(HeaderError):
        upload_metadata(text)


@pytest.mark.parametrize("text", ["sha1 \xe9", "sha1 a", "crc32 YQ=="])
def test_malformed_checksum(text: str) -> None:
    with pytest.raises(HeaderError):
        upload_checksum(text)
