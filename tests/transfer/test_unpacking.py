"""Unpacking: whatever a file claims to be, it is read within its allowance or clearly refused."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import Any

import pytest

from conversations.transfer import unpacking
from conversations.transfer.unpacking import UploadError, read_objects

MOST = 1_000_000


def found(raw: bytes, most: int = MOST, most_each: int = MOST) -> list[Any]:
    return [
        json.loads(each) for each in read_objects(io.BytesIO(raw), most=most, most_each=most_each)
    ]


def refused(raw: bytes, most: int = MOST) -> str:
    with pytest.raises(UploadError) as caught:
        found(raw, most)
    return caught.value.code


def zipped(*members: tuple[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", packing) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return sink.getvalue()


ONE = zipped(("conversations.json", b'[{"a":1}]'))


def test_objects_are_found_wherever_a_portion_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [{"a": '}{"\\'}, {"b": {"c": ["{", "\\\\", "ü€𝄞"]}}, {"d": '\\"}'}, {}]
    raw = json.dumps(values, ensure_ascii=False, indent=1).encode()
    for portion in range(1, 40):
        monkeypatch.setattr(unpacking, "PORTION", portion)
        assert found(raw) == values


def test_quotation_marks_outside_of_objects_mean_nothing() -> None:
    assert found(b'"[ " {"a":1}, "" " \\ \n {"b":2} "') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("text", ['"', '\\"', "\\\\", '"{"', '",', '}"'])
def test_a_text_of_marks_alone_is_one_text(text: str) -> None:
    value = {"a": text * 100_000, "b": [text] * 1_000}
    assert found(json.dumps([value]).encode()) == [value]


def test_all_files_of_an_archive_share_one_allowance() -> None:
    members = [(f"conversations-{at}.json", b'[{"a":1}]' + b" " * 400_000) for at in range(3)]
    assert len(found(zipped(*members[:2]))) == 2
    assert refused(zipped(*members)) == "too_big"


@pytest.mark.parametrize("folder", ["", "unpacked/"])
def test_files_of_conversations_that_an_archive_carries_are_not_its_own(folder: str) -> None:
    names = ["workspace/a/conversations-2023.jsonl", "conversations.jsonl", "conversations-2.json"]
    members = [(f"{folder}{name}", json.dumps({"a": name}).encode()) for name in names]
    assert [each["a"] for each in found(zipped(*members))] == sorted(names[1:])


def test_many_files_or_two_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 3)
    members = [(f"{at}/conversations.json", b'[{"a":1}]') for at in range(4)]
    assert len(found(zipped(*members[:3]))) == 3
    assert refused(zipped(*members)) == "too_many"
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped(members[0], members[0])
    assert refused(twice) == "twice"


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_the_ordinary_packings_are_read(packing: int) -> None:
    member = ("conversations.json", b'[{"a":1}]')
    assert refused(zipped(member, packing=packing)) == "packing"
    assert found(zipped(member, packing=zipfile.ZIP_STORED)) == [{"a": 1}]


def test_an_archive_of_very_many_files_is_not_even_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_LISTING", 2_000)
    members = [(f"{at}.txt", b"") for at in range(60)]
    many = zipped(*members, ("conversations.json", b'[{"a":1}]'))
    assert refused(many) == "too_many"
    end = many.rindex(b"PK\x05\x06")
    small = many[end : end + 12] + (46).to_bytes(4, "little") + many[end + 16 : end + 22]
    # A second end that claims less, in the comment of the first one and before it.
    first = many[:-2] + len(small).to_bytes(2, "little") + small
    assert refused(first) in ("too_many", "broken")
    assert refused(many[:end] + small + many[end:]) in ("too_many", "broken")
    # The end record of a big archive counts whatever the plain one beside it says.
    at = many.index(b"PK\x01\x02")
    size = end - at
    big = b"PK\x06\x06" + (44).to_bytes(8, "little") + b"\x2d\0\x2d\0" + b"\0" * 8
    big += (61).to_bytes(8, "little") * 2 + size.to_bytes(8, "little") + at.to_bytes(8, "little")
    locator = b"PK\x06\x07" + b"\0" * 4 + end.to_bytes(8, "little") + b"\1\0\0\0"
    hidden = many[:end] + big + locator + small
    assert len(zipfile.ZipFile(io.BytesIO(hidden)).infolist()) == 61
    assert refused(hidden) == "too_many"


def test_a_damaged_file_is_read_or_refused_but_never_an_error() -> None:
    packed = gzip.compress(b'[{"a":1}]')
    raws = [raw[:cut] for raw in (ONE, packed) for cut in range(len(raw))]
    for raw in (ONE, packed):
        for at in range(len(raw)):
            raws += [raw[:at] + bytes([new]) + raw[at + 1 :] for new in (0, 1, 12, 0x80, 0xFF)]
    refusals = []
    for raw in raws:
        try:
            list(read_objects(io.BytesIO(raw), most=MOST, most_each=MOST))
        except UploadError as error:
            refusals.append(error.text)
    assert len(refusals) > len(raws) // 4
    assert all(refusals)


def test_reading_ends_at_its_deadline_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unpacking, "MOST_SECONDS", -1.0)
    with pytest.raises(UploadError, match="Upload the file again") as caught:
        found(b'[{"a":1}]')
    assert caught.value.code == "too_long"
