"""The description's model, and the parser that makes it from text and checks it.

Every mistake in the text is collected as (line, reason); the model of a text with mistakes
is not for use.
"""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

# As in wire.h; the generated header asserts it.
REPLY_MAX = 40      # a reply travels in the first cache line of its slot
REQUEST_MAX = 512   # FGV_MESSAGE_MAX - FGV_DATA_MAX: arguments beside the data
NUMBER_MAX = 1023
ARRAY_MAX = 64

SCALARS = {"u32": ("uint32_t", 4), "u64": ("uint64_t", 8), "i32": ("int32_t", 4),
           "f32": ("float", 4)}
HANDLES = ("module", "function", "stream", "event", "array", "texture", "graph",
           "memory")
OPTIONAL = ("stream", "array")  # 0 names none, and is not looked up
SPANS = ("source", "sink")
TYPES = (*SCALARS, *HANDLES, *SPANS, "bytes")

# Words that the emitted C could not use as an argument's name, beside the language's own.
C_WORDS = set("""
    auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while asm typeof bool true false errno linux unix""".split())
TAKEN = {"lane", "msg", "room", "reply", "status", "call"}
TAKEN_OPS = {"max"}


# --- The model ---------------------------------------------------------------------------

@dataclass
class Member:
    """A field of a wire struct; count 0 is a scalar."""
    ctype: str
    name: str
    size: int
    count: int = 0
    offset: int = 0
    reserved: bool = False

    def declare(self) -> str:
        return f"{self.ctype} {self.name}" + (f"[{self.count}]" if self.count else "")


@dataclass
class Layout:
    members: List[Member]
    size: int

    def reserved(self) -> List[Member]:
        return [m for m in self.members if m.reserved]


@dataclass
class Arg:
    line: int
    name: str
    type: str
    count: int = 0

    def members(self) -> List[Member]:
        """What of it travels in the struct."""
        if self.type in SPANS:
            return [Member("uint64_t", self.name + "_off", 8),
                    Member("uint64_t", self.name + "_len", 8)]
        if self.type == "bytes":
            return []
        ctype, size = SCALARS.get(self.type, SCALARS["u32"])
        return [Member(ctype, self.name, size, self.count)]

    def c_names(self) -> List[str]:
        """The C names that it takes up in stubs and structs."""
        if self.type in SPANS:
            return [self.name, self.name + "_off", self.name + "_len"]
        return [self.name, self.name + "_len"] if self.type == "bytes" else [self.name]


@dataclass
class Op:
    line: int
    number: int = 0
    name: str = ""
    call: Optional[bool] = None    # until known
    order: str = ""                # work, apart or nothing
    errand: bool = False
    doc: Optional[str] = None
    ins: List[Arg] = field(default_factory=list)
    outs: List[Arg] = field(default_factory=list)
    request: Layout = field(default_factory=lambda: Layout([], 0))
    reply: Layout = field(default_factory=lambda: Layout([], 0))

    @property
    def enum(self) -> str:
        return "FGV_OP_" + self.name.upper()

    @property
    def stream(self) -> Optional[Member]:
        names = [arg.name for arg in self.ins if arg.type == "stream"]
        return next((m for m in self.request.members if m.name in names), None)

    @property
    def bytes(self) -> Optional[Arg]:
        return self.ins[-1] if self.ins and self.ins[-1].type == "bytes" else None

    def meaning(self) -> str:
        """One line without its text, which nobody needs to agree on."""
        return " ".join([f"{self.number} {self.name}", "call" if self.call else "post",
                         self.order, "errand" if self.errand else "",
                         *(f"in {arg.type}[{arg.count}] {arg.name}" for arg in self.ins),
                         *(f"out {arg.type}[{arg.count}] {arg.name}" for arg in self.outs)])


@dataclass
class Api:
    stem: str
    version: int
    ops: List[Op]
    headers: List[str] = field(default_factory=list)    # the text of those that count as well

    def hash(self) -> int:
        """Of what both sides must agree on: not of texts, comments or the order of lines."""
        words = [f"version {self.version}", *(op.meaning() for op in self.ops),
                 *(c_meaning(text) for text in self.headers)]
        return int.from_bytes(hashlib.sha256("\n".join(words).encode()).digest()[:8], "big")


def c_meaning(text: str) -> str:
    """A C header without its comments, on one line."""
    return " ".join(re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).split())


def lay_out(args: List[Arg]) -> Layout:
    """Natural alignment in the declared order; every gap becomes a reserved field."""
    members: List[Member] = []
    offset, widest, gaps = 0, 1, 0

    def pad(align: int) -> None:
        nonlocal offset, gaps
        if offset % align:  # sizes are 4 and 8, so that a gap is always 4
            members.append(Member("uint32_t", f"reserved{gaps}", 4, 0, offset, True))
            offset, gaps = offset + 4, gaps + 1

    for member in (m for arg in args for m in arg.members()):
        pad(member.size)
        member.offset = offset
        members.append(member)
        offset += member.size * max(member.count, 1)
        widest = max(widest, member.size)
    pad(widest)
    return Layout(members, offset)


# --- Text to model -----------------------------------------------------------------------

class Mistake(Exception):
    """Ends the reading of one statement."""


TOKEN = re.compile(r'(?P<space>\s+|#.*)|(?P<text>"[^"]*")|(?P<number>\d{1,9}\b)'
                   r'|(?P<word>\w+)|(?P<mark>[\[\]])', re.ASCII)


def tokenize(line: str) -> List[Tuple[str, str]]:
    tokens, at = [], 0
    while at < len(line):
        match = TOKEN.match(line, at)
        if not match:
            raise Mistake("the text has no closing quote" if line[at] == '"'
                          else f"unexpected character '{line[at]}'")
        if match.lastgroup != "space":
            tokens.append((match.lastgroup or "", match.group().strip('"')))
        at = match.end()
    return tokens


class Parser:
    """Reads line by line: a statement never spans two."""

    def __init__(self) -> None:
        self.mistakes: List[Tuple[int, str]] = []
        self.line = 0
        self.tokens: List[Tuple[str, str]] = []
        self.version = 0
        self.ops: List[Op] = []
        self.op: Optional[Op] = None
        self.numbers: Dict[int, int] = {}
        self.names: Dict[str, int] = {}

    def parse(self, data: bytes, stem: str) -> Api:
        for self.line, raw in enumerate(data.split(b"\n"), 1):
            try:
                self.tokens = tokenize(raw.decode("utf-8"))
                if self.tokens:
                    self.statement()
            except UnicodeDecodeError:
                self.complain("not UTF-8")
            except Mistake as mistake:
                self.complain(str(mistake))
        self.finish_op()
        if not self.version:
            self.complain("no version", 1)
        if not self.ops:
            self.complain("no operations", 1)
        return Api(stem, self.version, sorted(self.ops, key=lambda op: op.number))

    def complain(self, reason: str, line: int = 0) -> None:
        self.mistakes.append((line or self.line, reason))

    def take(self, kind: str, what: str) -> str:
        if not self.tokens or self.tokens[0][0] != kind:
            found = f"'{self.tokens[0][1]}'" if self.tokens else "the end of the line"
            raise Mistake(f"{what} expected, not {found}")
        return self.tokens.pop(0)[1]

    def end(self) -> None:
        if self.tokens:
            raise Mistake(f"'{self.tokens[0][1]}' is too much")

    def statement(self) -> None:
        if self.tokens[0][0] == "text":
            return self.doc_statement()
        directive = self.take("word", "a directive")
        if directive == "version":
            return self.version_statement()
        if directive == "op":
            return self.op_statement()
        if directive in ("in", "out"):
            return self.arg_statement(directive == "out")
        raise Mistake(f"unknown directive '{directive}'")

    def version_statement(self) -> None:
        number = int(self.take("number", "a version number"))
        self.end()
        if self.version:
            raise Mistake("a second version")
        if not 1 <= number <= 65535:
            raise Mistake(f"version {number} is not in 1..65535")
        self.version = number

    def op_statement(self) -> None:
        self.finish_op()
        # Where this line is wrong, the arguments below it are still checked.
        op = self.op = Op(self.line)
        op.number = self.op_number()
        op.name = self.identifier("an operation's name", TAKEN_OPS)
        if op.name in self.names:
            raise Mistake(f"operation '{op.name}' exists since line {self.names[op.name]}")
        kind = self.take("word", "post or call")
        if kind not in ("post", "call"):
            raise Mistake(f"post or call expected, not '{kind}'")
        op.call = kind == "call"
        if self.tokens[:1] in ([("word", "work")], [("word", "apart")]):
            op.order = self.tokens.pop(0)[1]
        if op.order != "work" and self.tokens[:1] == [("word", "errand")]:
            self.tokens.pop(0)
            op.errand = True
        self.end()
        self.names[op.name] = op.line
        self.ops.append(op)

    def op_number(self) -> int:
        number = int(self.take("number", "an operation's number"))
        if not 1 <= number <= NUMBER_MAX:
            raise Mistake(f"number {number} is not in 1..{NUMBER_MAX}")
        if number in self.numbers:
            raise Mistake(f"number {number} is taken since line {self.numbers[number]}")
        self.numbers[number] = self.line
        return number

    def doc_statement(self) -> None:
        doc = self.take("text", "a text").strip()
        self.end()
        if not self.op:
            raise Mistake("a text before the first operation")
        if self.op.doc is not None:
            raise Mistake("a second text for this operation")
        if self.op.ins or self.op.outs:
            raise Mistake("the text comes before the arguments")
        if not doc:
            raise Mistake("an empty text")
        if "*/" in doc or "/*" in doc:
            raise Mistake("the text would end or open a comment in C")
        self.op.doc = doc

    def arg_statement(self, out: bool) -> None:
        op = self.op
        if not op:
            raise Mistake("an argument before the first operation")
        kind, count = self.arg_type()
        arg = Arg(self.line, self.identifier("an argument's name", TAKEN), kind, count)
        self.end()
        if re.fullmatch(r"reserved\d*|out_.*", arg.name):
            raise Mistake(f"'{arg.name}' is a name of the generated code")
        self.check_names(op.outs if out else op.ins, arg)
        if out:
            self.check_out(op, arg)
        elif op.bytes:
            raise Mistake("bytes twice" if kind == "bytes" else "bytes come last")
        (op.outs if out else op.ins).append(arg)

    def arg_type(self) -> Tuple[str, int]:
        kind = self.take("word", "a type")
        if kind not in TYPES:
            raise Mistake(f"unknown type '{kind}'")
        if not self.tokens or self.tokens[0] != ("mark", "["):
            return kind, 0
        self.tokens.pop(0)
        count = int(self.take("number", "an array's length"))
        if self.take("mark", "']'") != "]":
            raise Mistake("']' expected, not '['")
        if kind not in SCALARS:
            raise Mistake(f"no arrays of {kind}")
        if not 1 <= count <= ARRAY_MAX:
            raise Mistake(f"array length {count} is not in 1..{ARRAY_MAX}")
        return kind, count

    def check_names(self, others: List[Arg], arg: Arg) -> None:
        """An argument and a result may share a name: they never meet in one scope."""
        used = {name for other in others for name in other.c_names()}
        for name in arg.c_names():
            if name in used:
                raise Mistake(f"'{name}' exists already")

    def check_out(self, op: Op, arg: Arg) -> None:
        if op.call is False:
            raise Mistake("a post has no results")
        if arg.type in SPANS or arg.type == "bytes":
            raise Mistake(f"{arg.type} can't be a result")

    def identifier(self, what: str, taken: set) -> str:
        if self.tokens and self.tokens[0][0] == "number":
            raise Mistake(f"'{self.tokens[0][1]}' is not a lower-case C identifier")
        name = self.take("word", what)
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise Mistake(f"'{name}' is not a lower-case C identifier")
        if name in C_WORDS:
            raise Mistake(f"'{name}' is a word of C")
        if name in taken:
            raise Mistake(f"'{name}' is a name of the generated code")
        return name

    def finish_op(self) -> None:
        op, self.op = self.op, None
        if not op:
            return
        op.request, op.reply = lay_out(op.ins), lay_out(op.outs)
        # A mistake inside the operation may have been its text.
        if op.doc is None and not any(line >= op.line for line, _ in self.mistakes):
            self.complain("the operation has no text", op.line)
        if op.request.size > REQUEST_MAX:
            self.complain(f"the arguments take {op.request.size} bytes, more than {REQUEST_MAX}",
                          op.line)
        if op.reply.size > REPLY_MAX:
            self.complain(f"the results take {op.reply.size} bytes, more than {REPLY_MAX}",
                          op.line)
