"""The Debian package. What programs load lies in a folder of its own, /usr/lib/margay, where the loader does not look: a driver of
NVIDIA's on the same machine stays the one that is found."""

import hashlib
import os
import shutil
import subprocess
import sys

import archives
import prefix as prefixes

CONTROL = """\
Package: margay
Version: {version}
Architecture: amd64
Maintainer: The maintainers of Margay <maintainers@margay.invalid>
Installed-Size: {size}
Depends: libc6 (>= {glibc}), libgcc-s1
Suggests: pkgconf | pkg-config
Section: devel
Priority: optional
Description: CUDA driver library for machines without a GPU
 Margay loads the PTX in a CUDA program and runs its kernels on the CPU. The
 command "margay run -- PROGRAM" starts a program with it; nothing else on the
 machine is changed, and a driver of NVIDIA's stays the one that others find.
"""

COPYRIGHT = """\
Margay is under the MIT licence or the Apache licence 2.0, at your choice: see LICENSE-MIT and LICENSE-APACHE in this folder.
licenses.txt has the licences of what its programs and libraries hold of others.
"""


def package(prefix, folder, glibc, time, out):
    """Makes the package from a prefix; `folder` is to be its root, and is not there yet. Returns its path, or none if this machine
    cannot make one."""
    if not shutil.which("dpkg-deb"):
        print("packaging: no Debian package is made: there is no dpkg-deb here")
        return None
    usr = folder / "usr"
    shutil.copytree(prefix / "bin", usr / "bin")
    lib = usr / "lib" / "margay"
    shutil.copytree(prefix / "lib", lib, symlinks=True, ignore=shutil.ignore_patterns("pkgconfig"))
    # One folder deeper than in the prefix.
    for program in prefixes.STAND_INS:
        (lib / "companions" / "bin" / program).unlink()
        prefixes.link(lib / "companions" / "bin" / program, "../../../../bin/margay")
    shutil.copytree(prefix / "include", usr / "include" / "margay")
    shutil.copytree(prefix / "share", usr / "share")
    (usr / "share" / "doc" / "margay" / "copyright").write_text(COPYRIGHT)
    pkgconfig = usr / "lib" / "x86_64-linux-gnu" / "pkgconfig" / "margay.pc"
    prefixes.pkg_config(pkgconfig, "../../..", "lib/margay", "include/margay")

    files = sorted(path for path in usr.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files) // 1024
    version = prefixes.version()
    control = folder / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(CONTROL.format(version=version, size=size, glibc=".".join(map(str, glibc))))
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    (control / "md5sums").write_text("".join(sums))
    archives.normalize(folder, time)
    path = out / f"margay_{version}_amd64.deb"
    # The least of xz's levels is still a quarter smaller than gzip, and the others take minutes.
    made = subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", folder, path],
        env=os.environ | {"SOURCE_DATE_EPOCH": str(time)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    if made.returncode != 0:
        sys.exit(f"packaging: dpkg-deb: {made.stderr.strip()}")
    return path
