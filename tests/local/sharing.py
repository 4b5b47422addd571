"""Several VMs and several programs of one VM at once; quotas; who may use what."""
import os

from harness import backend, expect, expect_verified, finish, main

MATMUL = "workloads/matmul"
VECADD = "workloads/vecadd"


def two_vms_two_programs():
    with backend({"vm1": "weight = 1;", "vm2": "weight = 2;"}) as daemon:
        programs = [daemon.start(vm, program) for vm in ("vm1", "vm2")
                    for program in (MATMUL, VECADD)]
        for program in programs:
            expect_verified(program, "one of four programs at once")
        daemon.expect_at_rest()


def quota():
    """A quota too small is the right error for its VM and nothing to the other."""
    with backend({"small": 'memory = "1M";', "large": 'memory = "1G";'}) as daemon:
        small = daemon.start("small", VECADD, "--size", 1 << 20)
        large = daemon.start("large", VECADD, "--size", 1 << 20)
        status, out, err = finish(small)
        expect(status == 1 and "out of memory" in err, f"status {status}: {out}{err}")
        expect_verified(large, "the VM with room")
        daemon.expect_at_rest()


def sessions_limit():
    with backend({"vm1": "sessions = 1;"}) as daemon:
        first = daemon.start("vm1", MATMUL, "--iterations", 1000000)
        while not daemon.children():
            pass
        status, _, err = finish(daemon.start("vm1", VECADD))
        expect(status == 1 and "sessions" in err, f"status {status}: {err}")
        os.killpg(first.pid, 9)
        finish(first)
        daemon.expect_at_rest()


def unknown_vm():
    with backend({"vm1": ""}) as daemon:
        status, _, err = finish(daemon.start("nosuch", VECADD))
        expect(status == 1 and "nosuch" in err, f"status {status}: {err}")
        daemon.expect_at_rest()


main(two_vms_two_programs, quota, sessions_limit, unknown_vm)
