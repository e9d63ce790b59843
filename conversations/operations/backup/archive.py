"""The archive of a backup: a tar file with a manifest that lists its parts and their digests.

It contains neither sessions nor the site's keys (SECRET_KEY, AGENTWEB_SECRETS_KEY), so a stolen
backup cannot be used to open sealed secrets or to forge a session.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tools.framework.errors import is_of_full_disk

FORMAT = 1
MANIFEST = "agentweb-backup.json"
ANCHORS = "anchors.jsonl"
FILES = "workspaces/"
_PIECE = 1_000_000


class BackupError(Exception):
    """A backup cannot be made or restored; the message says why."""

    code = "backup"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    digest: str
    size: int


@dataclass(slots=True)
class Manifest:
    made_at: str
    #: The database, sqlite or postgresql, and the part that contains it.
    database: str
    member: str
    #: The last migration of each app.
    migrations: dict[str, str]
    #: The number of the last anchor in the database.
    anchor: int = 0
    format: int = FORMAT
    parts: list[Part] = field(default_factory=list)


class ArchiveWriter:
    """Writes the parts of an archive and lists them in its manifest."""

    def __init__(self, tar: tarfile.TarFile, manifest: Manifest) -> None:
        self._tar, self.manifest = tar, manifest

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """Add a part from a source of `size` bytes."""
        hashed = _HashingReader(source)
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        self._tar.addfile(info, hashed)
        self.manifest.parts.append(Part(name, hashed.digest, size))

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, io.BytesIO(data), len(data))

    def add_path(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            self.add(name, file, path.stat().st_size)


class _HashingReader:
    """A file that computes the digest of the bytes read from it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._hash = source, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._hash.update(data)
        return data

    @property
    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()


@contextmanager
def write_archive(path: Path, manifest: Manifest) -> Iterator[ArchiveWriter]:
    """Write an archive; it gets its name only when it is complete."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with tarfile.open(unfinished, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as tar:
            unfinished.chmod(0o600)
            writer = ArchiveWriter(tar, manifest)
            yield writer
            data = json.dumps(asdict(manifest), indent=1).encode()
            info = tarfile.TarInfo(MANIFEST)
            info.size, info.mode = len(data), 0o600
            tar.addfile(info, io.BytesIO(data))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def unpack_archive(path: Path, folder: Path) -> Manifest:
    """Unpack an archive into an empty folder and check every part; raises BackupError."""
    try:
        with tarfile.open(path) as tar:
            names = sorted(_extract_files(tar, folder))
        manifest = _read_manifest((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, tarfile.TarError, EOFError, ValueError, TypeError, KeyError) as error:
        if is_of_full_disk(error):
            raise BackupError(f"there is no room to unpack {path} in {folder.parent}") from error
        raise BackupError(f"{path} is no whole backup of agentweb: {error}") from error
    if manifest.format != FORMAT:
        raise BackupError(f"{path} is of format {manifest.format}; this version reads {FORMAT}")
    listed = {part.name for part in manifest.parts}
    if names != sorted([*listed, MANIFEST]) or manifest.member not in listed:
        raise BackupError(f"{path} is damaged: it holds other files than it lists")
    for part in manifest.parts:
        file = folder / part.name
        if not file.is_file() or _digest_file(file) != part.digest:
            raise BackupError(f"{path} is damaged: {part.name} is not what was put into it")
    return manifest


def _extract_files(tar: tarfile.TarFile, folder: Path) -> Iterator[str]:
    """Extract regular files only: a link could redirect later files to anywhere.

    Written by hand, because the first releases of Python 3.11 have no extraction filter.
    """
    for info in tar:
        path = PurePosixPath(info.name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{info.name} is outside of the archive")
        if not info.isreg() or (data := tar.extractfile(info)) is None:
            raise ValueError(f"{info.name} is no plain file")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            shutil.copyfileobj(data, file, _PIECE)
        target.chmod(0o600)
        yield info.name


def _read_manifest(text: str) -> Manifest:
    data: dict[str, Any] = json.loads(text)
    data["parts"] = [Part(**part) for part in data["parts"]]
    return Manifest(**data)


def _digest_file(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_PIECE):
            found.update(data)
    return "sha256:" + found.hexdigest()
