#!/usr/bin/env python3
"""Tests of synccheck: programs with one mistake each, and the same programs mended.

`tests/check/findings.py [CLASS.test_NAME…]`, as in `tests/check/findings.py Warps Memory.test_overtaken`; MARGAY_BIN names another
folder than target/release for the command and the library. Each program is run as it comes and in orders that are drawn
(MARGAY_CHECK_SEEDS of them, by default 3): the order must make no difference to what is found.

What is to be found the programs say, by comments at the ends of lines: `// sync NAME` on one line, or on both lines that a finding
names; `// fails NAME` where the kernel ends with an error; `// either NAME` where that is left to the order; `// stuck NAME`
in the test itself where no kernel waits, but streams do. Nothing else may be found,
and nothing at all in the mended program. `FILE.txt` beside a file has the reports of its tests in the first of the drawn orders, word
for word; MARGAY_REWRITE_REPORTS=1 rewrites it."""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIN = pathlib.Path(os.environ.get("MARGAY_BIN") or ROOT / "target" / "release").absolute()
MARGAY = BIN / "margay"
CC = os.environ.get("CC", "cc")
CUDA = ROOT / ".env" / "cuda-13"
SEEDS = int(os.environ.get("MARGAY_CHECK_SEEDS") or 3)
# Nothing of the caller's that Margay, the runtime or the loader look at.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("MARGAY_", "CUDA_", "LD_"))}
NOWHERE = frozenset()
MARK = r"(?:sync|fails|either|stuck) \w+"
POOL = concurrent.futures.ThreadPoolExecutor(os.cpu_count())


def tests_of(source):
    """What the comments of a file say is to be found: by test, kind (sync, fails, either) and name the lines."""
    tests, marks = {}, collections.defaultdict(set)
    for number, line in enumerate(source.read_text().splitlines(), 1):
        # In C++ a test's name stands below its kernels, in PTX above.
        if head := re.match(r"TEST\((\w+)\)(?: *// stuck (\w+)$)?", line):
            if head[2]:
                marks["stuck", head[2]].add(number)
            tests[head[1]], marks = marks, collections.defaultdict(set)
            continue
        if head := re.match(r"\.visible \.entry (\w+)", line):
            tests[head[1]] = marks = collections.defaultdict(set)
        if comment := re.search(rf"// ({MARK}(?:, {MARK})*)(?: // broken)?$", line):
            for kind, name in re.findall(r"(\w+) (\w+)", comment[1]):
                marks[kind, name].add(number)
    return tests


def reports_of(printed):
    """The reports in what was printed, each without what the log puts before its first line."""
    printed = re.sub(r"\x1b\[[0-9;]*m", "", printed)
    return re.findall(r"^\S+ +ERROR (?:ThreadId\(\d+\) )?(?:[\w:]+: )?(.*\n(?:  .*\n)+)", printed, re.MULTILINE)


def masked(report):
    """Without addresses, folders, a number that nvcc makes of the file's place, and who of those that wait for ever was running."""
    report = re.sub(r"(nothing of the program .*?)\n  kernel [^\n]*, block .*", r"\1\n", report, flags=re.DOTALL)
    report = re.sub(r"0x[0-9a-f]{9,}", "0x...", report)
    return re.sub(r"_INTERNAL_\w+::", "", re.sub(r"(?<=[\s(])/\S*/(?=[\w.]+:\d)", "", report))


class Programs(unittest.TestCase):
    """The tests of one file; `program` is the command that runs one of them, as it is (broken) or mended."""

    maxDiff = None
    source: pathlib.Path
    seeds = SEEDS

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="margay-findings-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.build()

    @classmethod
    def build(cls):
        # Warnings 20054 and 177 are of barriers in shared memory, as everybody declares them, and of what one variant alone uses.
        options = ["-std=c++17", "-lineinfo", "-gencode", "arch=compute_90,code=compute_90", "-diag-suppress", "20054,177,550"]
        nvcc = [CUDA / "bin" / "nvcc", *options, cls.source]
        variants = {"broken": [], "mended": ["-DIS_MENDED"]}
        jobs = [POOL.submit(subprocess.run, [*nvcc, *more, "-o", cls.folder / name], check=True) for name, more in variants.items()]
        for job in jobs:
            job.result()

    def program(self, variant, test):
        return [self.folder / variant, test]

    def check(self, variant, test, seed):
        words = [MARGAY, "check", "--show-backtrace", "device", "--tool", "synccheck", "--", *self.program(variant, test)]
        # What the command keeps while it runs lies in the folder, which goes even where the command is killed.
        environment = ENVIRONMENT | {"TMPDIR": str(self.folder)} | ({"MARGAY_SEED": str(seed)} if seed else {})
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(words, env=environment, text=True, start_new_session=True, **pipes) as process:
            try:
                out, err = process.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                # The command, and the program that it waits for.
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                self.fail(f"hangs:\n{out}{err}")
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def places(self, report):
        """The lines of the sides of a report: of each the innermost that is the program's own, and not a header's."""
        sides = re.split(r"^  (?=(?:by|and by|they are elsewhere:|kernel) .*block )|(?<=\n)  (?=kernel )", report, flags=re.MULTILINE)[1:]
        lines = [re.search(rf"^  (?:at|from) (?:\S*/?{self.source.name}:|PTX line )(\d+)", side, re.MULTILINE) for side in sides]
        return frozenset(int(line[1]) for line in lines if line)

    def found(self, done):
        """What was reported, of which the exit code and the last line must tell, too."""
        said = done.stdout + done.stderr
        found, counts = set(), collections.Counter()
        for report in reports_of(done.stderr):
            kind = "sync" if report.startswith(("misuse in ", "deadlock: ")) else "fails"
            counts[kind] += 1
            found.add((kind, self.places(report)))
        words = [("fails", "kernel failed", "kernels failed"), ("sync", "misused barrier", "misused barriers")]
        parts = [f"{counts[kind]} {one if counts[kind] == 1 else many}" for kind, one, many in words if counts[kind]]
        self.assertTrue(done.stderr.endswith(f"margay check: {', '.join(parts) or 'nothing found'}\n"), said)
        self.assertEqual(done.returncode, 1 if counts else 0, said)
        return found

    def look(self, test, marks):
        expected = {(kind, frozenset(lines)) for (kind, _), lines in marks.items() if kind in ("sync", "fails")}
        expected |= {("sync", NOWHERE) for kind, _ in marks if kind == "stuck"}
        either = [frozenset(lines) for (kind, _), lines in marks.items() if kind == "either"]
        # A test without any mark is not broken.
        runs = [(variant, seed) for variant in (["broken"] if marks else []) + ["mended"] for seed in range(self.seeds + 1)]
        jobs = {run: POOL.submit(self.check, run[0], test, run[1]) for run in runs}
        for (variant, seed), job in jobs.items():
            done = job.result()
            with self.subTest(program=variant, seed=seed):
                found, wanted = self.found(done), set()
                if variant == "broken":
                    wanted = set(expected)
                    for lines in either:
                        wanted.add(("fails" if ("fails", lines) in found else "sync", lines))
                self.assertEqual(found, wanted, done.stdout + done.stderr)
            if (variant, seed) == ("broken", 1):
                self.reported(test, [masked(report) for report in sorted(reports_of(done.stderr))])

    def reported(self, test, reports):
        path = self.source.with_suffix(".txt")
        text = path.read_text() if path.exists() else ""
        sections = dict(re.findall(r"^== (\w+)\n((?:(?!== ).*\n)*)", text, re.MULTILINE))
        if os.environ.get("MARGAY_REWRITE_REPORTS") == "1":
            sections[test] = "\n".join(reports)
            kept = [name for name in tests_of(self.source) if name in sections]
            path.write_text("".join(f"== {name}\n{sections[name]}" for name in kept))
        self.assertEqual("\n".join(reports), sections.get(test, ""))


class Ptx(Programs):
    """Of PTX, which is loaded as text: the lines of the other variant are blank, so that lines keep their numbers."""

    @classmethod
    def build(cls):
        text = cls.source.read_text()
        (cls.folder / "broken").write_text(text)
        mended = re.sub(r"^ *// mended: ", "", text, flags=re.MULTILINE)
        (cls.folder / "mended").write_text(re.sub(r"^.*// broken$", "", mended, flags=re.MULTILINE))
        library = ["-L", BIN, "-lcuda"]
        subprocess.run([CC, "-I", CUDA / "include", HERE / "load.c", "-o", cls.folder / "load", *library], check=True)

    def program(self, variant, test):
        return [self.folder / "load", self.folder / variant, test, "128"]


def method(test, marks):
    return lambda self: self.look(test, marks)


# A class for each file, with a method for each of its tests.
folder = HERE / "sync"
classes = [type(path.stem.capitalize(), (Programs,), {"source": path}) for path in sorted(folder.glob("*.cu"))]
classes += [type(path.stem.capitalize(), (Ptx,), {"source": path}) for path in sorted(folder.glob("*.ptx"))]
for each in classes:
    if each.source.stem == "deadlocks":
        # Each run takes ten seconds and more.
        each.seeds = min(SEEDS, 1)
    globals()[each.__name__] = each
    for name, expected in tests_of(each.source).items():
        setattr(each, f"test_{name}", method(name, expected))
del each, Programs, Ptx

if __name__ == "__main__":
    unittest.main(verbosity=1)
