"""fairgv-metrics: what it serves is what Prometheus' own parsers read and the daemon tells, to whom, and
what clients can't do to it."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from harness import BUILD, PATIENCE_S, expect, kill, main, needs, wait_until
from serving import FOREVER, IS_ROOT, MATMUL, NOBODY, served

needs("prometheus_client")
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

CTL = BUILD / "tools/fairgvctl"
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
CLIENTS_MAX = 32
KEPT_S = 0.25
OBSERVERS_PER_SECOND = 100


def samples(families):
    """{(name, labels): value}."""
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families for sample in family.samples}


def at_rest(server):
    """The report, and both formats of it, of programs that are stopped: it changes no more."""
    def read():
        report = json.loads(server.get("/report"))
        del report["time_ns"]
        return report, server.get("/metrics"), server.get("/metrics", OPENMETRICS)
    last = [None]

    def is_again():
        time.sleep(KEPT_S)
        before, last[0] = last[0], read()
        return before == last[0]
    wait_until(is_again, "a report that stays")
    return last[0]


def forms_agree():
    with served({"vm1": 'memory = "1G"; weight = 3;', "vm2": ""}) as (daemon, server):
        odd = daemon.folder / 'odd"name\\'
        shutil.copy(BUILD / MATMUL, odd)
        programs = [daemon.start("vm1", odd, *FOREVER), daemon.start("vm2", MATMUL, *FOREVER)]
        wait_until(lambda: all(vm["grants"] > 3 for vm in daemon.report()["vms"]), "turns of both")
        for program in programs:
            os.killpg(program.pid, signal.SIGSTOP)
        report, text, of_open = at_rest(server)
        found = samples(openmetrics.text_string_to_metric_families(of_open))
        expect(found == samples(prometheus(text)), "the two formats differ")
        expect(of_open.endswith("# EOF\n") and "# EOF" not in text, "the end")
        for vm in report["vms"]:
            name = (("gpu", "0"), ("vm", vm["name"]))
            expect(found["fairgv_vm_launches_total", name] == vm["launches"], vm)
            expect(found["fairgv_vm_wait_seconds_count", name] == vm["wait"]["count"], vm)
            for engine in ("copy_in", "copy_out"):
                labels = tuple(sorted((*name, ("engine", engine))))
                expect(abs(found["fairgv_vm_copy_seconds_total", labels] - vm[engine]["gpu_ns"] * 1e-9) < 1e-6, vm)
                expect(found["fairgv_vm_copy_wait_seconds_count", labels] == vm[engine]["wait"]["count"], vm)
        programs_seen = {dict(labels).get("program") for _, labels in found}
        expect({'odd"name\\', "matmul"} <= programs_seen, programs_seen)
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True,
                                  timeout=PATIENCE_S, check=False)
            expect(done.returncode == 0 and not done.stderr, done)
        else:
            print("left out, as there is no promtool (package prometheus): its own look at the metrics")
        for program in programs:
            kill(program)


def observers_change_nothing():
    with served({"vm1": ""}) as (daemon, server):
        def ctl(*arguments, **options):
            return subprocess.run([CTL, "--socket", daemon.folder / "observe", *arguments], text=True,
                                  capture_output=True, timeout=PATIENCE_S, check=False, **options)
        expect(json.loads(ctl("list", "--json").stdout)["vms"][0]["name"] == "vm1", "list")
        for arguments in (("set", "vm1", "weight=2"), ("end", "1")):
            done = ctl(*arguments)
            expect(done.returncode == 1 and "questions only" in done.stderr, done)
        expect(daemon.report()["vms"][0]["weight"] == 1, "the weight")
        begin, questions = time.monotonic(), 30
        for _ in range(questions):
            expect(ctl("list").returncode == 0, "a question")
        least = (questions - 1) / OBSERVERS_PER_SECOND
        expect(time.monotonic() - begin >= least, f"{questions} questions in less than {least} s")
        if not IS_ROOT:
            print("left out, as this is not root: other users")
            return
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        expect(re.search(rf"^Uid:\t{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}$", status, re.M), status)
        expect(re.search(r"^Groups:\s*$", status, re.M), status)
        expect(re.search(r"^CapEff:\t0+$", status, re.M), status)
        for user, works in ((NOBODY, True), (NOBODY - 1, False)):
            done = subprocess.run(["python3", "-c", f"""
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("{daemon.folder}/observe")
s.sendall(b'{{"request": "list"}}\\n')
print(s.recv(10))
"""], user=user, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
            expect((done.returncode == 0) == works, f"user {user}: {done}")


def questions_have_answers():
    with served({"vm1": ""}) as (daemon, server):
        status, headers, text = server.ask("/metrics", "HEAD")
        expect(status == 200 and not text and int(headers["Content-Length"]) > 1000, headers)
        expect(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers)
        _, headers, _ = server.ask("/metrics", headers=OPENMETRICS)
        expect(headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"), headers)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"):
            status, headers, _ = server.ask("/metrics", method)
            expect(status == 405 and headers["Allow"] == "GET, HEAD", f"{method}: {status}")
        expect(server.ask("/../etc/passwd")[0] == 404 and server.ask("/metrics/x")[0] == 404, "404")
        for host, wanted in (("localhost", 200), (f"127.0.0.1:{server.port}", 200), ("evil.example", 403),
                             ("localhost.evil.example", 403), ("", 403)):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            status, _, _ = server.ask("/metrics", headers={"Host": host}, connection=connection)
            expect(status == wanted, f"{host}: {status}")
        begin, times = time.monotonic(), set()
        for _ in range(100):
            times.add(json.loads(server.get("/report"))["time_ns"])
        asked = (time.monotonic() - begin) / KEPT_S + 2
        expect(len(times) <= asked, f"asked the daemon {len(times)} times, {asked} at most")
        os.kill(daemon.process.pid, signal.SIGTERM)
        daemon.process.wait(PATIENCE_S)
        wait_until(lambda: server.ask("/metrics")[0] == 503, "a refusal")
        for _ in range(3):
            status, _, text = server.ask("/report")
            expect(status == 503 and "no daemon listens there" in text, text)
            time.sleep(KEPT_S)
        daemon.launch()
        wait_until(lambda: server.ask("/metrics")[0] == 200, "answers again")
        for line in ("nothing to serve", "answers again"):
            expect(server.log().count(line) == 1, server.log())


def raw(server):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    connection.connect(str(server.path))
    return connection


def rest_of(connection):
    """What still comes, and that the end does."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            got += data
    return got


class Dripping(threading.Thread):
    """A client that sends a byte of a header now and then, for as long as it may."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection = raw(server)
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            self.connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
            while True:
                self.connection.sendall(b"x")
                time.sleep(0.2)


def clients_are_bounded():
    with served({"vm1": ""}) as (_, server):
        rest = os.listdir(f"/proc/{server.process.pid}/fd")
        # All places are taken by clients that never ask: others are served when their time is over.
        slow = [Dripping(server) for _ in range(4)]
        silent = [raw(server) for _ in range(CLIENTS_MAX)]
        expect(server.get("/metrics"), "clients that wait")
        for connection in silent:
            expect(not rest_of(connection), "an answer to nothing")
        for client in slow:
            client.join(PATIENCE_S)
            expect(not client.is_alive(), "a client that sends a little now and then stays")
        for request in (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100000 + b"\r\n\r\n",
                        b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n", b"\0" * 100000, b"\r\n" * 100000,
                        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"):
            with raw(server) as connection:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(request)
                rest_of(connection)
        with raw(server) as connection:     # goes while it is answered
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        expect(server.get("/metrics"), "it still answers")
        wait_until(lambda: os.listdir(f"/proc/{server.process.pid}/fd") == rest, "its descriptors at rest")


main(forms_agree, observers_change_nothing, questions_have_answers, clients_are_bounded)
