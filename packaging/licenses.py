"""The licences of all that is inside the packages: the crates that are linked, Rust's own library, and what the compiler's library
holds of LLVM, zlib, zstd and the C++ library."""

import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
TEXTS = ["LICENSE*", "LICENCE*", "license*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*"]
# What crates bring besides their own. Of zstd's two licences, this is the one that its users take.
INSIDE = {"zstd-sys": ["zstd/LICENSE"]}

HEAD = """\
Margay is under the MIT licence or the Apache licence 2.0, at your choice (LICENSE-MIT, LICENSE-APACHE). Its programs and libraries
hold parts of others, which are listed here with their licences. The texts follow, each once.
"""

# Debian's packages of Rust have a file; those of rustup have none for the library.
RUST = """\
Rust's standard library ({version}), by the Rust Project Developers, is under the MIT licence or the Apache licence 2.0, and so are
the crates in it (addr2line, adler2, cfg-if, compiler_builtins, gimli, hashbrown, libc, miniz_oxide, object, rustc-demangle); its
memchr is under the Unlicense or the MIT licence. Parts of compiler_builtins are from LLVM's compiler-rt, under the Apache licence
2.0 with LLVM's exceptions.
"""

MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files
(the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify,
merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished
to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE
FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def run(*words):
    done = subprocess.run([str(word) for word in words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"packaging: {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def crates(manifest):
    """The packages that are linked into what is built: not those that only build it, nor macros, nor what tests need."""
    cargo = os.environ.get("CARGO", "cargo")
    options = ["--locked", "--manifest-path", manifest]
    metadata = json.loads(run(cargo, "metadata", "--format-version", "1", "--filter-platform", TARGET, *options))
    packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
    tree = run(cargo, "tree", *options, "--target", TARGET, "-e", "normal,no-proc-macro", "--prefix", "none")
    linked = {(line.split()[0], line.split()[1][1:]) for line in tree.splitlines() if line}
    # Ours have no source that they were fetched from.
    return {key: packages[key] for key in linked if packages[key]["source"]}


def texts_of(package):
    """The licences in a crate's sources, by their names there."""
    folder = Path(package["manifest_path"]).parent
    names = [name for name in sorted(os.listdir(folder)) if any(fnmatch.fnmatch(name, text) for text in TEXTS)]
    files = [folder / name for name in names + INSIDE.get(package["name"], [])]
    inner = [path for file in files if file.is_dir() for path in sorted(file.iterdir())]
    return {path.relative_to(folder): path.read_text(errors="replace") for path in files + inner if path.is_file()}


def debian(package):
    """Where Debian and Ubuntu, whose archives are linked, keep a package's licences."""
    path = Path("/usr/share/doc") / package / "copyright"
    if not path.is_file():
        sys.exit(f"packaging: no licence of {package} in {path}: packages with the compiler's library are made on Debian or Ubuntu "
                 "(LLVM_CONFIG=none builds without it)")
    return path


def compiler():
    """What libmargay-jit.so holds besides crates: name, version, licence and text of each."""
    config = run(ROOT / "jit" / "find-llvm").strip()
    llvm = run(config, "--version").strip()
    yield "LLVM", llvm, "Apache-2.0 WITH LLVM-exception", debian(f"llvm-{llvm.split('.')[0]}-dev")
    for library, name, package, licence in [("z", "zlib", "zlib1g-dev", "Zlib"), ("zstd", "zstd", "libzstd-dev", "BSD-3-Clause")]:
        if f"-l{library}" in run(config, "--link-static", "--system-libs").split():
            yield name, "of the distribution", licence, debian(package)
    # The folder is named for gcc's version.
    archive = Path(run(os.environ.get("CC", "cc"), "-print-file-name=libstdc++.a").strip())
    gcc = archive.parent.name
    yield "libstdc++", f"gcc {gcc}", "GPL-3.0-or-later WITH GCC-exception-3.1", debian(f"libstdc++-{gcc}-dev")


def of(with_compiler):
    """The whole text."""
    linked = crates("Cargo.toml")
    if with_compiler:
        linked.update(crates("jit/Cargo.toml"))
    rows, texts = [], {}

    def add(name, text):
        # One crate's may differ from another's in the ends of lines only.
        text = "\n".join(line.rstrip() for line in text.strip().splitlines())
        texts.setdefault(text, []).append(name)

    for (name, version), package in sorted(linked.items()):
        licence = package["license"] or "see its text"
        rows.append((f"{name} {version}", licence, package["repository"] or ""))
        found = texts_of(package)
        for path, text in found.items():
            add(f"{name} {version} ({path})", text)
        if not found:
            if licence != "MIT":
                sys.exit(f"packaging: {name} {version} is under {licence}, and has no text of it")
            authors = ", ".join(author.split(" <")[0] for author in package["authors"])
            add(f"{name}, whose package names its licence only", f"Copyright (c) {authors or f'the authors of {name}'}\n\n{MIT}")
    if with_compiler:
        for name, version, licence, path in compiler():
            rows.append((f"{name} {version}, in libmargay-jit.so", licence, ""))
            add(f"{name}, as {path.parent.name} of the distribution has it", path.read_text(errors="replace"))
    rust = run(os.environ.get("RUSTC", "rustc"), "--version").strip()
    add("Rust's standard library", f"Copyright (c) The Rust Project Contributors\n\n{MIT}")

    width = max(len(row[0]) for row in rows) + 2
    licence_width = max(len(row[1]) for row in rows) + 2
    table = [f"{name:{width}}{licence:{licence_width}}{place}".rstrip() for name, licence, place in rows]
    parts = [HEAD, RUST.format(version=rust), "\n".join(table) + "\n"]
    for text, names in texts.items():
        parts.append(f"{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}\n")
    return "\n".join(parts)
