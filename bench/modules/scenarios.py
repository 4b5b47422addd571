"""The experiments that fairness knows by a letter, as one table.

Kernel times are in microseconds of a real GPU: 28 and 509 are the pair with which a GPU's
own time slicing was measured, the others are those of the FairGV paper's Table 3.
"""
import dataclasses

from experiment import Way, Workload

SOFT_FACTOR = 10         # by which kernels are longer where the GPU is a processor
SMALL = "matmul:kernel-us=28,sync-every=8"
LARGE = "matmul:kernel-us=509,sync-every=8"
MATMUL = "matmul:kernel-us=207,sync-every=8"
HOTSPOT = "hotspot:kernel-us=133,sync-every=16"
ASYNCHRONOUS = "blackscholes:kernel-us=377,sync-every=8"
INTERACTIVE = "srad:kernel-us=46"
# Graphs of a millisecond, and of 16, which is longer than a slice.
GRAPHS = "matmul:kernel-us=28,sync-every=32,graphs"
LONG_GRAPHS = "matmul:kernel-us=509,sync-every=32,graphs"
SLEEPER = "matmul:kernel-us=28,sync-every=8,burst-ms=5,sleep-ms=20"

COPY_IN = "copyin:kernel-us=600"
COPY_OUT = "copyout:kernel-us=600"

FAIR = (Way("fair"),)
ENGINES = (Way("native"), Way("none"), Way("fair", engines=False), Way("fair"),
           Way("fair", "mps"))
RIVALS = (Way("native"), Way("none"), Way("fair", slice_ms=6), Way("fair", slice_ms=30),
          Way("fair", "mps", 1))
PLAIN = (Way("native"), Way("none"), Way("fair"))


@dataclasses.dataclass(frozen=True)
class Scenario:
    title: str
    weights: str
    workloads: tuple         # one experiment each: its workloads, one for each VM or one for all
    ways: tuple = FAIR
    kind: str = "share"      # share: all VMs at once; alone: one, way by way; accounts: one,
                             # what the daemon accounts against the program's events


SCENARIOS = {
    "a": Scenario("small against large kernels", "1:1", ((SMALL, LARGE),), RIVALS),
    "b": Scenario("three VMs, 1:2:3", "1:2:3", ((INTERACTIVE,), (ASYNCHRONOUS,))),
    "c": Scenario("six VMs, 1:2:2:3:3:4", "1:2:2:3:3:4", ((INTERACTIVE,), (ASYNCHRONOUS,))),
    "d": Scenario("eight equal VMs", "1:1:1:1:1:1:1:1", ((HOTSPOT,),)),
    "e": Scenario("30 to 70", "30:70", ((MATMUL,),)),
    "f": Scenario("one that sleeps between bursts", "1:1", ((SLEEPER, SMALL),)),
    "g": Scenario("what scheduling costs a program alone", "1",
                  ((SMALL,), (INTERACTIVE,)), PLAIN, "alone"),
    "h": Scenario("accounted time against events", "1",
                  ((SMALL,), (LARGE,), (HOTSPOT,), (ASYNCHRONOUS,)), kind="accounts"),
    "i": Scenario("graphs against launches, and against graphs longer than a slice", "1:1",
                  ((GRAPHS, LARGE), (GRAPHS, LONG_GRAPHS))),
    "k": Scenario("one copies in, one copies out, one computes", "1:1:1",
                  ((COPY_IN, COPY_OUT, SMALL),), ENGINES),
    "k2": Scenario("two that copy in one direction, 1:3", "1:3", ((COPY_IN,), (COPY_OUT,))),
}


def workload_of(text, soft):
    """A workload of the table, for the GPU that there is."""
    workload = Workload.parse(text)
    if not soft:
        return workload
    return Workload(workload.program, tuple(
        (option[0], f"{float(option[1]) * SOFT_FACTOR:g}") if option[0] == "kernel-us" else option
        for option in workload.options))
