#!/usr/bin/env python3
"""What compute-sanitizer finds in the programs of tests/check, on a GPU: `sanitizer.py FILE [SECONDS [FOLDER or SOURCE]...]`.

The file has a line for each program, its fields by tabs: source, test, variant (broken, mended), how it ends without a tool, and what
each tool found. Programs are run under the tool for their class of mistake, broken ones in which it found nothing under the other
three, too. A program that the device cannot run, or that `nvcc` there cannot compile, has no line. Needs nvcc and compute-sanitizer
on the PATH; SECONDS is when no more programs are begun (by default 400). Logs are kept in FILE.logs."""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

CHECK = pathlib.Path(__file__).resolve().parents[1] / "check"
# By folder the tool that looks for such mistakes.
TOOLS = {".": "racecheck", "memory": "memcheck", "sites": "initcheck", "sync": "synccheck"}
OPTIONS = {"memcheck": ["--leak-check", "full", "--track-stream-ordered-races", "all"]}
# What an H100 has.
TARGETS = {"compute_90": "sm_90", "compute_90a": "sm_90a"}
FOUND = re.compile(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+) |LEAK SUMMARY: (\d+) bytes leaked")


def command(words, seconds):
    """How a command ended, and what it printed."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "hangs", process.communicate()[0]
    return str(process.returncode), printed


def build(source, folder):
    target = re.match(r"// (compute_\w+)", source.read_text())
    target = target[1] if target else "compute_90"
    if target not in TARGETS:
        return None, "the device is older"
    words = ["nvcc", "-std=c++17", "-lineinfo", "-I", str(CHECK), "-gencode", f"arch={target},code={TARGETS[target]}", "-w", "-lcuda"]
    for variant, more in {"broken": [], "mended": ["-DIS_MENDED"]}.items():
        ended, printed = command([*words, *more, str(source), "-o", str(folder / variant)], 200)
        if ended != "0":
            return None, printed[-500:]
    return folder, ""


def main():
    out, deadline = pathlib.Path(sys.argv[1]), time.monotonic() + float((sys.argv + ["400"])[2])
    logs = pathlib.Path(f"{out}.logs")
    logs.mkdir(exist_ok=True)
    root = pathlib.Path(tempfile.mkdtemp(prefix="sanitizer-"))
    chosen = [CHECK / name for name in sys.argv[3:] or TOOLS]
    sources = [source for place in chosen for source in ([place] if place.suffix else sorted(place.glob("*.cu")))]
    builds = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source in sources:
            folder = root / source.parent.name / source.stem
            folder.mkdir(parents=True)
            builds[source] = pool.submit(build, source, folder)
    print(f"compiled, {deadline - time.monotonic():.0f} s left", flush=True)

    def look(source, folder, test, variant):
        program = [str(folder / variant), test]
        own = TOOLS[str(source.parent.relative_to(CHECK))]
        if time.monotonic() > deadline:
            return None
        plain, _ = command(program, 15)
        found = {}
        for tool in sorted(set(TOOLS.values()), key=lambda tool: tool != own):
            if tool != own and (variant == "mended" or any(number not in ("0", "hangs") for number in found.values())):
                break
            if time.monotonic() > deadline:
                found[tool] = "not run"
                continue
            ended, printed = command(["compute-sanitizer", "--tool", tool, *OPTIONS.get(tool, []), *program], 40)
            (logs / f"{source.stem}.{test}.{variant}.{tool}").write_text(f"{ended}\n{printed}")
            counts = [int(a or b) for a, b in FOUND.findall(printed)]
            found[tool] = str(sum(counts)) if counts else ended if ended == "hangs" else f"ended with {ended}"
        return plain, found

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        jobs = []
        for source in sources:
            folder, why = builds[source].result()
            if not folder:
                print(f"{source.name}: {why}", flush=True)
                continue
            for test in re.findall(r"^TEST\((\w+)\)", source.read_text(), re.MULTILINE):
                for variant in ("broken", "mended"):
                    jobs.append((source, test, variant, pool.submit(look, source, folder, test, variant)))
        with out.open("w") as file:
            for source, test, variant, job in jobs:
                if job.result():
                    plain, found = job.result()
                    name = source.relative_to(CHECK)
                    print(name, test, variant, plain, *(f"{tool} {number}" for tool, number in found.items()), sep="\t", file=file, flush=True)
    print(f"done, {deadline - time.monotonic():.0f} s left", flush=True)


if __name__ == "__main__":
    main()
