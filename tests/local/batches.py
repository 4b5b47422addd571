"""Launches of a program that repeats itself go together, and the daemon counts which."""
from harness import backend, expect, finish, main


def counted(batching):
    with backend({"vm1": ""}, top=f"batching = {batching};") as daemon:
        status, out, err = finish(daemon.start("vm1", "tests/cuda/repeats"))
        expect(status == 0, f"status {status}: {out}{err}")
        return daemon.report()["vms"][0]


def go_together():
    figures = counted("true")
    expect(0 < figures["changed"] <= figures["repeated"] <= figures["batched"] <= figures["launches"],
           f"counted: {figures}")


def go_one_by_one():
    figures = counted("false")
    expect(figures["launches"] > 0, f"no launches: {figures}")
    expect(not (figures["changed"] or figures["repeated"] or figures["batched"]),
           f"together: {figures}")


main(go_together, go_one_by_one)
