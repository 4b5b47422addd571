"""QMP, as far as docs/vm.md needs it: the device of a guest is replaced under it."""
import json
import os
import socket

from common import PATIENCE_S, Failure, expect


class Qmp:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.events = []
        self.given = 0      # descriptors
        self.receive()      # its greeting
        self.execute("qmp_capabilities")

    def receive(self):
        try:
            line = self.lines.readline()
        except socket.timeout:
            raise Failure("QEMU does not answer by QMP") from None
        except ConnectionResetError:
            line = ""
        expect(line, "QEMU has ended")
        return json.loads(line)

    def execute(self, command, *descriptors, **arguments):
        request = {"execute": command, "arguments": arguments}
        socket.send_fds(self.socket, [json.dumps(request).encode() + b"\n"], descriptors)
        while True:
            message = self.receive()
            if "event" not in message:
                break
            self.events.append(message)
        expect("return" in message, f"{command}: {message}")
        return message["return"]

    def give_descriptor(self):
        """One at which nothing ever happens. QEMU keeps it."""
        silent = os.eventfd(0)
        self.given += 1
        self.execute("getfd", silent, fdname=f"silent{self.given}")
        os.close(silent)

    def await_deleted(self, device):
        while not any(event["event"] == "DEVICE_DELETED" and
                      event["data"].get("device") == device for event in self.events):
            self.events.append(self.receive())

    def remove_region(self):
        """The guest lets go of it, in seconds of its own; await_deleted() waits for that."""
        self.events.clear()
        self.execute("device_del", id="fairgv-region")

    def add_region(self, path, vectors):
        self.execute("chardev-remove", id="fairgv")
        address = {"type": "unix", "data": {"path": str(path)}}
        self.execute("chardev-add", id="fairgv", backend={
            "type": "socket", "data": {"addr": address, "server": False}})
        self.execute("device_add", driver="ivshmem-doorbell", id="fairgv-region", bus="fairgv-port",
                     chardev="fairgv", vectors=vectors)
