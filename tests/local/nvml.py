"""What NVML tells the programs of two VMs: quotas, processes and use, each VM its own; and what it
says where there is no VM."""
import os
import subprocess

from harness import RUN, BUILD, PATIENCE_S, backend, expect, finish, kill, main, wait_until

DESCRIBE = "tests/nvml/describe"
MATMUL = "workloads/matmul"
FOREVER = ("--size", 64, "--iterations", 10000000)
GIB = 1 << 30
VMS = {"vm1": 'memory = "8G";', "vm2": 'memory = "2G"; weight = 3;'}
MEMORY = 'soft_memory = "16G";'


def describe_each(daemon, vm, *arguments, env=None):
    """What NVML says in @vm of each GPU: dictionaries, with lists of processes and samples."""
    status, out, err = finish(daemon.start(vm, DESCRIBE, *arguments, env=env))
    expect(status == 0, f"describe in {vm}: status {status}: {out}{err}")
    each = []
    for line in out.splitlines():
        key, _, value = line.partition("=")
        if not each or key == "device":
            said = {"process": {}, "sample": {}, "err": err}
            each.append(said)
        if key in ("process", "sample"):
            pid, figure, *_ = value.split()
            said[key][int(pid)] = int(figure)
        else:
            said[key] = int(value) if key in ("total", "used", "busy", "device") else value
    return each


def describe(daemon, vm, *arguments, env=None):
    """The same in a VM with one GPU."""
    [said] = describe_each(daemon, vm, *arguments, env=env)
    return said


def quota_and_nothing_else():
    with backend(VMS, top=MEMORY) as daemon:
        for vm, total in (("vm1", 8 * GIB), ("vm2", 2 * GIB)):
            said = describe(daemon, vm)
            expect((said["total"], said["used"], said["busy"]) == (total, 0, 0), said)
            expect(not said["process"] and not said["sample"], said)
        expect(not daemon.children(), "a look started a process")
        daemon.expect_at_rest()


def as_cuda_says():
    """Also after a fork, in a child that uses CUDA."""
    with backend(VMS, top=MEMORY) as daemon:
        describe(daemon, "vm1", "--cuda")
        daemon.expect_at_rest()


def own_processes_and_use():
    with backend(VMS, top=MEMORY) as daemon:
        programs = {vm: daemon.start(vm, MATMUL, *FOREVER) for vm in VMS}

        def shares():
            """Weights 1:3, so vm2 uses more of the GPU, but not all of it."""
            used = [describe(daemon, vm)["busy"] for vm in VMS]
            return 0 < used[0] < used[1] < 100

        wait_until(shares, "use of the GPU by both VMs, of vm2 more")
        said = {vm: describe(daemon, vm) for vm in VMS}
        for vm, program in programs.items():
            expect(list(said[vm]["process"]) == [program.pid], f"{vm}: {said}, {program.pid}")
            expect(list(said[vm]["sample"]) == [program.pid], f"{vm}: {said}")
            expect(0 < said[vm]["used"] == said[vm]["process"][program.pid], f"{vm}: {said}")
        for program in programs.values():
            kill(program)
        wait_until(lambda: not describe(daemon, "vm1")["process"], "the end of its process")
        daemon.expect_at_rest()


def each_gpu():
    """Each with its own quota, memory and use; they are CUDA's devices in CUDA's order."""
    vms = {"vm1": 'devices = [1, 0]; memory = "2G";', "vm2": 'devices = "all"; place = "least";'}
    with backend(vms, gpu="soft:2", top=MEMORY) as daemon:
        said = describe_each(daemon, "vm1", "--cuda")
        expect([each["device"] for each in said] == [0, 1], said)
        expect(said[0]["uuid"].endswith("01") and said[1]["uuid"].endswith("00"), said)
        expect([each["total"] for each in said] == [2 * GIB] * 2, said)
        expect([each["peers"] for each in said] == ["1", "0"], said)
        program = daemon.start("vm1", MATMUL, *FOREVER)

        def first_is_used():
            first, second = describe_each(daemon, "vm1")
            expect(second["busy"] == 0, f"{second}")
            return first["busy"] > 0 and first["process"].get(program.pid, 0) > 0

        wait_until(first_is_used, "use of the first GPU")
        first, second = describe_each(daemon, "vm1")
        expect(second["process"] == {program.pid: 0} and second["sample"] == {program.pid: 0},
               f"the second GPU is not used: {second}")
        expect(first["used"] == first["process"][program.pid], f"{first}")
        kill(program)
        expect(len(describe_each(daemon, "vm2")) == 1, "a program that is placed sees one GPU")
        daemon.expect_at_rest()


def what_is_missing_is_named():
    with backend(VMS, top=MEMORY) as daemon:
        err = describe(daemon, "vm1", env={"FAIRGV_STATS": "1"})["err"]
        expect("not supported: nvmlDeviceGetSerial, 2 calls" in err, err)
        daemon.expect_at_rest()


def without_a_vm():
    """As on a machine without a driver (9), and as a user who may not (4)."""
    ask = ("import ctypes, sys; nvml = ctypes.CDLL('libnvidia-ml.so.1'); "
           "sys.exit(nvml.nvmlInit_v2())")
    with backend(VMS, top=MEMORY) as daemon:
        for variables, want in (({"FAIRGV_SOCKET": "/nowhere"}, 9), ({"FAIRGV_VM": "nosuch"}, 4),
                                ({}, 0)):
            settings = "".join(f"os.environ[{key!r}] = {value!r}; "
                               for key, value in variables.items())
            result = subprocess.run(
                [RUN, "--socket", daemon.socket, "--", "python3", "-c",
                 f"import os; {settings}{ask}"], timeout=PATIENCE_S, check=False)
            expect(result.returncode == want, f"{variables}: {result.returncode}")
        daemon.expect_at_rest()


expect(os.access(BUILD / DESCRIBE, os.X_OK), "build tests/nvml/describe first")
main(quota_and_nothing_else, as_cuda_says, own_processes_and_use, each_gpu,
     what_is_missing_is_named, without_a_vm)
