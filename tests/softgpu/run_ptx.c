/*
 * Runs PTX on the soft GPU for a test. Jobs come on the standard input: four numbers of 32 bits
 * (bytes of text, threads of the only block, 0 to load it alone, bytes of input, bytes of output), the
 * text, the input. The kernel k(out, in) runs. The answer: the CUresult of loading or running it, a length,
 * and that many bytes of output, or of the log where loading failed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/softgpu.h"

#ifdef __SANITIZE_THREAD__
#define BASE 0x7e9000000000ull /* one of the few places that ThreadSanitizer allows */
#else
#define BASE 0x200000000000ull
#endif

struct job {
	uint32_t text_bytes;
	uint32_t threads;
	uint32_t in_bytes;
	uint32_t out_bytes;
};

static CUresult drain(struct softgpu *gpu)
{
	static const struct timespec pause = {.tv_nsec = 20000};
	CUresult result;

	while ((result = softgpu_query(gpu)) == CUDA_ERROR_NOT_READY)
		nanosleep(&pause, NULL);
	return result;
}

static void answer(CUresult result, const void *bytes, size_t count)
{
	uint32_t head[2] = {result, (uint32_t)count};

	fwrite(head, sizeof(head), 1, stdout);
	fwrite(bytes, 1, count, stdout);
	fflush(stdout);
}

static CUresult launch(struct softgpu *gpu, struct softgpu_module *module, const struct job *job,
		       const void *in, void *out)
{
	uint32_t grid[3] = {1, 1, 1};
	uint32_t block[3] = {job->threads, 1, 1};
	struct softgpu_function *f;
	uint64_t d_in = 0;
	uint64_t d_out = 0;
	void *args[] = {&d_out, &d_in};
	CUresult result = softgpu_module_function(module, "k", &f);

	if (result == CUDA_SUCCESS)
		result = softgpu_mem_alloc(gpu, job->in_bytes + 1, &d_in);
	if (result == CUDA_SUCCESS)
		result = softgpu_mem_alloc(gpu, job->out_bytes + 1, &d_out);
	if (result != CUDA_SUCCESS)
		return result;
	softgpu_copy_htod(gpu, d_in, in, job->in_bytes, NULL);
	result = softgpu_launch(gpu, f, grid, block, 0, NULL, args);
	softgpu_copy_dtoh(gpu, out, d_out, job->out_bytes, NULL);
	if (result == CUDA_SUCCESS)
		result = drain(gpu);
	softgpu_mem_free(gpu, d_in);
	softgpu_mem_free(gpu, d_out);
	return result;
}

static void run(struct softgpu *gpu, const struct job *job, const char *text, const void *in,
		void *out)
{
	struct softgpu_module *module = NULL;
	char log[512] = "";
	CUresult result = softgpu_module_load(gpu, &text, 1, log, sizeof(log), &module);

	if (result != CUDA_SUCCESS) {
		answer(result, log, strlen(log));
		return;
	}
	if (job->threads)
		result = launch(gpu, module, job, in, out);
	answer(result, out, result == CUDA_SUCCESS ? job->out_bytes : 0);
	softgpu_module_unload(gpu, module);
}

int main(void)
{
	struct softgpu_config config = {.va_base = BASE, .memory_bytes = 64 << 20, .workers = 1};
	struct softgpu *gpu;
	struct job job;

	if (softgpu_create(&config, &gpu) != CUDA_SUCCESS)
		return EXIT_FAILURE;
	while (fread(&job, sizeof(job), 1, stdin) == 1) {
		char *text = calloc(1, job.text_bytes + 1);
		char *in = calloc(1, job.in_bytes + 1);
		char *out = calloc(1, job.out_bytes + 1);

		if (!text || !in || !out ||
		    fread(text, 1, job.text_bytes, stdin) != job.text_bytes ||
		    fread(in, 1, job.in_bytes, stdin) != job.in_bytes)
			return EXIT_FAILURE;
		run(gpu, &job, text, in, out);
		free(text);
		free(in);
		free(out);
	}
	softgpu_destroy(gpu);
	return EXIT_SUCCESS;
}
