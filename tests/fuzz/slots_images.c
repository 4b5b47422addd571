#include "tests/fuzz/slots_images.h"

#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "tests/unit/backend/gpu/fatbin_build.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define KERNEL(name)                                                                               \
	".visible .entry " name "(.param .u64 data, .param .u64 count, .param .u64 more)\n"        \
	"{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n"                               \
	"ld.param.u64 %d1, [data];\nld.param.u64 %d2, [count];\nld.param.u64 %d3, [more];\n"       \
	"mov.u32 %r1, %tid.x;\n"

/* data[i] += more + bias */
static const char add[] = HEAD ".global .align 4 .u32 bias = 5;\n" KERNEL(
	"add") "mul.wide.u32 %d4, %r1, 4;\nadd.s64 %d5, %d1, %d4;\nld.global.u32 %r2, [%d5];\n"
	       "cvt.u32.u64 %r3, %d3;\nld.global.u32 %r4, [bias];\nadd.u32 %r2, %r2, %r3;\n"
	       "add.u32 %r2, %r2, %r4;\nst.global.u32 [%d5], %r2;\nret;\n}\n";

/* A barrier, atomics and votes; and a stack of its own. */
static const char shared[] = HEAD ".extern .shared .align 8 .b8 room[];\n" KERNEL(
	"shared") ".shared .align 8 .b8 fixed[512];\n"
		  "mul.wide.u32 %d4, %r1, 4;\nmov.u64 %d5, fixed;\nadd.s64 %d5, %d5, %d4;\n"
		  "st.shared.u32 [%d5], %r1;\nbar.sync 0;\natom.shared.add.u32 %r2, [fixed], %r1;\n"
		  "vote.sync.ballot.b32 %r3, %p1, 0xffffffff;\natom.global.add.u32 %r4, [%d1], "
		  "%r2;\n"
		  "ret;\n}\n" KERNEL("local") ".local .align 8 .b8 stack[256];\n"
					      "and.b64 %d4, %d2, 252;\nmov.u64 %d5, "
					      "stack;\nadd.s64 %d5, %d5, %d4;\n"
					      "st.local.u32 [%d5], %r1;\nld.local.u32 %r2, "
					      "[%d5];\nst.global.u32 [%d1], %r2;\nret;\n}\n";

/* Ones that wait for memory, that never end, and that fault. */
static const char bad[] = HEAD KERNEL(
	"wait") "again:\nld.volatile.global.u32 %r2, [%d1];\n"
		"setp.eq.u32 %p1, %r2, 0;\n@%p1 bra again;\nret;\n}\n" KERNEL(
			"forever") "again:\nbra.uni again;\nret;\n}\n" KERNEL("fault") "st.global."
										       "u32 [%d3], "
										       "%r1;\ntrap;"
										       "\nret;\n}"
										       "\n";

/* Text, and conditions of graphs. */
static const char print[] = HEAD
	".extern .func (.param .b32 res) vprintf(.param .b64 format, .param .b64 args);\n"
	".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
	".global .align 1 .b8 text[8] = {37, 100, 32, 37, 115, 10, 0, 0};\n" KERNEL(
		"print") ".param .b64 p0;\n.param .b64 p1;\n.param .b32 res;\n.local .align 8 .b8 "
			 "args[16];\n"
			 "mov.u64 %d4, args;\nst.local.u32 [%d4], %r1;\nst.local.u64 [%d4+8], "
			 "%d1;\n"
			 "cvta.local.u64 %d4, %d4;\nmov.u64 %d5, text;\ncvta.global.u64 %d5, %d5;\n"
			 "st.param.b64 [p0], %d5;\nst.param.b64 [p1], %d4;\ncall.uni (res), "
			 "vprintf, (p0, p1);\n"
			 "ret;\n}\n" KERNEL(
				 "choose") ".param .b64 p0;\n.param .b32 p1;\n"
					   "cvt.u32.u64 %r2, %d2;\nst.param.b64 [p0], "
					   "%d1;\nst.param.b32 [p1], %r2;\n"
					   "call.uni cudaGraphSetConditional, (p0, p1);\nret;\n}\n";

static const char managed[] =
	HEAD ".visible .global .attribute(.managed) .align 8 .b8 managed[4096];\n" KERNEL(
		"shade") "tex.2d.v4.f32.s32 {%r2, %r3, %r4, %r5}, [%d2, {%r1, "
			 "%r1}];\nst.global.u32 [%d1], %r2;\n"
			 "sust.b.2d.b32.trap [%d3, {%r1, %r1}], {%r2};\nret;\n}\n";

static uint64_t put(uint8_t *arena, uint64_t len, uint64_t at, const void *from, uint64_t bytes,
		    struct slots_image *image)
{
	if (bytes > len - at)
		abort();
	memcpy(arena + at, from, bytes);
	*image = (struct slots_image){at, bytes};
	return at + fgv_align_up(bytes, 64);
}

uint64_t slots_write_images(uint8_t *arena, uint64_t len, struct slots_image images[SLOTS_IMAGES])
{
	static const char *const texts[] = {add, shared, bad, print, managed};
	static struct fatbin container;
	uint64_t at = 0;

	if (!container.bytes) {
		fatbin_init(&container);
		fatbin_begin(&container);
		fatbin_add_ptx(&container, add);
		fatbin_add_ptx(&container, shared);
	}
	for (unsigned i = 0; i < FGV_ARRAY_LEN(texts); i++)
		at = put(arena, len, at, texts[i], strlen(texts[i]) + 1, &images[i]);
	return put(arena, len, at, container.bytes, container.len, &images[SLOTS_IMAGES - 1]);
}
