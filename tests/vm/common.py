"""What the VM tests share with each other."""
import os
import pathlib
import shutil
import signal
import sys

BUILD = pathlib.Path(os.environ.get("abs_top_builddir", ".")).resolve()
TOP = pathlib.Path(__file__).resolve().parents[2]

sys.path.append(str(TOP / "tests/local"))
from harness import PATIENCE_S, Failure, expect, wait_until


class Skip(Exception):
    """The reason in one line: something of this machine's is missing."""


def require(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skip(f"{command} is not installed")


def expect_equal(got, wanted, what):
    expect(got == wanted, f"{what}: {got!r}, not {wanted!r}")


def cases_of(cases):
    """Those that the command line names; all, where it names none."""
    return [case for case in cases if case.__name__ in sys.argv[1:] or len(sys.argv) == 1]


def main(run):
    """Ends with 77 where a test cannot be run here, with 1 where it failed. A test that is told
    to end leaves no guest behind either.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        run()
    except Skip as skip:
        print(f"skipped: {skip}")
        sys.exit(77)
    except Failure as failure:
        print(f"failed: {failure}")
        sys.exit(1)
