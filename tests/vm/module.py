"""The kernel module against a stand-in for the host (fake_host.py): two guests, started one
after another on the same region.
"""
import contextlib
import pathlib
import re
import signal
import tempfile

import fake_host
from common import BUILD, TOP, expect, expect_equal, main, wait_until
from fake_host import FakeHost
from guest import Guest, ivshmem, require_qemu
from kernel import Kernel

MODULE = "/lib/fairgv.ko"
DRIVER = "/sys/bus/pci/drivers/fairgv"
WIRE_VERSION = int(re.search(r"^#define FGV_WIRE_VERSION (\d+)",
                             (TOP / "api/wire.h").read_text(), re.MULTILINE).group(1))
WIRE_HASH = int(re.search(r"^#define FGV_API_HASH (0x[0-9a-f]{16})ull$",
                          (BUILD / "api/gpu_wire.h").read_text(), re.MULTILINE).group(1), 16)


class Setting:
    """A guest with the module loaded, its host, and what most cases do with them."""

    def __init__(self, guest, host):
        self.guest, self.host = guest, host

    def hold(self, name, word="hold"):
        job = self.guest.start(f"guest_test {word} {name}")
        job.wait_for("window=")
        return job

    def open(self, version_offset=0, timeout_ms=60000):
        return self.guest.expect(f"guest_test open {version_offset} {timeout_ms}").strip()

    def expect_log(self, *lines):
        """All that the module has said of its device."""
        said = re.findall(r"^\[.*?\] fairgv [\w:.]+: (.*)$", self.guest.read_kernel_log(), re.MULTILINE)
        expect_equal(said, list(lines), "the kernel's log")

    def expect_at_rest(self):
        wait_until(self.host.is_at_rest, "all windows free")

    def load(self):
        self.guest.expect(f"insmod {MODULE} user_windows=63")

    def unload(self):
        self.guest.expect("rmmod fairgv")


def echo(setting):
    """Messages and wake-ups in both directions, and no more interrupts than messages."""
    out = setting.guest.expect("guest_test echo 300")
    counts = dict(pair.split("=") for pair in out.split())
    expect_equal(counts["doorbells"], "300", "doorbells")
    expect(0 < int(counts["interrupts"]) <= 300, f"interrupts: {counts['interrupts']}")
    expect_equal(counts["writeback"], "1", "write-back")
    setting.expect_at_rest()
    expect_equal(setting.host.events, [(0, "open", "echo"), (0, "close", "echo")], "requests")


def mapping_is_write_back(setting):
    table = setting.guest.expect("cat /sys/kernel/debug/x86/pat_memtype_list")
    size = len(setting.host.memory)
    for start, end, kind in re.findall(r"\[mem 0x(\w+)-0x(\w+)\] (\S+)", table):
        if int(end, 16) - int(start, 16) == size:
            expect_equal(kind, "write-back", "the region's type")
            return
    expect(False, f"the region is not in {table}")


def misuse(setting):
    expect_equal(setting.guest.expect("guest_test misuse").strip(), "all as it should be", "misuse")
    setting.expect_at_rest()


def killed_program_is_closed(setting):
    job = setting.hold("victim")
    expect_equal(job.kill(), 128 + signal.SIGKILL, "status")
    setting.expect_at_rest()
    expect_equal(setting.host.counts("close"), 1, "closes")


def child_keeps_the_window(setting):
    job = setting.guest.start("guest_test fork 1000")
    job.wait_for("child")
    expect_equal(setting.host.counts("close"), 0, "closes")
    setting.guest.expect("kill -9 $(ps | grep 'guest_test fork' | grep -v grep | "
                         "while read pid rest; do echo $pid; done)")
    setting.expect_at_rest()


def each_its_own_window(setting):
    jobs = [setting.hold(f"p{i}") for i in range(setting.host.windows)]
    windows = {job.output() for job in jobs}
    expect_equal(len(windows), setting.host.windows, "different windows")
    for i in range(setting.host.windows):
        at = setting.host.window(i)
        setting.host.memory[at:at + 4] = bytes([i] * 4)
    expect_equal(setting.open(), "open=EBUSY", "one too many")
    jobs[1].kill()
    wait_until(lambda: setting.host.counts("close") == 1, "the close")
    expect(setting.open().startswith("status=0"), "a window is free again")
    for job in jobs[::2]:
        job.kill()
    setting.expect_at_rest()


def one_user_leaves_a_window(setting):
    """A user may have all windows but one, and root all of them; or as many as the parameter says."""
    parameter = "/sys/module/fairgv/parameters/user_windows"
    setting.guest.expect(f"echo 0 > {parameter}")
    jobs = [setting.hold(f"p{i}") for i in range(setting.host.windows - 1)]
    expect_equal(setting.open(), "open=EDQUOT", "a window too many for one user")
    expect(setting.guest.expect("GUEST_UID=1 guest_test open 0 60000").startswith("status=0"),
           "another user's window")
    expect(setting.guest.expect("GUEST_UID=0 guest_test open 0 60000").startswith("status=0"),
           "root's window")
    for job in jobs:
        job.kill()
    setting.expect_at_rest()
    setting.guest.expect(f"echo 1 > {parameter}")
    job = setting.hold("p")
    expect_equal(setting.open(), "open=EDQUOT", "a second window")
    job.kill()
    setting.expect_at_rest()
    setting.guest.expect(f"echo 63 > {parameter}")


def waits_for_a_window_that_is_being_freed(setting):
    host = setting.host
    host.answers_close = False
    jobs = [setting.hold(f"p{i}") for i in range(host.windows)]
    jobs[0].kill()
    expect_equal(setting.open(timeout_ms=50), "open=ETIMEDOUT", "nothing came free")
    late = setting.guest.start("guest_test open 0 60000")
    host.answers_close = True
    host.look_at_slot(0)
    expect_equal(late.wait(), 0, "status")
    expect(late.output().startswith("status=0"), f"the window that came free: {late.output()}")
    for job in jobs[1:]:
        job.kill()
    setting.expect_at_rest()


def host_refuses(setting):
    setting.host.answer = fake_host.REFUSED
    expect_equal(setting.open(), f"status=46 version={WIRE_VERSION} len=0 text=the VM is full",
                 "the refusal")
    setting.expect_at_rest()
    setting.host.answer = fake_host.GONE
    expect_equal(setting.open(), "open=EPIPE", "no session")
    setting.expect_at_rest()


def other_wire_version(setting):
    expect_equal(setting.open(version_offset=1),
                 f"status=803 version={WIRE_VERSION} len=0 text=the versions differ", "the refusal")
    setting.expect_at_rest()


def other_build(setting):
    setting.host.wire_hash ^= 1
    expect_equal(setting.open(),
                 f"status=803 version={WIRE_VERSION} len=0 text=the builds differ", "the refusal")
    setting.host.wire_hash ^= 1
    setting.expect_at_rest()


def host_is_silent(setting):
    """No answer, then a close that overtakes the open; and a program killed while it waits."""
    setting.host.answer = None
    expect_equal(setting.open(timeout_ms=100), "open=ETIMEDOUT", "no welcome")
    wait_until(lambda: setting.host.counts("close") == 1, "the close")
    opens = setting.host.counts("open")     # a slow host sees only what has overtaken it
    job = setting.guest.start("guest_test open 0 600000")
    wait_until(lambda: setting.host.counts("open") > opens, "the open")
    job.kill()
    setting.expect_at_rest()


def host_ends_a_session(setting):
    job, other = setting.hold("loser"), setting.hold("other")
    setting.host.end_session(0)
    expect_equal(job.wait(), 0, "status")
    expect_equal(job.output().splitlines()[-1],
                 "poll=HUP bell=rung write=EPIPE lane=EPIPE open=EBUSY counts=fine first=16843009",
                 "what is left")
    expect(not other.ended(), "the other goes on")
    other.kill()
    setting.expect_at_rest()


def unload_and_load(setting):
    job = setting.hold("user")
    status, output = setting.guest.run("rmmod fairgv")
    expect(status != 0, f"unloaded under a program: {output}")
    expect(not job.ended(), "the program goes on")
    job.kill()
    setting.expect_at_rest()
    setting.unload()
    expect(setting.guest.run("test -e /dev/fairgv")[0] != 0, "/dev/fairgv is gone")
    setting.load()
    setting.guest.expect("guest_test echo 10")
    setting.expect_at_rest()


def unbind_under_programs(setting):
    guest = setting.guest
    job, scribbler = setting.hold("user"), setting.hold("scribbler", "scribble")
    setting.host.answer = None
    waiting = guest.start("guest_test open 0 600000")
    wait_until(lambda: setting.host.counts("open") == 3, "the open")
    device = guest.expect(f"basename {DRIVER}/0000*").strip()
    guest.expect(f"echo {device} >{DRIVER}/unbind")
    expect_equal(job.wait(), 0, "status")
    expect_equal(job.output().splitlines()[-1],
                 "poll=HUP bell=rung write=ENODEV lane=ENODEV open=ENODEV counts=ENODEV "
                 "first=16843009", "what is left")
    expect_equal(waiting.wait(), 0, "status")
    expect_equal(waiting.output().strip(), "open=ENODEV", "the one that waited")
    expect(not scribbler.ended(), "one that only touches its memory goes on")
    setting.expect_at_rest()
    setting.host.answer = fake_host.READY
    windows = [bytes(setting.host.memory[at:at + 4096])
               for at in map(setting.host.window, range(setting.host.windows))]
    guest.expect("sleep 0.2")
    expect(all(bytes(setting.host.memory[at:at + 4096]) == before for at, before in
               zip(map(setting.host.window, range(setting.host.windows)), windows)),
           "the region is written to after its device was removed")
    guest.expect(f"echo {device} >{DRIVER}/bind")
    guest.expect("guest_test echo 10")
    scribbler.kill()
    setting.expect_at_rest()


def device_is_unplugged(setting):
    guest = setting.guest
    job = setting.hold("user")
    device = guest.expect(f"basename {DRIVER}/0000*").strip()
    guest.expect(f"echo 1 >/sys/bus/pci/devices/{device}/remove")
    expect_equal(job.wait(), 0, "status")
    guest.expect("echo 1 >/sys/bus/pci/rescan")
    guest.expect("guest_test echo 10")
    setting.expect_at_rest()


def churn(setting):
    jobs = [setting.guest.start("guest_test churn 12") for _ in range(5)]
    for job in jobs:
        expect_equal(job.wait(), 0, f"status with: {job.output()}")
    expect_equal(setting.host.counts("open"), 60, "opens")
    setting.expect_at_rest()


def cuda_program_finds_the_device(setting):
    """As far as requests go, which the host answers with CUDA_ERROR_DEVICE_UNAVAILABLE."""
    setting.host.serve_wire = True
    status, output = setting.guest.run("vecadd")
    expect(status != 0 and "unavailable" in output, f"status {status}: {output}")
    expect(setting.host.wire_requests, "a request came by the window")
    setting.expect_at_rest()
    expect_equal(setting.host.events, [(0, "open", "vecadd"), (0, "close", "vecadd")], "requests")


def cuda_program_loses_its_session(setting):
    setting.host.serve_wire, setting.host.answers_wire = True, False
    job = setting.guest.start("vecadd")
    wait_until(lambda: setting.host.wire_requests, "a request")
    setting.host.end_session(0)
    expect(job.wait() != 0, "it fails")
    expect("the session is lost" in job.output(), f"it says why: {job.output()}")
    setting.expect_at_rest()


def cuda_program_is_refused(setting):
    setting.host.answer = fake_host.REFUSED
    output = setting.guest.run("vecadd")[1]
    expect("refused: the VM is full" in output, f"it says why: {output}")
    output = setting.guest.run("FAIRGV_DEVICE=/dev/null vecadd")[1]
    expect("/dev/null is not a FairGV device" in output, f"it says why: {output}")
    output = setting.guest.run("FAIRGV_SOCKET=/tmp/none vecadd")[1]
    expect("no backend at /tmp/none" in output, f"it says why: {output}")
    setting.unload()
    output = setting.guest.run("vecadd")[1]
    expect("/fairgv/backend.sock" in output, f"it looks for a daemon: {output}")
    setting.load()


HEADS = (
    ({"version": 1}, "of another version"),
    ({"windows": 0}, "without a sensible number of windows"),
    ({"windows": 64}, "without a sensible number of windows"),
    ({"windows": 10**9}, "without a sensible number of windows"),
    ({"window_len": 0}, "whose windows are no whole pages"),
    ({"window_len": (1 << 20) + 1}, "whose windows are no whole pages"),
    ({"windows_off": (1 << 20) - 512}, "whose windows are no whole pages"),
    ({"windows_off": 0}, "whose windows and slots overlap"),
    ({"windows_off": 4096}, "whose windows and slots overlap"),
    ({"windows_off": 1 << 40}, "whose windows do not fit into its BAR"),
    ({"windows_off": (1 << 64) - 4096}, "whose windows do not fit into its BAR"),
    ({"windows_off": (1 << 20) + 4096}, "whose windows do not fit into its BAR"),
    ({"window_len": 1 << 63}, "whose windows do not fit into its BAR"),
    ({"window_len": (1 << 64) - 4096}, "whose windows do not fit into its BAR"),
    ({"window_len": 1 << 62, "windows": 4}, "whose windows do not fit into its BAR"),
)


def odd_regions_are_refused(setting):
    guest, host = setting.guest, setting.host
    setting.unload()
    guest.read_kernel_log()
    for changes, why in HEADS:
        host.write_head(**changes)
        setting.load()
        setting.expect_log(f"not used: a region {why}")
        expect(guest.run("test -e /dev/fairgv")[0] != 0, f"{changes} is not used")
        setting.unload()
    host.write_head(windows=4, window_len=4096)
    setting.load()
    setting.expect_log("not used: 4 windows want vectors=5 (-28)")
    setting.unload()
    host.write_head(magic=1)
    setting.load()
    setting.expect_log()
    expect_equal(guest.expect(f"ls {DRIVER} | grep -c 0000 || true").strip(), "0",
                 "somebody else's device is left alone")
    setting.unload()
    host.write_head()
    setting.load()
    setting.expect_log("3 windows of 1 MiB")


def leftovers_are_closed(setting):
    """A guest that has started anew knows nothing of the sessions before it."""
    host = setting.host
    setting.unload()
    host.set(host.slot(1) + fake_host.STATE, fake_host.READY)
    host.set(host.slot(2) + fake_host.SERIAL, 0xffffffff)
    setting.load()
    setting.expect_at_rest()
    expect_equal([event[:2] for event in host.events], [(1, "close"), (2, "close")], "requests")
    setting.guest.expect("guest_test echo 10")


CASES = (echo, mapping_is_write_back, misuse, killed_program_is_closed, child_keeps_the_window,
         each_its_own_window, one_user_leaves_a_window, waits_for_a_window_that_is_being_freed, host_refuses,
         other_wire_version, other_build, host_is_silent, host_ends_a_session, unload_and_load,
         unbind_under_programs, device_is_unplugged, churn, cuda_program_finds_the_device,
         cuda_program_loses_its_session, cuda_program_is_refused, odd_regions_are_refused,
         leftovers_are_closed)


def run_case(case, guest, host):
    host.be_kind()
    case(Setting(guest, host))
    guest.read_kernel_log()
    print(f"{case.__name__}: passed", flush=True)


@contextlib.contextmanager
def fake_host_at(folder):
    host = FakeHost(pathlib.Path(folder) / "ivshmem", wire_version=WIRE_VERSION,
                    wire_hash=WIRE_HASH)
    try:
        yield host
    finally:
        host.stop()


def killed_guest_starts_anew(make_guest, host):
    """QEMU is killed with a session open; the next guest has its windows back. Its root port is
    without room above 4 GiB, and the module says that this is slow."""
    guest = make_guest("4G")
    try:
        setting = Setting(guest, host)
        setting.load()
        setting.hold("victim")
    finally:
        guest.kill()
    expect(not host.is_at_rest(), "the window is in use")
    with make_guest(None) as guest:
        setting = Setting(guest, host)
        setting.load()
        setting.expect_at_rest()
        setting.expect_log("the region is not mapped write-back and will be slow: its root port "
                           "wants pref64-reserve", "3 windows of 1 MiB")
        expect("writeback=0" in guest.expect("guest_test echo 10"), "the counts say so too")
        setting.expect_at_rest()
    print("killed_guest_starts_anew: passed")


def run():
    require_qemu()
    kernel = Kernel()
    module = kernel.build_module()
    print(f"kernel {kernel.release}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fairgv-vm-") as folder, \
            fake_host_at(folder) as host:
        def make_guest(reserve):
            return Guest(kernel, ivshmem(pathlib.Path(folder) / "ivshmem", host.windows + 1, reserve),
                         programs={"bin/guest_test": BUILD / "tests/vm/guest_test",
                                   "bin/vecadd": BUILD / "workloads/vecadd"},
                         files={MODULE: module})

        with make_guest("4G") as guest:
            guest.expect(f"insmod {MODULE} user_windows=63")
            for case in CASES:
                run_case(case, guest, host)
        killed_guest_starts_anew(make_guest, host)


if __name__ == "__main__":
    main(run)
