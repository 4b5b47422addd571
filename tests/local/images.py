"""An image that two programs of a VM load travels once; those of another VM never see it."""
import os
import pathlib
import re
import signal

from harness import backend, expect, finish, main, wait_until

LOADER = pathlib.Path(__file__).with_name("load_image.py")


def loaded(daemon, vm, mib, seed):
    """How often such a program sent its image, and how often it had the host load a kept one."""
    status, out, err = finish(daemon.start(vm, "/usr/bin/env", "python3", LOADER, mib, seed,
                                           env={"FAIRGV_STATS": "1"}))
    expect(status == 0 and "loaded" in out, f"status {status}: {out}{err}")
    return [sum(map(int, re.findall(rf" {name} +(\d+)", err)))
            for name in ("module_load", "module_load_known")]


SENT, KEPT = [1, 0], [0, 1]


def once_for_each_vm():
    with backend({"vm1": "", "vm2": "", "vm3": "images = 0;"}) as daemon:
        expect(not daemon.keepers(), "images are kept before there are any")
        expect(loaded(daemon, "vm1", 3, 1) == SENT, "the first one is sent")
        wait_for_digest(daemon, "vm1", 3, 1)
        expect(loaded(daemon, "vm1", 3, 1) == KEPT, "the next one is not")
        expect(loaded(daemon, "vm1", 3, 2) == SENT, "another image is")
        expect(loaded(daemon, "vm2", 3, 1) == SENT, "what a VM has kept is not another's")
        for _ in range(2):
            expect(loaded(daemon, "vm3", 3, 1) == SENT, "a VM that keeps none")
        expect(len(daemon.keepers()) == 2, f"keepers: {daemon.keepers()}")
        daemon.expect_at_rest()


def wait_for_digest(daemon, vm, mib, seed):
    """The keeper makes it in its own time."""
    wait_until(lambda: loaded(daemon, vm, mib, seed) == KEPT, "an image that is kept")


def small_ones_travel():
    with backend({"vm1": ""}) as daemon:
        for _ in range(2):
            expect(loaded(daemon, "vm1", 0, 1) == SENT, "a small image")
        daemon.expect_at_rest()


def a_keeper_that_is_killed():
    with backend({"vm1": ""}) as daemon:
        loaded(daemon, "vm1", 1, 1)
        wait_for_digest(daemon, "vm1", 1, 1)
        for pid in daemon.keepers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "its keeper, was killed by signal 9" in daemon.log(),
                   "the keeper's end")
        expect(loaded(daemon, "vm1", 1, 1) == SENT, "nothing is kept any more")
        wait_for_digest(daemon, "vm1", 1, 1)
        daemon.expect_at_rest()


main(once_for_each_vm, small_ones_travel, a_keeper_that_is_killed)
