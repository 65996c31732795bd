#!/usr/bin/env python3
"""Random kernels of tests/tiers on a GPU and on our interpreter: `kernels.py TIERS LIBRARY OUT SECONDS [FIRST [LEVEL [EXACT]]]`.

TIERS is the program that `cargo test --test tiers --no-run` builds, beside our libcuda.so, LIBRARY the GPU's driver. Kernels from the
number FIRST on run for so many SECONDS, under the driver's level of optimisation (0 to 4; by default 0, where its compiler changes
least) and with TIERS_EXACT (by default `approximate`: tests/tiers/child.rs). OUT gets a line for each: its number, our answer, the
GPU's. `TIERS keep OUT FROM..TO FILE` makes goldens of such a table."""

import concurrent.futures
import os
import select
import subprocess
import sys
import threading
import time

# Seconds that a kernel may take, with its compilation.
PATIENCE = 30


class Peer:
    """A process that runs kernels, with more variables; another one after each that did not end well."""

    def __init__(self, program, **more):
        self.program, self.more, self.process = program, more, None

    def send(self, line):
        if not self.process:
            self.process = subprocess.Popen(
                [self.program, "child"], env=os.environ | self.more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        try:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline().decode().strip() or "died" if ready else "did not end"
        if not line.startswith("ok"):
            self.stop()
        return line

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None


def main():
    tiers, library, out, seconds = sys.argv[1:5]
    first, level, exact = (sys.argv[5:] + ["0", "0", "approximate"][len(sys.argv) - 5 :])[:3]
    until, lock, results = time.monotonic() + float(seconds), threading.Lock(), {}
    numbers = iter(range(int(first), sys.maxsize))

    def work():
        ours = Peer(tiers, TIERS_EXACT=exact, MARGAY_JIT="off", MARGAY_THREADS="1")
        gpu = Peer(tiers, TIERS_EXACT=exact, TIERS_LIBRARY=library, TIERS_LEVEL=level)
        while time.monotonic() < until:
            with lock:
                number = next(numbers)
            for peer in (ours, gpu):
                peer.send(f"seed {number}")
            results[number] = (ours.answer(), gpu.answer())
        ours.stop()
        gpu.stop()

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for job in [pool.submit(work) for _ in range(os.cpu_count())]:
            job.result()
    with open(out, "w") as file:
        for number, answers in sorted(results.items()):
            print(number, *answers, sep="\t", file=file)
    different = [number for number, (ours, gpu) in sorted(results.items()) if ours != gpu]
    print(f"{len(results)} kernels, of which {len(different)} differ:", *different)


if __name__ == "__main__":
    main()
