"""What a program asks of FairGV, as the client library counts it, through a daemon of its own."""
import contextlib
import dataclasses
import pathlib
import tempfile

from common import words
from experiment import Backend, Job
from experiment import Way as Schedule
from pairs import VM, through

APART = frozenset("@APART@".split())     # operations that wait for no work on the GPU


@dataclasses.dataclass(frozen=True)
class Counts:
    requests: int
    round_trips: int
    waits: int           # of the round trips: those that the order of work matters to


@contextlib.contextmanager
def daemon(gpu):
    """The way through a daemon that runs meanwhile."""
    host = Backend(Schedule(), [Job(VM, 1, None)], gpu)
    try:
        yield through(host)
    finally:
        host.stop()


def read(path):
    """The sums over the processes that a program consisted of."""
    lines = path.read_text().splitlines() if path.exists() else []
    requests, round_trips = (sum(int(line.partition("=")[2]) for line in lines
                                 if line.startswith(f"{key}=")) for key in ("requests", "round_trips"))
    waits = 0
    for line in lines:
        if line.startswith("op."):
            (name, value), = words(line).items()
            waits += 0 if name[3:] in APART else int(value.split(",")[1])
    return Counts(requests, round_trips, waits)


def counted(way, program, *options, **environment):
    """The words of the last line that a program printed, and its counts."""
    with tempfile.TemporaryDirectory(prefix="fairgv-calls-") as folder:
        stats = pathlib.Path(folder, "stats")
        lines = way.run(program, *options, FAIRGV_STATS=str(stats), **environment)
        return lines[-1] if lines else {}, read(stats)
