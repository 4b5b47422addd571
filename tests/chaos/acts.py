"""What is done to victims and their processes."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

from harness import BUILD, PATIENCE_S, expect, title
from programs import IS_SOFT

GUEST = pathlib.Path(__file__).with_name("guest.py")
CTL = BUILD / "tools/fairgvctl"
MOMENT_S = 0.1
STOPPED_MAX = 1    # sessions, for good: the others wait for ten seconds until it is killed


def send(pid, number):
    """To a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class World:
    """The programs of a round."""

    def __init__(self, dice, daemon, names):
        self.dice = dice
        self.daemon = daemon
        self.victims = sorted(dice.sample(names, len(names) // 2))
        self.bystanders = [name for name in names if name not in self.victims]
        self.programs = {}
        self.of_victims = []    # with those that were started later: (VM, process)
        self.guests = []
        self.orders = []    # fairgvctl, which waits
        self.freezers = []    # those of them that freeze: (VM, process)
        self.stopped = {}    # process ids, and what they were

    def __str__(self):
        return (f"victims {self.victims}, stopped {self.stopped}, "
                f"the daemon's status {self.daemon.process.poll()}")

    def start(self, draw):
        self.draw = draw
        for name in self.victims:
            self.start_victim(name)
        for name in self.bystanders:
            self.programs[name] = self.daemon.start(name, *draw())

    def start_victim(self, name):
        self.of_victims.append((name, self.daemon.start(name, *self.draw())))

    def sessions(self, names=None):
        """The processes of sessions, of these VMs: also where their daemon has gone."""
        return self.processes(" ", names)

    def keepers(self, names=None):
        """The processes that keep the images of these VMs, likewise."""
        return self.processes(", keeper", names)

    def processes(self, ending, names):
        wanted = tuple(f"fairgv-vgpu: {name}{ending}"
                       for name in names or self.victims + self.bystanders)
        return [int(entry) for entry in os.listdir("/proc")
                if entry.isdigit() and title(entry).startswith(wanted)]

    def stopped_sessions(self):
        return [name for name in self.stopped.values() if "session" in name]

    def draw_session(self):
        """The process and the number of a victim's."""
        found = [(each["vgpu_pid"], each["number"]) for vm in self.daemon.report()["vms"]
                 if vm["name"] in self.victims for each in vm["sessions"]]
        return self.dice.choice(found) if found else (None, None)

    def have_begun(self):
        """Whether no program of a bystander is still to be let in."""
        return all(process.poll() is not None or self.sessions([name])
                   for name, process in self.programs.items())

    def let_go(self):
        for pid in self.stopped:
            send(pid, signal.SIGCONT)

    def order(self, *words):
        """Of fairgvctl, which may wait for long."""
        process = subprocess.Popen([CTL, "--socket", self.daemon.control, *words],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.orders.append(process)
        return process

    def freeze(self, name):
        self.freezers.append((name, self.order("freeze", name)))

    def thaw(self, names):
        """Until no order to freeze one of these can come later."""
        freezers = [(name, process) for name, process in self.freezers if name in names]
        while any(process.poll() is None for _, process in freezers):
            self.thaw_once(freezers)
            time.sleep(MOMENT_S)
        self.thaw_once(freezers)

    def thaw_once(self, freezers):
        for name in sorted({name for name, _ in freezers}):
            self.order("thaw", name)

    def end_orders(self):
        for process in self.orders:
            expect(process.wait(PATIENCE_S) in (0, 1), f"{process.args}: {process.returncode}")

    def end_all(self):
        """After a failure: nothing of the round goes on."""
        self.let_go()
        for process in [*self.programs.values(), *(each for _, each in self.of_victims)]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.guests + self.orders:
            process.kill()

    def end_guests(self):
        for guest in self.guests:
            expect(guest.wait(PATIENCE_S) == 0, f"a guest that scribbles: {guest.returncode}")


def kill_program(world):
    _, process = world.dice.choice(world.of_victims)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def start_program(world):
    world.start_victim(world.dice.choice(world.victims))


def kill_session(world):
    pid, _ = world.draw_session()
    if pid:
        send(pid, signal.SIGKILL)


def kill_keeper(world):
    """Programs go on without the images that it kept, and the next one brings another."""
    found = world.keepers(world.victims)
    if found:
        send(world.dice.choice(found), signal.SIGKILL)


def stop_program(world):
    """For good: its session is ended only by what comes later."""
    name, process = world.dice.choice(world.of_victims)
    if process.poll() is None:
        world.stopped[process.pid] = name
        send(process.pid, signal.SIGSTOP)


def stop_session(world):
    """For good: the others don't wait for it for ever, whatever it had of the GPU."""
    pid, _ = world.draw_session()
    if pid and world.dice.random() < 0.3 and len(world.stopped_sessions()) < STOPPED_MAX:
        world.stopped[pid] = f"session {pid}"
        send(pid, signal.SIGSTOP)


def stop_for_a_moment(world):
    pid, _ = world.draw_session()
    if pid:
        send(pid, signal.SIGSTOP)
        time.sleep(MOMENT_S * world.dice.random())
        send(pid, signal.SIGCONT)


def stop_daemon(world):
    pid = world.daemon.process.pid
    send(pid, signal.SIGSTOP)
    time.sleep(MOMENT_S * world.dice.random())
    send(pid, signal.SIGCONT)


def scribble(world):
    name = world.dice.choice(world.victims)
    seconds = world.dice.random()
    world.guests.append(subprocess.Popen(
        [sys.executable, GUEST, world.daemon.socket, name, str(world.dice.randrange(1 << 30)),
         str(seconds)]))


def ctl(world, *arguments):
    """Whatever it says: a session may have gone, a policy may not have such a share."""
    result = subprocess.run([CTL, "--socket", world.daemon.control, *arguments],
                            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    expect(result.returncode in (0, 1), f"fairgvctl {arguments}: {result.returncode}")
    return result


def change_weight(world):
    name = world.dice.choice(world.victims + world.bystanders)
    result = ctl(world, "set", name, f"weight={world.dice.randrange(1, 9)}")
    expect(result.returncode == 0, result.stderr)


def reload(world):
    """With another weight in the file."""
    name = world.dice.choice(world.victims)
    weight = f"weight = {world.dice.randrange(1, 9)};"
    text = world.daemon.config.read_text()
    text, count = re.subn(rf'(name = "{name}"; users = .*?; )weight = \d+;', rf"\1{weight}", text)
    expect(count == 1, f"{name} is in the configuration {count} times")
    world.daemon.config.write_text(text)
    result = ctl(world, "reload")
    expect(result.returncode == 0, f"reload: {result.stdout}{result.stderr}")


def freeze(world):
    """Anybody: it harms no result. A VM whose memory can't be moved is refused."""
    world.freeze(world.dice.choice(world.victims + world.bystanders))


def thaw(world):
    if world.freezers:
        world.order("thaw", world.dice.choice(world.freezers)[0])


def change_share(world):
    name = world.dice.choice(world.victims)
    ctl(world, "set", name, f"limit={world.dice.randrange(20, 101)}%")


def end_session(world):
    _, number = world.draw_session()
    if number:
        ctl(world, "end", str(number))


def look(world):
    expect(ctl(world, "stat", "--json").returncode == 0, "stat")


def with_limit(world, limit, value):
    """The daemon has little of something for a moment, in which a program comes."""
    pid = world.daemon.process.pid
    if not world.have_begun():
        return
    soft, hard = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (value, hard))
    start_program(world)
    time.sleep(MOMENT_S * world.dice.random())
    resource.prlimit(pid, limit, (soft, hard))


def few_descriptors(world):
    with_limit(world, resource.RLIMIT_NOFILE,
               world.daemon.descriptors() + world.dice.randrange(30))


def little_memory(world):
    size = int(pathlib.Path(f"/proc/{world.daemon.process.pid}/statm").read_text().split()[0])
    with_limit(world, resource.RLIMIT_AS,
               size * resource.getpagesize() + (1 << world.dice.randrange(12, 26)))


def full_disk(world):
    """As where nothing can be written: neither the log nor shared memory can grow."""
    with_limit(world, resource.RLIMIT_FSIZE, world.dice.choice((0, 1 << 12, 1 << 20)))


# What the machine's kernel lacks is the same with any GPU.
STARVING = (few_descriptors, little_memory, full_disk) if IS_SOFT else ()
ACTS = (kill_program, kill_program, start_program, start_program, kill_session, kill_keeper,
        stop_program, stop_session, stop_for_a_moment, stop_daemon, scribble, change_weight,
        change_share, end_session, look, freeze, freeze, thaw, reload, *STARVING)
