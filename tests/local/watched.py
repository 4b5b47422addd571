"""The configuration is read again and again under load, while fairgvctl top and fairgv-metrics look on: no
program is disturbed, and both show each change. FAIRGV_TEST_RELOADS says how many; the last screen is
printed.
"""
import os
import re
import subprocess
import threading

from harness import expect, finish, kill, main, wait_until
from serving import FOREVER, MATMUL, served
from terminal import Terminal
from top import CTL, rows

RELOADS = int(os.environ.get("FAIRGV_TEST_RELOADS", "4"))
NAMES = ("a", "b", "c")
SHORT = ("--size", 64, "--iterations", 5)


def configuration(text, weights, guests):
    """@text with these weights, and with so many more VMs."""
    for name, weight in weights.items():
        text = re.sub(rf'(name = "{name}";[^}}]*weight = )\d+', rf"\g<1>{weight}", text)
    more = "".join(f', {{ name = "guest{i}"; }}' for i in range(guests))
    return text.replace(" );", f"{more} );")


def samples(server):
    """{(metric, VM): value} of what there is one of for each VM."""
    found = re.findall(r'^(fairgv_vm_\w+)\{vm="(\w+)",gpu="0"\} (\S+)$', server.get("/metrics"), re.M)
    return {(name, vm): float(value) for name, vm, value in found}


class Load:
    """In each VM a program that goes on, and programs that end and check their results."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.steady = {name: daemon.start(name, MATMUL, *FOREVER) for name in NAMES}
        self.ended = threading.Event()
        self.right, self.wrong = 0, []
        wait_until(lambda: all(vm["launches"] > 1 for vm in daemon.report()["vms"]), "kernels in each VM")
        self.processes = self.vgpus()
        self.runner = threading.Thread(target=self.run)
        self.runner.start()

    def vgpus(self):
        """The processes of the programs that go on, which came first."""
        return [vm["sessions"][0]["vgpu_pid"] for vm in self.daemon.report()["vms"] if vm["name"] in NAMES]

    def run(self):
        while not self.ended.is_set():
            for name in NAMES:
                status, out, err = finish(self.daemon.start(name, MATMUL, *SHORT))
                self.right += status == 0 and "verified=yes" in out
                if status or "verified=yes" not in out:
                    self.wrong.append(f"{name}: status {status}: {out}{err}")

    def end(self):
        self.ended.set()
        self.runner.join()
        gone = [name for name, program in self.steady.items() if program.poll() is not None]
        processes = self.vgpus()
        for program in self.steady.values():
            kill(program)
        expect(not gone and processes == self.processes, f"ended: {gone}; {self.processes}, now {processes}")
        expect(not self.wrong and self.right, "\n".join(self.wrong))


def shows(text, weights, guests):
    found = rows(text)
    return {name: found[name]["weight"] for name in NAMES if name in found} == \
        {name: str(weight) for name, weight in weights.items()} and len(found) == 3 + guests


def reload(terminal, daemon, server, text, number):
    weights = {name: 1 + (number + place) % 7 for place, name in enumerate(NAMES)}
    guests = number % 3
    before = samples(server)
    daemon.config.write_text(configuration(text, weights, guests))
    done = finish(subprocess.Popen([CTL, "--socket", daemon.control, "reload"], text=True, start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    expect(done[0] == 0, f"{done}")
    terminal.wait_for(lambda screen: shows(screen, weights, guests), f"weights {weights} and {guests} more VMs")
    wait_until(lambda: all(samples(server).get(("fairgv_vm_weight", name)) == weight
                           for name, weight in weights.items()), f"metrics with weights {weights}")
    after = samples(server)
    counters = [key for key in before if key[0].endswith("_total") and key[1] in NAMES]
    fallen = [key for key in counters if after[key] < before[key]]
    expect(counters and not fallen, f"counters that have fallen: {fallen} of {len(counters)}")


def nobody_is_disturbed():
    with served({name: "weight = 1;" for name in NAMES}) as (daemon, server):
        text = daemon.config.read_text()
        load = Load(daemon)
        terminal = Terminal([CTL, "--socket", daemon.control, "--interval", "0.2", "top"])
        try:
            terminal.keys("v")      # VMs alone: all fit on the screen
            for number in range(RELOADS):
                reload(terminal, daemon, server, text, number)
            screen = terminal.text()
            terminal.keys("q")
            expect(terminal.end() == 0, "top's status")
        finally:
            terminal.kill()
            load.end()
        print(f"{RELOADS} reloads, {load.right} programs with right results beside {len(NAMES)} that went on")
        print(screen)


main(nobody_is_disturbed)
