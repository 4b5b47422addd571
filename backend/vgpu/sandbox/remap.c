/*
 * A program for the kernel's filter of system calls. It has words of 32 bits only; where a
 * condition does not hold, it jumps to its end, which refuses the call.
 */
#define _GNU_SOURCE
#include "backend/vgpu/sandbox/remap.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CODE_MAX 64
#define REFUSE	 UINT8_MAX /* a jump there, until it is known how far that is */

/* Arguments of mremap(), and their place among those of a call. */
enum argument { OLD_ADDRESS, OLD_LEN, NEW_LEN, FLAGS };

/* Words of the program's own memory, where a sum of 64 bits is kept. */
enum { SUM_LOW, SUM_HIGH };

struct program {
	struct sock_filter code[CODE_MAX];
	unsigned short count;
};

/* A number of 64 bits, by what loads its halves. */
struct number {
	struct sock_filter low, high;
};

static void add(struct program *program, struct sock_filter instruction)
{
	program->code[program->count++] = instruction;
}

static void add_plain(struct program *program, uint16_t code, uint32_t k)
{
	add(program, (struct sock_filter)BPF_STMT(code, k));
}

static void add_jump(struct program *program, uint16_t test, uint32_t k, uint8_t yes, uint8_t no)
{
	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test, k, yes, no));
}

static struct number argument(enum argument which)
{
	uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + which * sizeof(uint64_t));

	return (struct number){BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
			       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + sizeof(uint32_t))};
}

static uint32_t low(uint64_t value)
{
	return (uint32_t)value;
}

static uint32_t high(uint64_t value)
{
	return (uint32_t)(value >> 32);
}

static void ask_equal(struct program *program, struct number number, uint64_t value)
{
	add(program, number.high);
	add_jump(program, BPF_JEQ, high(value), 0, REFUSE);
	add(program, number.low);
	add_jump(program, BPF_JEQ, low(value), 0, REFUSE);
}

static void ask_at_least(struct program *program, struct number number, uint64_t value)
{
	add(program, number.high);
	add_jump(program, BPF_JGE, high(value), 0, REFUSE);
	add_jump(program, BPF_JEQ, high(value), 0, 2);
	add(program, number.low);
	add_jump(program, BPF_JGE, low(value), 0, REFUSE);
}

static void ask_at_most(struct program *program, struct number number, uint64_t value)
{
	add(program, number.high);
	add_jump(program, BPF_JGT, high(value), REFUSE, 0);
	add_jump(program, BPF_JEQ, high(value), 0, 2);
	add(program, number.low);
	add_jump(program, BPF_JGT, low(value), REFUSE, 0);
}

/* Of two numbers that are small enough for it to fit. */
static struct number add_sum(struct program *program, struct number a, struct number b)
{
	add(program, a.low);
	add_plain(program, BPF_MISC | BPF_TAX, 0);
	add(program, b.low);
	add_plain(program, BPF_ALU | BPF_ADD | BPF_X, 0);
	add_plain(program, BPF_ST, SUM_LOW);
	/* The carry: the sum is less than what went into it. */
	add_jump(program, BPF_JGE | BPF_X, 0, 2, 0);
	add_plain(program, BPF_LD | BPF_IMM, 1);
	add_plain(program, BPF_JMP | BPF_JA, 1);
	add_plain(program, BPF_LD | BPF_IMM, 0);
	add_plain(program, BPF_MISC | BPF_TAX, 0);
	add(program, a.high);
	add_plain(program, BPF_ALU | BPF_ADD | BPF_X, 0);
	add_plain(program, BPF_MISC | BPF_TAX, 0);
	add(program, b.high);
	add_plain(program, BPF_ALU | BPF_ADD | BPF_X, 0);
	add_plain(program, BPF_ST, SUM_HIGH);
	return (struct number){BPF_STMT(BPF_LD | BPF_MEM, SUM_LOW),
			       BPF_STMT(BPF_LD | BPF_MEM, SUM_HIGH)};
}

static void finish(struct program *program)
{
	add_plain(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (unsigned i = 0; i < program->count; i++) {
		struct sock_filter *jump = &program->code[i];

		if (BPF_CLASS(jump->code) != BPF_JMP || BPF_OP(jump->code) == BPF_JA)
			continue;
		if (jump->jt == REFUSE)
			jump->jt = (uint8_t)(program->count - i - 1);
		if (jump->jf == REFUSE)
			jump->jf = (uint8_t)(program->count - i - 1);
	}
	add_plain(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
}

/* Calls by another processor's numbers are the list's to refuse. */
static void write_program(struct program *program, uint64_t base, uint64_t len)
{
	add_plain(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	add_jump(program, BPF_JEQ, SYS_mremap, 1, 0);
	add_plain(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	ask_equal(program, argument(OLD_LEN), 0);
	ask_equal(program, argument(FLAGS), MREMAP_MAYMOVE | MREMAP_FIXED);
	ask_at_least(program, argument(OLD_ADDRESS), base);
	ask_at_most(program, argument(OLD_ADDRESS), base + len);
	ask_at_most(program, argument(NEW_LEN), len);
	ask_at_most(program, add_sum(program, argument(OLD_ADDRESS), argument(NEW_LEN)),
		    base + len);
	finish(program);
}

int fgv_remap_confine(const void *base, uint64_t len)
{
	struct program program = {.count = 0};
	struct sock_fprog loaded = {.filter = program.code};
	long ret;

	write_program(&program, (uintptr_t)base, len);
	loaded.len = program.count;
	ret = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &loaded);
	if (ret > 0)
		return -ESRCH;
	return ret < 0 ? -errno : 0;
}
