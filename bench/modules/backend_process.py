"""A daemon that a test or a measurement starts for itself, in a folder that goes with it.

On its own, since the tests use it, too.
"""
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile


class BackendProcess:
    """A fairgv-backend of @program with the VMs given as {name: settings}, on @gpu. {folder} in the
    settings is its folder; @top are those of no VM. ready_line is empty if it did not start.
    """

    def __init__(self, program, vms, gpu, top=""):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fairgv-"))
        self.socket = self.folder / "socket"
        self.control = self.folder / "socket.control"
        self.config = self.folder / "conf"
        self.log_path = self.folder / "log"
        user = pwd.getpwuid(os.getuid()).pw_name
        entries = ",\n".join(
            f'{{ name = "{name}"; users = ["{user}"]; {settings} }}' for name, settings in vms.items())
        self.config.write_text(f'gpu = "{gpu}"; {top}\nvms = ( {entries} );\n'
                               .replace("{folder}", str(self.folder)))
        self.launch()

    def launch(self):
        """Starts it; again, too, where it has ended."""
        read_end, write_end = os.pipe()
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [self.program, "--config", self.config, "--socket", self.socket,
                 "--ready-fd", str(write_end)],
                pass_fds=(write_end,), stdin=subprocess.DEVNULL, stderr=log)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            self.ready_line = ready.read().strip()

    def log(self):
        return self.log_path.read_text()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)
