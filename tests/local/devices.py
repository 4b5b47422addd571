"""Programs with several GPUs, on two and three soft ones: each computes, in its own order, with its
own quota; what goes between them; what is refused; and what the daemon says of each."""
from harness import backend, expect, expect_verified, finish, main

PROGRAM = "tests/local/devices"
BETWEEN = "tests/local/between"
EACH = "tests/local/each"
PEERS = "tests/local/peers"
MAPPED = "tests/local/mapped"
CAPTURES = "tests/local/captures"


def gpus(daemon, vm="vm1"):
    return [share for each in daemon.report()["vms"] if each["name"] == vm
            for share in each["gpus"]]


def run(daemon, what, count, vm="vm1", env=None):
    expect_verified(daemon.start(vm, PROGRAM, what, count, env=env), f"{what} on {count} GPUs")


def all_of_it():
    with backend({"vm1": "devices = [0, 1];", "vm2": "device = 1;"}, gpu="soft:2") as daemon:
        run(daemon, "all", 2)
        daemon.expect_at_rest()
        shares = gpus(daemon)
        expect([share["device"] for share in shares] == [0, 1], f"shares: {shares}")
        expect(all(share["gpu_ns"] > 0 and share["memory_bytes"] == 0 for share in shares),
               f"each has worked, and nothing is left: {shares}")
        run(daemon, "all of one", 1, vm="vm2")
        daemon.expect_at_rest()


def their_order_is_the_lists():
    with backend({"vm1": "devices = [2, 0];", "vm2": 'devices = "all";'}, gpu="soft:3") as daemon:
        run(daemon, "all", 2)
        expect([share["device"] for share in gpus(daemon)] == [2, 0], "the list's order")
        run(daemon, "all", 3, vm="vm2")
        expect([share["device"] for share in gpus(daemon, "vm2")] == [0, 1, 2], "all of them")
        daemon.expect_at_rest()


def quotas_are_kept_apart():
    with backend({"vm1": 'devices = [0, 1]; memory = "64M";'}, gpu="soft:2") as daemon:
        run(daemon, "quotas", 2)
        daemon.expect_at_rest()


def one_does_not_wait_for_the_other():
    with backend({"vm1": "devices = [0, 1];"}, gpu="soft:2") as daemon:
        run(daemon, "threads", 2)
        daemon.expect_at_rest()


def what_is_between_them():
    with backend({"vm1": "devices = [0, 1];", "vm2": 'devices = "all";'}, gpu="soft:3") as daemon:
        for what in "host", "freed", "events", "fault":
            expect_verified(daemon.start("vm1", BETWEEN, what), f"{what} on two GPUs")
            daemon.expect_at_rest()
        for what in "host", "events":
            expect_verified(daemon.start("vm2", BETWEEN, what), f"{what} on three GPUs")
        daemon.expect_at_rest()


def each_has_all_of_it():
    with backend({"vm1": "devices = [0, 1];"}, gpu="soft:2") as daemon:
        status, out, err = finish(daemon.start("vm1", EACH))
        expect(status == 0 and "verified=yes" in out, f"status {status}: {out}{err}")
        expect("device 0 says so" in out and "device 1 says so" in out, f"printed: {out}")
        daemon.expect_at_rest()


def they_reach_each_other():
    vms = {"vm1": "devices = [0, 1];", "vm2": "devices = [1, 0]; movable = true;"}
    with backend(vms, gpu="soft:2") as daemon:
        for what in "codes", "kernels", "copies", "fault", "disabled", "freed":
            expect_verified(daemon.start("vm1", PEERS, what), f"peers: {what}")
            daemon.expect_at_rest()
        expect_verified(daemon.start("vm2", PEERS, "movable"), "peers: movable")
        daemon.expect_at_rest()


def memory_is_mapped_for_each():
    vms = {"vm1": "devices = [0, 1];", "vm2": "devices = [1, 0]; movable = true;"}
    with backend(vms, gpu="soft:2") as daemon:
        for what in "each", "both", "alone", "unmapped", "fault", "taken":
            expect_verified(daemon.start("vm1", MAPPED, what), f"mapped: {what}")
            daemon.expect_at_rest()
        for what in "each", "movable":
            expect_verified(daemon.start("vm2", MAPPED, what), f"mapped, movable: {what}")
            daemon.expect_at_rest()


def each_has_graphs():
    with backend({"vm1": "devices = [0, 1];"}, gpu="soft:2") as daemon:
        for what in "both", "again", "by hand", "memory", "choice":
            expect_verified(daemon.start("vm1", CAPTURES, what), f"captures: {what}")
            daemon.expect_at_rest()


def refusals_are_counted():
    with backend({"vm1": "devices = [0, 1];"}, gpu="soft:2") as daemon:
        status, out, err = finish(daemon.start("vm1", CAPTURES, "refusals",
                                               env={"FAIRGV_STATS": "1"}))
        expect(status == 0 and "verified=yes" in out, f"status {status}: {out}{err}")
        for what in ("captures of several devices", "graphs of several devices",
                     "launches of graphs in a stream of another device"):
            expect(what in err, f"counted: {what}: {err}")
        daemon.expect_at_rest()


main(all_of_it, their_order_is_the_lists, quotas_are_kept_apart, one_does_not_wait_for_the_other,
     what_is_between_them, each_has_all_of_it, they_reach_each_other,
     memory_is_mapped_for_each, each_has_graphs, refusals_are_counted)
