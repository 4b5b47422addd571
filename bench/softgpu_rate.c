/*
 * How fast the soft GPU's machine is: million warp-instructions in a second of a processor's time,
 * by kind, and how long a text of PTX takes to load. Output: lines of key=value.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/softgpu.h"

#define UNROLL	16
#define THREADS 256
#define WARPS	(THREADS / 32)

static const struct {
	const char *name;
	const char *body; /* repeated UNROLL times; none: the loop alone */
	unsigned instructions;
} kinds[] = {
	{"int_add", "add.s32 %r1, %r1, %r2;", 1},
	{"int_mad_wide", "mad.wide.s32 %rd5, %r1, %r2, %rd5;", 1},
	{"int_div", "div.s32 %r3, %r1, %r2;", 1},
	{"f32_fma", "fma.rn.f32 %f1, %f1, %f2, %f3;", 1},
	{"f32_fma_ftz", "fma.rn.ftz.f32 %f1, %f1, %f2, %f3;", 1},
	{"f32_div", "div.rn.f32 %f4, %f1, %f2;", 1},
	{"f32_ex2", "ex2.approx.ftz.f32 %f4, %f1;", 1},
	{"f64_fma", "fma.rn.f64 %fd1, %fd1, %fd2, %fd3;", 1},
	{"f16x2_fma", "fma.rn.f16x2 %r4, %r1, %r2, %r3;", 1},
	{"f16_add", "add.f16 %rs1, %rs1, %rs2;", 1},
	{"cvt_f16_f32", "cvt.rn.f16.f32 %rs1, %f1;", 1},
	{"ld_global_row", "ld.global.u32 %r3, [%rd1];", 1},
	{"st_global_row", "st.global.u32 [%rd1], %r3;", 1},
	{"ld_global_scattered", "ld.global.u32 %r3, [%rd2];", 1},
	{"st_global_scattered", "st.global.u32 [%rd2], %r3;", 1},
	{"ld_global_v4", "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3];", 1},
	{"ld_shared_row", "ld.shared.u32 %r3, [%r7];", 1},
	{"st_shared_row", "st.shared.u32 [%r7], %r3;", 1},
	{"ld_local", "ld.local.u32 %r3, [depot];", 1},
	{"shuffle", "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;", 1},
	{"vote_ballot", "vote.sync.ballot.b32 %r3, %p2, -1;", 1},
	{"atomic_shared", "atom.shared.add.u32 %r3, [%r7], 1;", 1},
	{"atomic_global_one", "red.global.add.u32 [%rd4], 1;", 1},
	{"predicated", "@%p2 add.s32 %r1, %r1, %r2;", 1},
	{"barrier", "bar.sync 0;", 1},
	/* A branch that divides the warp, an instruction on each side, and where they meet. */
	{"divergent_branch",
	 "@%p2 bra $a#; add.s32 %r1, %r1, 1; bra $b#; $a#: add.s32 %r1, %r1, 2; $b#:", 4},
};

static const char head[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".visible .entry k(.param .u64 data, .param .u32 rounds)\n{\n"
	".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<12>; .reg .f32 %f<6>; .reg .f64 %fd<4>;\n"
	".reg .b64 %rd<8>; .shared .align 16 .b8 words[4096]; .local .align 8 .b8 depot[64];\n"
	"ld.param.u64 %rd4, [data]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, %rd4;\n"
	"mul.lo.u32 %r2, %r1, 2654435; and.b32 %r2, %r2, 16383; mad.wide.u32 %rd2, %r2, 4, %rd4;\n"
	"mad.wide.u32 %rd3, %r1, 16, %rd4; mov.u32 %r7, words; mad.lo.u32 %r7, %r1, 4, %r7;\n"
	"add.s32 %r2, %r2, 3; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, 0f3F000000; mov.f32 %f3, %f2;\n"
	"mov.f64 %fd1, 0d3FF0000000000000; mov.f64 %fd2, 0d3FE0000000000000; mov.f64 %fd3, %fd2;\n"
	"mov.u64 %rd5, 0; mov.b16 %rs1, 0x3c00; mov.b16 %rs2, 0x0400; mov.u32 %r3, 7; st.local.u32 "
	"[depot], %r1;\n"
	"and.b32 %r8, %r1, 1; setp.eq.u32 %p2, %r8, 0; ld.param.u32 %r9, [rounds];\n$loop:\n";
static const char tail[] =
	"\nsub.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0; @%p1 bra $loop;\nret;\n}\n";

static struct softgpu *gpu;

/* Processor time of the process, which is as good as its only worker's. */
static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "softgpu_rate: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static void drain(void)
{
	static const struct timespec pause = {.tv_nsec = 20000};
	CUresult result;

	while ((result = softgpu_query(gpu)) == CUDA_ERROR_NOT_READY)
		nanosleep(&pause, NULL);
	if (result != CUDA_SUCCESS)
		fail("kernel", "a fault");
}

/* The body UNROLL times, "#" standing for the number of the copy. */
static void write_text(char *text, size_t size, const char *body)
{
	size_t used = (size_t)snprintf(text, size, "%s", head);

	for (unsigned i = 0; i < UNROLL; i++) {
		for (const char *p = body; *p && used + 16 < size; p++) {
			if (*p == '#')
				used += (size_t)snprintf(text + used, size - used, "%u", i);
			else
				text[used++] = *p;
		}
		text[used++] = '\n';
	}
	snprintf(text + used, size - used, "%s", tail);
}

static double run_ms(struct softgpu_function *f, uint64_t data, uint32_t rounds)
{
	uint32_t grid[3] = {1, 1, 1};
	uint32_t block[3] = {THREADS, 1, 1};
	void *args[] = {&data, &rounds};
	double start = now_ms();

	if (softgpu_launch(gpu, f, grid, block, 0, NULL, args) != CUDA_SUCCESS)
		fail("kernel", "cannot be launched");
	drain();
	return now_ms() - start;
}

/* Milliseconds of one round of the loop, from as many as take @target_ms. */
static double round_ms(const char *body, uint64_t data, double target_ms)
{
	static char text[16384];
	const char *texts[] = {text};
	char log[256] = "";
	struct softgpu_module *module;
	struct softgpu_function *f;
	uint32_t rounds = 64;
	double ms;

	write_text(text, sizeof(text), body);
	if (softgpu_module_load(gpu, texts, 1, log, sizeof(log), &module) != CUDA_SUCCESS)
		fail(body, log);
	softgpu_module_function(module, "k", &f);
	for (;;) {
		ms = run_ms(f, data, rounds);
		if (ms >= target_ms || rounds > 1u << 28)
			break;
		rounds *= ms > target_ms / 16 ? 2 : 8;
	}
	softgpu_module_unload(gpu, module);
	return ms / rounds;
}

static void measure_kinds(double target_ms)
{
	uint64_t data;
	double loop;

	if (softgpu_mem_alloc(gpu, 1 << 20, &data) != CUDA_SUCCESS)
		fail("memory", "none");
	loop = round_ms("", data, target_ms);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		double ms = round_ms(kinds[i].body, data, target_ms) - loop;
		double count = (double)kinds[i].instructions * UNROLL * WARPS;

		printf("kind=%s million_per_s=%.1f\n", kinds[i].name, count / ms / 1e3);
		fflush(stdout);
	}
}

static char *read_text(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;

	if (!f || fseek(f, 0, SEEK_END))
		fail(path, "cannot be read");
	*bytes = (size_t)ftell(f);
	rewind(f);
	text = calloc(1, *bytes + 1);
	if (!text || fread(text, 1, *bytes, f) != *bytes)
		fail(path, "cannot be read");
	fclose(f);
	return text;
}

static void measure_load(const char *path)
{
	size_t bytes;
	char *text = read_text(path, &bytes);
	const char *texts[] = {text};
	char log[256] = "";
	struct softgpu_module *module;
	double start = now_ms();

	if (softgpu_module_load(gpu, texts, 1, log, sizeof(log), &module) != CUDA_SUCCESS)
		fail(path, log);
	printf("load=%s bytes=%zu ms=%.1f\n", path, bytes, now_ms() - start);
	softgpu_module_unload(gpu, module);
	free(text);
}

/* usage: softgpu_rate TARGET_MS [PTX...] */
int main(int argc, char **argv)
{
	struct softgpu_config config = {
		.va_base = 0x200000000000ull, .memory_bytes = 512 << 20, .workers = 1};

	if (argc < 2)
		fail("usage", "softgpu_rate TARGET_MS [PTX...]");
	if (softgpu_create(&config, &gpu) != CUDA_SUCCESS)
		fail("device", "cannot be created");
	if (argc == 2)
		measure_kinds(strtod(argv[1], NULL));
	for (int i = 2; i < argc; i++)
		measure_load(argv[i]);
	softgpu_destroy(gpu);
	return EXIT_SUCCESS;
}
