"""A stand-in for the host: ivshmem's server, and a daemon that answers slots and windows as a
test tells it to. What it knows of the region is api/region.h, of a window the little protocol
of guest_test.c, and of the wire enough to answer one request.
"""
import ctypes
import mmap
import os
import selectors
import socket
import struct
import threading

MAGIC, VERSION, WIRE_VERSION = 0x52564746, 2, 0
SLOTS_OFF, SLOT_LEN = 4096, 1024
FREE, READY, REFUSED, GONE = range(4)
OPEN, CLOSE = 1, 2
HOST, GUEST = 0, 1

# In a slot.
STATE, ANSWER, WELCOME, REQUEST, SERIAL, HELLO = 0, 4, 64, 512, 516, 576
WELCOME_FORMAT = "=IIIIQQQQQII64s256s"

# guest_test.c: in a window, a message of its own and the host's answer.
ECHO_ASKED, ECHO_ANSWERED, ECHO_LEN, ECHO_DATA = 0, 64, 128, 192

# api/wire.h: where lane 0's rings are in a window, and their first position.
REQUEST_SLOTS, REPLY_SLOTS, RING_SLOT_LEN, RING_START = 256, 64, 128, 0xfffffc00
LANES_OFF, LANE_LEN, REQUESTS_OFF = 4096, 256 << 10, 4096
REPLIES_OFF = REQUESTS_OFF + REQUEST_SLOTS * RING_SLOT_LEN
LANES, WINDOW_MAGIC = 2, 0x57564746


class FakeHost:
    """Serves one guest after another, always with the same memory. self.answer is what an open
    gets: READY, REFUSED, GONE, or None for silence."""

    def __init__(self, path, windows=3, window_len=1 << 20, windows_off=1 << 20, size=4 << 20,
                 wire_version=WIRE_VERSION, wire_hash=0):
        self.windows, self.window_len, self.windows_off = windows, window_len, windows_off
        self.wire_version, self.wire_hash = wire_version, wire_hash
        self.be_kind()
        self.memory_fd = os.memfd_create("region")
        os.ftruncate(self.memory_fd, size)
        self.memory = mmap.mmap(self.memory_fd, size)
        self.write_head()
        count = windows + 1
        self.bells = [[os.eventfd(0, os.EFD_NONBLOCK) for _ in range(count)] for _ in range(2)]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.connection = None
        self.stopping = os.eventfd(0, os.EFD_NONBLOCK)
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def be_kind(self):
        """As at first: answers all, and remembers nothing."""
        self.answer = READY
        self.answers_close = True
        self.serve_wire = False     # refuses a window's request, else echoes its message
        self.answers_wire = True
        self.events = []            # (window, "open" or "close", program)
        self.wire_requests = []     # operations

    # The memory. Aligned words are read and written whole.
    def word(self, off):
        return ctypes.c_uint32.from_buffer(self.memory, off)

    def get(self, off):
        return self.word(off).value

    def set(self, off, value):
        self.word(off).value = value

    def write_head(self, **changes):
        head = {"magic": MAGIC, "version": VERSION, "wire_version": self.wire_version,
                "windows": self.windows, "window_len": self.window_len,
                "windows_off": self.windows_off, **changes}
        struct.pack_into("=IIIIQQ", self.memory, 0, *head.values())

    def slot(self, window):
        return SLOTS_OFF + window * SLOT_LEN

    def window(self, window):
        return self.windows_off + window * self.window_len

    # The ivshmem protocol.
    def send(self, number, fd=None):
        data = struct.pack("<q", number)
        if fd is None:
            self.connection.sendall(data)
        else:
            socket.send_fds(self.connection, [data], [fd])

    def greet(self):
        self.connection = self.listener.accept()[0]
        self.send(0)
        self.send(GUEST)
        self.send(-1, self.memory_fd)
        for peer in (HOST, GUEST):
            for bell in self.bells[peer]:
                self.send(peer, bell)

    # What the host does.
    def ring(self, vector):
        os.eventfd_write(self.bells[GUEST][vector], 1)

    def loop(self):
        with selectors.DefaultSelector() as selector:
            for source in (self.listener, self.stopping, *self.bells[HOST]):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self.stopping in ready:
                    return
                if self.listener in ready:
                    self.greet()
                for vector, bell in enumerate(self.bells[HOST]):
                    if bell in ready:
                        os.eventfd_read(bell)
                        self.rung(vector)

    def rung(self, vector):
        if vector == 0:
            for window in range(self.windows):
                self.look_at_slot(window)
            return
        if self.serve_wire:
            self.answer_wire(vector - 1)
        else:
            self.echo(vector - 1)

    def look_at_slot(self, window):
        slot = self.slot(window)
        serial = self.get(slot + SERIAL)
        if serial == self.get(slot + ANSWER):
            return
        program = bytes(self.memory[slot + HELLO + 72:slot + HELLO + 136]).rstrip(b"\0").decode()
        if self.get(slot + REQUEST) == OPEN:
            self.events.append((window, "open", program))
            if self.answer is not None:
                self.answer_open(window, serial)
        else:
            self.events.append((window, "close", program))
            if self.answers_close:
                self.answer_slot(window, serial, FREE)

    def answer_open(self, window, serial):
        slot = self.slot(window)
        version = self.get(slot + HELLO + 4)
        wire_hash = struct.unpack_from("=Q", self.memory, slot + HELLO + 168)[0]
        state, status, text = self.answer, 0, "a stand-in"
        if state == READY and version != self.wire_version:
            state, status, text = REFUSED, 803, "the versions differ"
        elif state == READY and self.wire_hash != wire_hash:
            state, status, text = REFUSED, 803, "the builds differ"
        elif state == REFUSED:
            status, text = 46, "the VM is full"
        arena_off = LANES_OFF + LANES * LANE_LEN
        arena_len = self.window_len - arena_off
        struct.pack_into(WELCOME_FORMAT, self.memory, slot + WELCOME, 2, self.wire_version, status,
                         LANES, self.window_len, LANES_OFF, arena_off, arena_len, arena_len // 8192 * 4096,
                         0, 0, b"vm1", text.encode())
        if state == READY:
            self.format_window(window)
        self.answer_slot(window, serial, state)

    def answer_slot(self, window, serial, state):
        slot = self.slot(window)
        self.set(slot + STATE, state)
        self.set(slot + ANSWER, serial)
        self.ring(0)

    def end_session(self, window):
        self.set(self.slot(window) + STATE, GONE)
        self.ring(0)

    def echo(self, window):
        at = self.window(window)
        asked = self.get(at + ECHO_ASKED)
        if asked == self.get(at + ECHO_ANSWERED):
            return
        count = min(self.get(at + ECHO_LEN), 4096)
        data = bytes(self.memory[at + ECHO_DATA:at + ECHO_DATA + count])
        self.memory[at + ECHO_DATA:at + ECHO_DATA + count] = data[::-1]
        self.set(at + ECHO_ANSWERED, asked)
        self.ring(1 + window)

    # The wire: an empty window, whose dispatcher sleeps, and a refusal of what comes on lane 0.
    def format_window(self, window):
        at = self.window(window)
        self.memory[at:at + self.window_len] = bytes(self.window_len)
        struct.pack_into("=II", self.memory, at, WINDOW_MAGIC, self.wire_version)
        self.set(at + 64, 1 if self.serve_wire else 0)
        for ring, slots in ((REQUESTS_OFF, REQUEST_SLOTS), (REPLIES_OFF, REPLY_SLOTS)):
            for lane in range(LANES):
                base = at + LANES_OFF + lane * LANE_LEN + ring
                for i in range(slots):
                    position = RING_START + i
                    self.set(base + (position % slots) * RING_SLOT_LEN, position)

    def answer_wire(self, window):
        position = RING_START + len(self.wire_requests)
        lane = self.window(window) + LANES_OFF
        request = lane + REQUESTS_OFF + position % REQUEST_SLOTS * RING_SLOT_LEN
        if self.get(request) != position + 1:
            return
        op, _, _, call = struct.unpack_from("=HHQI", self.memory, request + 4)
        self.wire_requests.append(op)
        if not self.answers_wire:
            return
        reply = lane + REPLIES_OFF + position % REPLY_SLOTS * RING_SLOT_LEN
        struct.pack_into("=HHQII", self.memory, reply + 4, op, 0, 46, call, 0)
        self.set(reply, position + 1)
        self.ring(1 + window)

    def counts(self, what):
        return sum(1 for event in self.events if event[1] == what)

    def is_at_rest(self):
        """Every window free, every request answered."""
        slots = [self.slot(window) for window in range(self.windows)]
        return all(self.get(slot + STATE) == FREE and
                   self.get(slot + SERIAL) == self.get(slot + ANSWER) for slot in slots)

    def stop(self):
        os.eventfd_write(self.stopping, 1)
        self.thread.join()
        self.listener.close()
        if self.connection:
            self.connection.close()
        for fd in (*self.bells[HOST], *self.bells[GUEST], self.stopping, self.memory_fd):
            os.close(fd)
