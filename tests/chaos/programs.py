"""What the VMs run: programs that check their own results, with arguments that keep them at work for
some tenths of a second, and now and then for seconds.
"""
import os
import pathlib
import re
import shlex
import shutil

from harness import expect, finish

GPU = os.environ.get("FAIRGV_TEST_GPU", "soft")
IS_SOFT = GPU.startswith("soft")
SIZES = {    # and how many iterations
    "vecadd": (100000, 40) if IS_SOFT else (1000003, 20000),
    "matmul": (64, 60) if IS_SOFT else (150, 20000),
    "histogram": (50000, 20) if IS_SOFT else (1000003, 8000),
    "scan": (100000, 20) if IS_SOFT else (1000003, 8000),
    "hotspot": (128, 60) if IS_SOFT else (512, 20000),
    "pathfinder": (2000, 20) if IS_SOFT else (100003, 8000),
}
HOLD = "tests/local/hold"
BLOCKS, LONG_MS = (2, 40) if IS_SOFT else (264, 200)
STEP = pathlib.Path(__file__).with_name("step.py")
LOADER = pathlib.Path(__file__).parents[1] / "local/load_image.py"
IMAGES, IMAGE_MIB = 2, 1    # that there are, each large enough for a VM to keep it
PYTHON = shlex.split(os.environ.get("FAIRGV_PYTHON", "python3"))
TRAINERS = 3         # at once: they are large, and slow to start
STEPS = (50, 150, 500)


class Programs:
    """For a round, drawn with @dice; prepare() comes before."""

    def __init__(self, dice):
        self.dice = dice
        self.steps_per_ms = None
        self.digests = {}       # of PyTorch's results, by the number of steps
        self.trainers = 0

    def prepare(self, daemon, vm):
        """What they are to compute, where only the GPU can say it, while nothing else runs."""
        out = finish(daemon.start(vm, HOLD, "calibrate", BLOCKS))[1]
        expect(re.match(r"steps_per_ms=\d+\n", out), f"calibration: {out}")
        self.steps_per_ms = int(out.split("=")[1])
        if not IS_SOFT:
            self.digests = self.train(daemon, vm)
            expect(self.train(daemon, vm) == self.digests, "training differs from run to run")

    @staticmethod
    def train(daemon, vm):
        status, out, err = finish(daemon.start(vm, *step(*STEPS)))
        expect(status == 0, f"training: status {status}: {out}{err}")
        return {int(count): digest for count, digest in re.findall(r"(\d+) steps: (\w+)", out)}

    def begin_round(self):
        self.trainers = 0

    def draw(self):
        kind = self.dice.randrange(10)
        if kind < 2:
            return self.draw_long()
        if 2 <= kind < 4 and IS_SOFT:
            return ("/usr/bin/env", "python3", LOADER, IMAGE_MIB, self.dice.randrange(IMAGES))
        if kind < 5 and self.digests and self.trainers < TRAINERS:
            self.trainers += 1
            steps = self.dice.choice(STEPS)
            return step(f"{steps}={self.digests[steps]}")
        return self.draw_workload()

    def draw_workload(self):
        program, (size, iterations) = self.dice.choice(sorted(SIZES.items()))
        return (f"workloads/{program}", "--size", size, "--iterations",
                self.dice.randrange(1, 5 * iterations), "--sync-every",
                self.dice.choice((1, 8, 1000)))

    def draw_long(self):
        """Kernels that are longer than a turn."""
        steps = self.steps_per_ms * self.dice.randrange(LONG_MS // 4, LONG_MS + 1)
        return HOLD, "chain", steps, self.dice.randrange(1, 5), BLOCKS


def step(*arguments):
    return (shutil.which(PYTHON[0]), *PYTHON[1:], STEP, *arguments)
