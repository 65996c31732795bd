"""What the programs beside this file have in common: a list of checks, each run on its own and counted."""

import sys
import traceback

CHECKS = []


class Skip(Exception):
    """A check cannot be made here; the reason."""


def check(function):
    """Puts a function on the list: it passes unless it raises."""
    CHECKS.append(function)
    return function


def main():
    """Runs all checks, or those whose names are arguments; a line for each, which `run` reads."""
    for function in CHECKS:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        try:
            function()
            print(f"passed {function.__name__}", flush=True)
        except Skip as reason:
            print(f"skipped {function.__name__}: {reason}", flush=True)
        except Exception:
            print(f"failed {function.__name__}", flush=True)
            traceback.print_exc(file=sys.stdout)
