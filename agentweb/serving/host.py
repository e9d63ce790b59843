"""The machine: the type of the file system under a folder, and no core dumps."""

from __future__ import annotations

import re
import resource
from pathlib import Path

#: File systems on which SQLite's locks and shared memory do not work.
NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "glusterfs",
    "ocfs2", "gfs2", "davfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs",
    "fuse.davfs", "fuse.gcsfuse", "fuse.juicefs", "fuse.cephfs",
})  # fmt: skip
MOUNTS = Path("/proc/self/mountinfo")


def find_file_system(path: Path, mounts: str | None = None) -> str:
    """Return the type of the file system that a path is on; "" if unknown."""
    if mounts is None:
        try:
            mounts = MOUNTS.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    found, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
        depth = len(point.parts)
        # Of two mounts on one folder the later one hides the earlier.
        if depth >= found and path.resolve().is_relative_to(point):
            found, kind = depth, after.split()[0]
    return kind


def is_on_network(path: Path, mounts: str | None = None) -> bool:
    return find_file_system(path, mounts) in NETWORK


def leave_no_core() -> None:
    """Disable core dumps of this process and its children: their memory holds keys."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
