"""What samples of clients' own tests have in common: each file runs in a process of its own, so that a crash costs only one.

The process prints a line for each test, as checks do. What it says besides is shown if it ends in another way.
"""

import os
import subprocess
import sys
import time

LIMIT = 900
# Tests put descriptor 1 aside to look at what is printed; the lines are not theirs.
OUTPUT = os.dup(1)


def line(outcome, name, reason=None):
    # At once: a crash must not lose the lines before it.
    text = f"{outcome} {name}" + (f": {' '.join(str(reason).split())[:150]}" if reason else "")
    os.write(OUTPUT, f"\n{text}\n".encode())


def main(files, run_file, arguments):
    """Runs these files, or those that are arguments, by `run_file` in a process each."""
    if arguments[:1] == ["--file"]:
        run_file(arguments[1])
        return
    for file in arguments or files:
        start = time.monotonic()
        command = [sys.executable, *sys.argv[: len(sys.argv) - len(arguments)], "--file", file]
        try:
            ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
            text, problem = ended.stdout, ended.returncode and f"exit status {ended.returncode}"
        except subprocess.TimeoutExpired as late:
            text, problem = late.stdout or b"", f"still running after {LIMIT} s"
        sys.stdout.write(text.decode(errors="replace"))
        if problem:
            line("failed", file)
            print(f"{file}: {problem}")
        print(f"{file} took {time.monotonic() - start:.0f} s", flush=True)
