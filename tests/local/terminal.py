"""A program on a terminal of its own, whose screen pyte draws: what a user would see."""
import fcntl
import itertools
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from xml.sax.saxutils import escape

from harness import PATIENCE_S, Failure, needs

needs("pyte")
import pyte


class Terminal:
    """@command on a screen of so many columns and lines. Of terminals, pyte knows the console of Linux best:
    xterm repeats characters by a sequence that is strange to it.
    """

    def __init__(self, command, columns=80, lines=24, term="linux"):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.fd, theirs = pty.openpty()
        self.set_size(columns, lines)
        self.process = subprocess.Popen(list(map(str, command)), stdin=theirs, stdout=theirs, stderr=theirs,
                                        env={**os.environ, "TERM": term, "LC_ALL": "C.UTF-8"},
                                        start_new_session=True)
        os.close(theirs)

    def set_size(self, columns, lines):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns, lines):
        self.set_size(columns, lines)
        self.screen.resize(lines, columns)
        os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, wait_s):
        """What has come, after so long a time at most; False: the program has closed its terminal."""
        if not select.select([self.fd], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.stream.feed(data)
        return bool(data)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def keys(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, condition, what):
        """Until @condition, of the screen's text, is true; that is the result."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition(self.text())):
            if time.monotonic() > deadline or not self.read(0.1):
                raise Failure(f"waited in vain for: {what}, on\n{self.text()}")
        return found

    def end(self):
        """Its status, after it has drawn its last."""
        deadline = time.monotonic() + PATIENCE_S
        while self.read(0.1) and time.monotonic() < deadline:
            if self.process.poll() is not None and not select.select([self.fd], [], [], 0)[0]:
                break
        status = self.process.wait(PATIENCE_S)
        os.close(self.fd)
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


# --- Pictures -----------------------------------------------------------------------------------

CELL, LINE, EDGE = 8.4, 18, 12
COLOURS = {"default": "#d8dee4", "green": "#5fbf6a", "brown": "#e0b341", "yellow": "#e0b341", "cyan": "#56b6c2"}
BACK = "#16191d"


def pieces(screen, y):
    """(column, text, how it looks) of a line, as long as it looks the same; blanks only where they show."""
    def look(x):
        cell = screen.buffer[y][x]
        return cell.fg, cell.bold, cell.reverse
    for style, columns in itertools.groupby(range(screen.columns), look):
        columns = list(columns)
        text = "".join(screen.buffer[y][x].data for x in columns)
        if style[2] or text.strip():
            yield columns[0], text, style


def svg_piece(y, column, text, style):
    colour, bold, reverse = style
    x, top, width = EDGE + column * CELL, EDGE + y * LINE, len(text) * CELL
    front = COLOURS.get(colour, COLOURS["default"])
    box = f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{LINE}" fill="{front}"/>' if reverse else ""
    weight = ' font-weight="bold"' if bold else ""
    return (f'{box}<text x="{x:.1f}" y="{top + 14}" textLength="{width:.1f}" fill="{BACK if reverse else front}"{weight}>'
            f"{escape(text)}</text>")


def svg_of(screen):
    """The screen as a picture."""
    width, height = 2 * EDGE + screen.columns * CELL, 2 * EDGE + screen.lines * LINE
    body = "\n".join(svg_piece(y, *piece) for y in range(screen.lines) for piece in pieces(screen, y))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" '
            f'xml:space="preserve">\n<rect width="100%" height="100%" rx="8" fill="{BACK}"/>\n{body}\n</svg>\n')
