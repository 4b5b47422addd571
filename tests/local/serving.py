"""A daemon with a fairgv-metrics that asks it, for tests."""
import contextlib
import http.client
import os
import socket
import subprocess

from harness import BUILD, PATIENCE_S, Backend, expect, wait_until

METRICS = BUILD / "tools/fairgv-metrics"
MATMUL = "workloads/matmul"
FOREVER = ("--size", 64, "--iterations", 10000000)
NOBODY = 65534
IS_ROOT = os.geteuid() == 0


class Connection(http.client.HTTPConnection):
    """To a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.path)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A daemon, and a fairgv-metrics that asks it where observers may."""

    def __init__(self, folder, config):
        self.path = folder / "metrics"
        self.log_path = folder / "metrics.log"
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([METRICS, "--config", config], stderr=log)
        wait_until(lambda: "serves what" in self.log() or self.process.poll() is not None, "fairgv-metrics")
        expect(self.process.poll() is None, self.log())

    def log(self):
        return self.log_path.read_text()

    def ask(self, path, method="GET", headers=None, connection=None):
        connection = connection or Connection(self.path)
        connection.request(method, path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()

    def get(self, path, headers=None):
        status, _, text = self.ask(path, headers=headers)
        expect(status == 200, f"{path}: {status} {text}")
        return text


@contextlib.contextmanager
def served(vms):
    port = free_port()
    top = f'observe = "{{folder}}/observe"; metrics_socket = "{{folder}}/metrics"; metrics_port = {port};'
    daemon = Backend(vms, top=top + (f"observe_user = {NOBODY};" if IS_ROOT else ""))
    os.chmod(daemon.folder, 0o755)
    server = None
    try:
        server = Server(daemon.folder, daemon.config)
        server.port = port
        yield daemon, server
        server.process.terminate()
        expect(server.process.wait(PATIENCE_S) == 0, f"its status: {server.log()}")
    except BaseException:
        print(daemon.log(), server.log() if server else "")
        for process in (daemon.process, *([server.process] if server else [])):
            process.kill()
            process.wait()
        raise
    daemon.stop()
