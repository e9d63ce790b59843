"""The machine: the type of the file system under a folder, and no core dumps."""

from __future__ import annotations

import re
import resource
from pathlib import Path

#: Kinds on which SQLite's locks and shared memory do not hold.
NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "glusterfs",
    "ocfs2", "gfs2", "davfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs",
    "fuse.davfs", "fuse.gcsfuse", "fuse.juicefs", "fuse.cephfs",
})  # fmt: skip
MOUNTS = Path("/proc/self/mountinfo")


def find_file_system(path: Path, mounts: str | None = None) -> str:
    """Name the kind of file system a path is on; "" where the machine does not say."""
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
        # Of two on one folder the later hides the earlier.
        if depth >= found and path.resolve().is_relative_to(point):
            found, kind = depth, after.split()[0]
    return kind


def is_on_network(path: Path, mounts: str | None = None) -> bool:
    return find_file_system(path, mounts) in NETWORK


def leave_no_core() -> None:
    """Have no crash of this process or its children write memory to the disk: keys are in it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
