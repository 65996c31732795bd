"""Archives that are the same bytes whenever they are made of the same files."""

import gzip
import hashlib
import os
import stat
import tarfile


def normalize(folder, time):
    """Gives all that is in a folder the modes and the time that packages have."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        os.utime(path, (time, time), follow_symlinks=False)


def tarball(folder, path):
    """A compressed archive of a folder that has been normalized. Names begin with the folder's own."""

    def owned_by_root(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        return entry

    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for entry in [folder, *sorted(folder.rglob("*"))]:
                archive.add(entry, entry.relative_to(folder.parent), recursive=False, filter=owned_by_root)


def check_sums(out):
    """Lists every package in the folder, the wheel too, if it is there."""
    files = [path for pattern in ["*.tar.gz", "*.deb", "*.whl"] for path in out.glob(pattern)]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(files)]
    (out / "SHA256SUMS").write_text("".join(lines))
