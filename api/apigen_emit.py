"""The emitters: each makes the text of one output file from a checked model."""

import re
import textwrap
from typing import List

from apigen_parse import (HANDLES, OPTIONAL, REPLY_MAX, REQUEST_MAX, SPANS, Api, Arg, Layout,
                          Op)

COLUMNS = 100


# --- C -----------------------------------------------------------------------------------

def wrap(head: str, items: List[str], tail: str, joint: str = ", ", columns: int = COLUMNS) -> str:
    """head item, item, ... tail; broken lines continue under the end of head."""
    width = len(head.expandtabs(8))
    indent = "\t" * (width // 8) + " " * (width % 8)
    lines = [head]
    for at, item in enumerate(items):
        last = at == len(items) - 1
        piece = item + (tail if last else joint)
        if len((lines[-1] + piece.rstrip()).expandtabs(8)) > columns and at:
            lines[-1] = lines[-1].rstrip()
            lines.append(indent)
        lines[-1] += piece
    return "\n".join(lines) if items else head + tail


def statement(head: str, items: List[str], tail: str = ");", joint: str = ", ") -> str:
    """The same inside a function's body, which function() indents."""
    return wrap(head, items, tail, joint, COLUMNS - 8)


def comment(text: str) -> str:
    if len(text) <= COLUMNS - 6:
        return f"/* {text} */"
    lines = textwrap.wrap(text, COLUMNS - 3)
    return "\n".join(["/*", *(" * " + line for line in lines), " */"])


def banner(api: Api, text: str) -> str:
    lines = textwrap.wrap(" ".join(text.split()), COLUMNS - 12)
    return "\n".join(["/*", f" * Made from {api.stem}.api by apigen.py; edit those.", " *",
                      *(" * " + line for line in lines), " */"])


def guarded(api: Api, part: str, text: str, body: List[str]) -> str:
    guard = f"FGV_API_{api.stem}_{part}_H".upper()
    return "\n".join([banner(api, text), f"#ifndef {guard}", f"#define {guard}", "", *body, "",
                      "#endif"]) + "\n"


def function(head: str, params: List[str], body: List[str]) -> List[str]:
    return [wrap(head + "(", params or ["void"], ")"), "{",
            *(textwrap.indent(line, "\t") for line in body), "}", ""]


def sizeof(op: Op, part: str) -> str:
    size = op.request.size if part == "request" else op.reply.size
    return f"sizeof(struct fgv_{op.name}_{part})" if size else "0"


# --- Both sides: the wire ----------------------------------------------------------------

def wire_header(api: Api) -> str:
    body = ["#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", "",
            '#include "api/wire.h"', "",
            "/* For people; what both sides compare is the hash. */",
            f"#define FGV_API_VERSION {api.version}", "",
            "/* Of all that both must have alike: the operations, and what the build adds. */",
            f"#define FGV_API_HASH 0x{api.hash():016x}ull", "", "enum fgv_op {",
            *(f"\t{op.enum} = {op.number}," for op in api.ops), "};",
            f"#define FGV_OP_MAX {max(op.number for op in api.ops)}", "",
            "struct fgv_op_info {", "\tconst char *name;\t/* NULL: no such operation */",
            "\tuint16_t request_len;\t/* of the arguments, without bytes */",
            "\tuint16_t reply_len;", "\tbool call;\t\t/* has a reply */",
            "\tbool has_bytes;\t\t/* data follows the arguments */",
            "\tbool work;\t\t/* puts work on the GPU: takes the grant */",
            "\tbool apart;\t\t/* need not wait for work before it */",
            "\tbool errand;\t\t/* no work, but takes the driver's time */",
            "\tuint16_t stream_off;\t/* of the stream in the arguments */", "};",
            "#define FGV_OP_NO_STREAM UINT16_MAX",
            "extern const struct fgv_op_info fgv_op_infos[FGV_OP_MAX + 1];", "",
            f'_Static_assert(FGV_SLOT_FIRST >= {REPLY_MAX}, "a reply fits its slot");',
            f'_Static_assert(FGV_MESSAGE_MAX - FGV_DATA_MAX >= {REQUEST_MAX}, '
            '"arguments fit beside data");']
    for op in api.ops:
        if op.request.size or op.reply.size:
            body += ["", comment(op.doc or "")]
        body += wire_struct(f"fgv_{op.name}_request", op.request)
        body += wire_struct(f"fgv_{op.name}_reply", op.reply)
    return guarded(api, "wire", "The messages of all operations, as guest and host exchange "
                   "them. Reserved fields are zero on send and checked on receipt.", body)


def wire_struct(name: str, layout: Layout) -> List[str]:
    if not layout.size:
        return []
    return [f"struct {name} {{", *(f"\t{m.declare()};" for m in layout.members), "};",
            *(f'_Static_assert(offsetof(struct {name}, {m.name}) == {m.offset}, "wire");'
              for m in layout.members),
            f'_Static_assert(sizeof(struct {name}) == {layout.size}, "wire");']


def wire_source(api: Api) -> str:
    lines = [banner(api, "The table of operations."), f'#include "api/{api.stem}_wire.h"', "",
             "const struct fgv_op_info fgv_op_infos[FGV_OP_MAX + 1] = {"]
    for op in api.ops:
        lines.append(wrap(f"\t[{op.enum}] = {{", [
            f'"{op.name}"', sizeof(op, "request"), sizeof(op, "reply"),
            *(str(bool(flag)).lower() for flag in
              (op.call, op.bytes, op.order == "work", op.order == "apart", op.errand)),
            str(op.stream.offset) if op.stream else "FGV_OP_NO_STREAM"], "},"))
    return "\n".join([*lines, "};"]) + "\n"


# --- The guest's stubs -------------------------------------------------------------------

def guest_params(op: Op, data: bool = True) -> List[str]:
    """In C, the in arguments; without data only the length of bytes."""
    params = ["struct fgv_lane *lane"]
    for arg in op.ins:
        if arg.type == "bytes":
            params += [f"const void *{arg.name}"] if data else []
            params.append(f"uint32_t {arg.name}_len")
        params += [("const " if m.count else "") + m.declare() for m in arg.members()]
    return params


def guest_names(op: Op, data: bool = True) -> List[str]:
    return [re.sub(r"\[\d+\]", "", p).split()[-1].lstrip("*") for p in guest_params(op, data)]


def out_params(op: Op) -> List[str]:
    return [f"{m.ctype} out_{m.name}[{m.count}]" if m.count else f"{m.ctype} *out_{m.name}"
            for arg in op.outs for m in arg.members()]


def fill(op: Op) -> List[str]:
    lines = []
    for m in op.request.members:
        if m.count:
            lines.append(f"memcpy(msg->{m.name}, {m.name}, sizeof(msg->{m.name}));")
        else:
            lines.append(f"msg->{m.name} = {'0' if m.reserved else m.name};")
    return lines


def open_fixed(op: Op) -> List[str]:
    if not op.request.size:
        return [f"fgv_lane_begin(lane, {op.enum}, 0);"]
    return [statement(f"struct fgv_{op.name}_request *msg = fgv_lane_begin(",
                      ["lane", op.enum, "sizeof(*msg)"]), "", *fill(op)]


def begin_stub(op: Op, head: str) -> List[str]:
    """Opens a request that bytes follow and returns where they go."""
    length = f"{op.ins[-1].name}_len"
    if not op.request.size:
        return function(head, guest_params(op, False),
                        [f"return fgv_lane_begin(lane, {op.enum}, {length});"])
    return function(head, guest_params(op, False), [
        f"struct fgv_{op.name}_request *msg;", "",
        f"if ({length} > FGV_MESSAGE_MAX - sizeof(*msg))", "\treturn NULL;",
        f"msg = fgv_lane_begin(lane, {op.enum}, sizeof(*msg) + {length});", *fill(op),
        "return msg + 1;"])


def open_bytes(op: Op, begin: str) -> List[str]:
    data = op.ins[-1].name
    return [statement(f"void *room = {begin}_{op.name}(", guest_names(op, False)), "",
            "if (!room)", "\treturn CUDA_ERROR_INVALID_VALUE;",
            f"if ({data}_len)", f"\tmemcpy(room, {data}, {data}_len);"]


def post_stub(op: Op) -> List[str]:
    body = open_bytes(op, "fgv_begin") if op.bytes else open_fixed(op)
    return function(f"CUresult fgv_post_{op.name}", guest_params(op),
                    [*body, "fgv_lane_commit(lane);", "return fgv_lane_status(lane);"])


def send_stub(op: Op) -> List[str]:
    if not op.bytes:
        return function(f"uint32_t fgv_send_{op.name}", guest_params(op),
                        [*open_fixed(op), "return fgv_lane_commit(lane);"])
    return [*begin_stub(op, f"static void *begin_{op.name}"),
            *function(f"CUresult fgv_send_{op.name}", [*guest_params(op), "uint32_t *call"],
                      [*open_bytes(op, "begin"), "*call = fgv_lane_commit(lane);",
                       "return CUDA_SUCCESS;"])]


def store(op: Op) -> List[str]:
    """From a checked reply to the caller's results."""
    lines = [line for m in op.reply.reserved()
             for line in (f"if (reply.{m.name})", "\treturn CUDA_ERROR_UNKNOWN;")]
    return lines + [f"memcpy(out_{m.name}, reply.{m.name}, sizeof(reply.{m.name}));" if m.count
                    else f"*out_{m.name} = reply.{m.name};"
                    for m in op.reply.members if not m.reserved]


def call_stub(op: Op) -> List[str]:
    give_up = ["if (status != CUDA_SUCCESS)", "\treturn status;"]
    sent = f"fgv_send_{op.name}({', '.join(guest_names(op))})"
    places = ["&reply", "sizeof(reply)"] if op.outs else ["NULL", "0"]
    wait = ["lane", "call" if op.bytes else sent, *places]
    body = [f"struct fgv_{op.name}_reply reply;"] if op.outs else []
    body += ["uint32_t call;"] if op.bytes else []
    body += ["CUresult status;", ""] if op.bytes or op.outs else []
    if op.bytes:
        body += [statement(f"status = fgv_send_{op.name}(", [*guest_names(op), "&call"]), *give_up]
    if op.outs:
        body += [statement("status = fgv_lane_wait(", wait), *give_up, *store(op),
                 "return CUDA_SUCCESS;"]
    else:
        body.append(statement("return fgv_lane_wait(", wait))
    return function(f"CUresult fgv_call_{op.name}", [*guest_params(op), *out_params(op)], body)


GUEST_TEXT = """The guest's stubs. A post returns as soon as it lies in the ring: its status is
 that of the session. A call returns its reply's status and stores results only on CUDA_SUCCESS;
 its send half posts and returns the call's number for fgv_lane_wait. A source or a sink is
 (x_off, x_len) in the window. Bytes that are too long for a message are CUDA_ERROR_INVALID_VALUE
 and nothing is sent; the begin half of a post returns NULL then, else where its bytes go, and
 fgv_lane_commit posts it. A stub is called by the thread that owns the lane."""


def guest_header(api: Api) -> str:
    body = ["#include <cuda.h>", "#include <stdint.h>", "#include <string.h>", "",
            '#include "api/guest.h"', f'#include "api/{api.stem}_wire.h"']
    for op in api.ops:
        body += ["", comment(op.doc or "")]
        if not op.call:
            body += begin_stub(op, f"static inline void *fgv_begin_{op.name}") if op.bytes else []
            body.append(wrap(f"CUresult fgv_post_{op.name}(", guest_params(op), ");"))
            continue
        if op.bytes:
            body.append(wrap(f"CUresult fgv_send_{op.name}(",
                             [*guest_params(op), "uint32_t *call"], ");"))
        else:
            body.append(wrap(f"uint32_t fgv_send_{op.name}(", guest_params(op), ");"))
        body.append(wrap(f"CUresult fgv_call_{op.name}(",
                         [*guest_params(op), *out_params(op)], ");"))
    return guarded(api, "guest", GUEST_TEXT, body)


def guest_source(api: Api) -> str:
    lines = [banner(api, "The guest's stubs."), f'#include "api/{api.stem}_guest.h"', ""]
    for op in api.ops:
        lines += [*send_stub(op), *call_stub(op)] if op.call else post_stub(op)
    return "\n".join(lines)


# --- The host's decoding -----------------------------------------------------------------

def decoded(arg: Arg) -> List[str]:
    """Its fields in the struct that a handler gets."""
    name = arg.name
    if arg.type in SPANS:
        return [f"{'const ' if arg.type == 'source' else ''}void *{name}", f"uint64_t {name}_len"]
    if arg.type == "bytes":
        return [f"const void *{name}", f"uint32_t {name}_len"]
    if arg.type in HANDLES:
        return [f"struct fgv_object *{name}"]
    return [arg.members()[0].declare()]


def handler_params(op: Op) -> List[str]:
    return ["struct fgv_session *session", "struct fgv_request *request",
            *([f"const struct fgv_{op.name}_in *in"] if op.ins else []),
            *([f"struct fgv_{op.name}_out *out"] if op.outs else [])]


HOST_TEXT = """The handlers that the vGPU provides, one per operation, with the arguments that
 fgv_dispatch decodes for them and the results that they give. See api/host.h for what was
 checked. A result counts only where the handler returns CUDA_SUCCESS; all are zero before it
 runs. A handle among the results is a new object's. fgv_encode_<op> writes a reply for a handler
 that returned FGV_PENDING: reply has room for FGV_SLOT_FIRST bytes; returns the length."""


def host_header(api: Api) -> str:
    body = ["#include <cuda.h>", "#include <stdint.h>", "", '#include "api/host.h"',
            f'#include "api/{api.stem}_wire.h"']
    for op in api.ops:
        body += ["", comment(op.doc or "")]
        if op.ins:
            body += [f"struct fgv_{op.name}_in {{",
                     *(f"\t{line};" for arg in op.ins for line in decoded(arg)), "};"]
        if op.outs:
            body += [f"struct fgv_{op.name}_out {{",
                     *(f"\t{arg.members()[0].declare()};" for arg in op.outs), "};",
                     f"uint32_t fgv_encode_{op.name}(void *reply, "
                     f"const struct fgv_{op.name}_out *out);"]
        body.append(wrap(f"CUresult fgv_do_{op.name}(", handler_params(op), ");"))
    return guarded(api, "host", HOST_TEXT, body)


HOST_PROLOGUE = """#include <errno.h>
#include <string.h>

/* One call of fgv_dispatch. */
struct frame {
	struct fgv_session *session;
	struct fgv_request *request;
	const uint8_t *message;
	uint32_t len;
	uint8_t *reply;
	uint32_t reply_len;
	CUresult status;
};

static int violation(const struct frame *frame, int error, const char *why)
{
	frame->request->violation = why;
	return error;
}

/* False, and the status set, where there is no such object. */
static inline bool find(struct frame *frame, enum fgv_kind kind, uint32_t handle,
			struct fgv_object **object)
{
	*object = fgv_session_lookup(frame->session, kind, handle);
	if (!*object)
		frame->status = CUDA_ERROR_INVALID_HANDLE;
	return *object;
}

/* The same where the object may be left out: 0 is NULL. */
static inline bool find_any(struct frame *frame, enum fgv_kind kind, uint32_t handle,
			    struct fgv_object **object)
{
	*object = NULL;
	return !handle || find(frame, kind, handle, object);
}
"""

HOST_EPILOGUE = """
/* The length of a message is right before anything looks into it. */
static int check(const struct frame *frame, uint16_t op)
{
	const struct fgv_op_info *info;

	if (op > FGV_OP_MAX || !fgv_op_infos[op].name)
		return violation(frame, -EBADMSG, "unknown operation");
	info = &fgv_op_infos[op];
	if (frame->len < info->request_len)
		return violation(frame, -EBADMSG, "the message is too short");
	if (frame->len > (info->has_bytes ? FGV_MESSAGE_MAX : info->request_len))
		return violation(frame, -EBADMSG, "the message is too long");
	return 0;
}

int fgv_dispatch(struct fgv_session *session, struct fgv_request *request, const void *message,
		 uint32_t len, void *reply, uint32_t *reply_len, CUresult *status)
{
	struct frame frame = {
		.session = session, .request = request, .message = message, .len = len,
		.reply = reply,
	};
	int error;

	request->violation = NULL;
	error = check(&frame, request->op);
	if (!error)
		error = runners[request->op](&frame);
	if (error)
		return error;
	*status = frame.status;
	*reply_len = frame.status == CUDA_SUCCESS ? frame.reply_len : 0;
	return 0;
}
"""


def encode_function(op: Op) -> List[str]:
    body = [f"struct fgv_{op.name}_reply msg;", ""]
    for m in op.reply.members:
        body.append(f"memcpy(msg.{m.name}, out->{m.name}, sizeof(msg.{m.name}));" if m.count
                    else f"msg.{m.name} = {'0' if m.reserved else 'out->' + m.name};")
    body += ["memcpy(reply, &msg, sizeof(msg));", "return sizeof(msg);"]
    return function(f"uint32_t fgv_encode_{op.name}",
                    ["void *reply", f"const struct fgv_{op.name}_out *out"], body)


def decode_lines(op: Op) -> List[str]:
    """From the message to struct in, violations before handles."""
    plain, spans, finds = [], [], []
    for arg in op.ins:
        name = arg.name
        if arg.type in SPANS:
            spans += [statement(f"in.{name} = fgv_session_resolve(",
                                ["frame->session", f"msg.{name}_off", f"msg.{name}_len"]),
                      f"if (!in.{name})",
                      f'\treturn violation(frame, -EFAULT, "{name} lies outside the window");']
            plain.append(f"in.{name}_len = msg.{name}_len;")
        elif arg.type == "bytes":
            fixed = f" + {sizeof(op, 'request')}" if op.request.size else ""
            plain += [f"in.{name} = frame->message{fixed};",
                      f"in.{name}_len = frame->len{fixed.replace('+', '-')};"]
        elif arg.type in HANDLES:
            find = "find_any" if arg.type in OPTIONAL else "find"
            finds.append(f"!{find}(frame, FGV_KIND_{arg.type.upper()}, msg.{name}, &in.{name})")
        elif arg.count:
            plain.append(f"memcpy(in.{name}, msg.{name}, sizeof(in.{name}));")
        else:
            plain.append(f"in.{name} = msg.{name};")
    reserved = [f"msg.{m.name}" for m in op.request.reserved()]
    lines = ["memcpy(&msg, frame->message, sizeof(msg));"] if op.request.size else []
    if reserved:
        lines += [f"if ({' | '.join(reserved)})",
                  '\treturn violation(frame, -EBADMSG, "a reserved field is not zero");']
    lines += spans
    if finds:
        lines += [statement("if (", finds, ")", " || "), "\treturn 0;"]
    return lines + plain


def run_function(op: Op) -> List[str]:
    body = [f"struct fgv_{op.name}_request msg;"] if op.request.size else []
    body += [f"struct fgv_{op.name}_in in;"] if op.ins else []
    body += [f"struct fgv_{op.name}_out out;"] if op.outs else []
    body += [""] if body else []
    body += decode_lines(op)
    body += ["memset(&out, 0, sizeof(out));"] if op.outs else []
    actual = ["frame->session", "frame->request", *(["&in"] if op.ins else []),
              *(["&out"] if op.outs else [])]
    body.append(statement(f"frame->status = fgv_do_{op.name}(", actual))
    if op.outs:
        body += ["if (frame->status == CUDA_SUCCESS)",
                 f"\tframe->reply_len = fgv_encode_{op.name}(frame->reply, &out);"]
    return function(f"static int run_{op.name}", ["struct frame *frame"], [*body, "return 0;"])


def host_source(api: Api) -> str:
    lines = [banner(api, "Decodes requests and runs their handlers."),
             f'#include "api/{api.stem}_host.h"', "", HOST_PROLOGUE]
    for op in api.ops:
        lines += encode_function(op) if op.outs else []
        lines += run_function(op)
    lines += ["static int (*const runners[FGV_OP_MAX + 1])(struct frame *) = {",
              *(f"\t[{op.enum}] = run_{op.name}," for op in api.ops), "};"]
    return "\n".join(lines) + "\n" + HOST_EPILOGUE


# --- The documentation -------------------------------------------------------------------

def docs(api: Api) -> str:
    def shape(arg: Arg) -> str:
        return f"{arg.type}[{arg.count}] {arg.name}" if arg.count else f"{arg.type} {arg.name}"

    lines = ["# Operations", "",
             f"What a guest may ask of its vGPU; version {api.version}. Made from "
             f"`{api.stem}.api` by `apigen.py`.", "",
             "| no. | operation | kind | arguments | results | |",
             "| --- | --- | --- | --- | --- | --- |"]
    for op in api.ops:
        cells = [str(op.number), f"`{op.name}`",
                 ("call" if op.call else "post") + (f", {op.order}" if op.order else "") +
                 (", errand" if op.errand else ""),
                 ", ".join(f"`{shape(a)}`" for a in op.ins),
                 ", ".join(f"`{shape(a)}`" for a in op.outs), (op.doc or "").replace("|", "\\|")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
