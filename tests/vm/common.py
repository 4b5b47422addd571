"""What the VM tests share with each other."""
import os
import pathlib
import shutil
import signal
import sys
import time

BUILD = pathlib.Path(os.environ.get("abs_top_builddir", ".")).resolve()
TOP = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 120     # what only a hang exceeds


class Failure(Exception):
    pass


class Skip(Exception):
    """The reason in one line: something of this machine's is missing."""


def require(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skip(f"{command} is not installed")


def expect(condition, what):
    if not condition:
        raise Failure(what)


def expect_equal(got, wanted, what):
    expect(got == wanted, f"{what}: {got!r}, not {wanted!r}")


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        expect(time.monotonic() < deadline, f"waited in vain for: {what}")
        time.sleep(0.01)


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
