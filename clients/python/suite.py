"""What samples of clients' own tests have in common: each file runs in a process of its own, so that a crash costs only one.

The process prints a line for each test, as checks do, among what it says besides.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

LIMIT = 900
LIMIT_FULL = 4 * 3600
RAN = pathlib.Path(__file__).with_name("ran.tsv")
# Tests put descriptor 1 aside to look at what is printed; the lines are not theirs.
OUTPUT = os.dup(1)


def line(outcome, name, reason=None):
    # At once: a crash must not lose the lines before it.
    text = f"{outcome} {name}" + (f": {' '.join(str(reason).split())[:150]}" if reason else "")
    os.write(OUTPUT, f"\n{text}\n".encode())


class Lines:
    """For pytest: a line for each test that ran, by what became of it."""

    def name(self, report):
        # `run` takes a name as one word.
        return re.sub(r"\s", "", report.nodeid)

    def pytest_runtest_logreport(self, report):
        name = self.name(report)
        if report.failed:
            line("failed", name)
        elif report.skipped:
            # What a test's authors expect to fail, and does, is as it should be.
            expected = hasattr(report, "wasxfail")
            line("passed" if expected else "skipped", name, None if expected else report.longrepr[2])
        elif report.when == "call":
            line("passed", name)

    def pytest_collectreport(self, report):
        if report.failed:
            line("failed", report.nodeid)


def ran():
    """The files of the suite that is running which `ran.tsv` says have been run whole."""
    suite = pathlib.Path(sys.argv[0]).stem
    rows = (row.split("\t") for row in RAN.read_text().splitlines() if not row.startswith("#"))
    return {row[1] for row in rows if row[0] == suite and row[2] == "whole"}


def main(files, run_file, arguments, every=None):
    """Runs these files, or those that are arguments, by `run_file` in a process each; `every` file after `--full`, after `--rest`
    those of them that `ran.tsv` does not have."""
    if arguments[:1] == ["--file"]:
        run_file(arguments[1])
        return
    before = sys.argv[: len(sys.argv) - len(arguments)]
    limit = LIMIT
    if arguments[:1] == ["--full"]:
        files, limit, arguments = every() if every else files, LIMIT_FULL, arguments[1:]
    if arguments[:1] == ["--rest"]:
        there, arguments = ran(), arguments[1:]
        files = [file for file in files if file not in there]
    for file in arguments or files:
        start = time.monotonic()
        command = [sys.executable, *before, "--file", file]
        try:
            # What it says is seen as it comes.
            ended = subprocess.run(command, stderr=subprocess.STDOUT, timeout=limit)
            problem = ended.returncode and f"exit status {ended.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"still running after {limit} s"
        if problem:
            line("failed", file)
            print(f"{file}: {problem}")
        print(f"{file} took {time.monotonic() - start:.0f} s", flush=True)
