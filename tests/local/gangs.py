"""Gangs: kernels on two GPUs that wait for each other, in VMs that share both, on two soft GPUs.
Nothing hangs, results are right, and charged time is by weight."""
from harness import backend, expect, expect_verified, finish, main, wait_until

PROGRAM = "tests/local/gangs"
GANG = "devices = [0, 1]; gang = true; "


def vm_of(daemon, name):
    return next(vm for vm in daemon.report()["vms"] if vm["name"] == name)


def gpu_ns(daemon, name):
    return [share["gpu_ns"] for share in vm_of(daemon, name)["gpus"]]


def started(daemon, names):
    """Programs that work until their input ends."""
    programs = {name: daemon.start(name, PROGRAM, "until", stdin=-1) for name in names}
    for program in programs.values():
        expect(program.stdout.readline() == "works\n", "it works")
    return programs


def ended(programs):
    for program in programs.values():
        program.stdin.close()
        program.stdin = None
    for name, program in programs.items():
        expect_verified(program, name)


def used_together(daemon, names, until_ns):
    """What each VM uses of each GPU until the first has used so much of both."""
    before = {name: gpu_ns(daemon, name) for name in names}

    def since(name):
        return [now - then for now, then in zip(gpu_ns(daemon, name), before[name])]

    wait_until(lambda: min(since(names[0])) > until_ns, f"{names[0]} has used both GPUs")
    return {name: since(name) for name in names}


def alone():
    with backend({"vm1": GANG}, gpu="soft:2") as daemon:
        expect_verified(daemon.start("vm1", PROGRAM, "steps", 200), "alone")
        expect_verified(daemon.start("vm1", PROGRAM, "late"), "late, alone")
        daemon.expect_at_rest()


def two_by_weight():
    vms = {"vm1": GANG, "vm2": GANG + "weight = 2;"}
    with backend(vms, gpu="soft:2") as daemon:
        programs = started(daemon, vms)
        used = used_together(daemon, ["vm1", "vm2"], 600_000_000)
        for gpu in range(2):
            ratio = used["vm2"][gpu] / used["vm1"][gpu]
            expect(1.4 < ratio < 2.8, f"GPU {gpu} by weight, 1:2: {used}")
        ended(programs)
        for name in vms:
            vm = vm_of(daemon, name)
            expect(vm["gang"] and vm["gang_turns"] >= vm["gang_turns_together"] > 0, f"{vm}")
        daemon.expect_at_rest()


def late_beside_others():
    """Its kernels wait for peers that are not launched yet; the other VM goes on, too."""
    vms = {"vm1": GANG, "vm2": GANG}
    with backend(vms, gpu="soft:2") as daemon:
        programs = started(daemon, ["vm2"])
        for _ in range(3):
            expect_verified(daemon.start("vm1", PROGRAM, "late"), "late, beside another")
            expect_verified(daemon.start("vm1", PROGRAM, "steps", 100), "beside another")
        ended(programs)
        daemon.expect_at_rest()


def beside_one_that_is_no_gang():
    vms = {"vm1": GANG, "vm2": "device = 0;"}
    with backend(vms, gpu="soft:2") as daemon:
        programs = started(daemon, ["vm1"])
        expect_verified(daemon.start("vm2", "workloads/matmul", "--seconds", "0.2"), "vm2")
        ended(programs)
        expect(min(gpu_ns(daemon, "vm1")) > 0 and gpu_ns(daemon, "vm2")[0] > 0, "all have worked")
        daemon.expect_at_rest()


def one_that_dies():
    vms = {"vm1": GANG, "vm2": GANG}
    with backend(vms, gpu="soft:2") as daemon:
        programs = started(daemon, vms)
        programs.pop("vm1").kill()
        expect_verified(daemon.start("vm1", PROGRAM, "steps", 50), "after one that died")
        ended(programs)
        daemon.expect_at_rest()


main(alone, two_by_weight, late_beside_others, beside_one_that_is_no_gang, one_that_dies)
