/*
 * Counts a program's calls that wait for the GPU, or ask it something, in NVIDIA's runtime
 * as well. Loaded before the program (LD_PRELOAD), it has functions of the same names, which
 * count and go on to the library's own. When the program ends, a line calls=N goes to the
 * file that SYNC_CALLS names, at its end.
 *
 * Copies whose names end in Async are among them: from or to pageable memory they wait.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Each with its variant for default streams of threads. */
#define STREAMED(X)                                                                                \
	X(cudaStreamSynchronize, _ptsz)                                                            \
	X(cudaStreamQuery, _ptsz)                                                                  \
	X(cudaMemcpy, _ptds)                                                                       \
	X(cudaMemcpyToSymbol, _ptds)                                                               \
	X(cudaMemcpyFromSymbol, _ptds)                                                             \
	X(cudaMemcpy2D, _ptds)                                                                     \
	X(cudaMemcpy2DToArray, _ptds)                                                              \
	X(cudaMemcpy2DFromArray, _ptds)                                                            \
	X(cudaMemcpyToArray, _ptds)                                                                \
	X(cudaMemcpyFromArray, _ptds)                                                              \
	X(cudaMemcpy3D, _ptds)                                                                     \
	X(cudaMemcpyAsync, _ptsz)                                                                  \
	X(cudaMemcpyToSymbolAsync, _ptsz)                                                          \
	X(cudaMemcpyFromSymbolAsync, _ptsz)                                                        \
	X(cudaMemcpy2DAsync, _ptsz)                                                                \
	X(cudaMemcpy2DToArrayAsync, _ptsz)                                                         \
	X(cudaMemcpy2DFromArrayAsync, _ptsz)                                                       \
	X(cudaMemcpyToArrayAsync, _ptsz)                                                           \
	X(cudaMemcpyFromArrayAsync, _ptsz)                                                         \
	X(cudaMemcpy3DAsync, _ptsz)
#define PLAIN(X)                                                                                   \
	X(cudaDeviceSynchronize)                                                                   \
	X(cudaEventSynchronize)                                                                    \
	X(cudaEventQuery)                                                                          \
	X(cudaEventElapsedTime)                                                                    \
	X(cudaFree)                                                                                \
	X(cudaHostUnregister)                                                                      \
	X(cudaFreeHost)                                                                            \
	X(cudaDeviceGetLimit)                                                                      \
	X(cudaDeviceSetLimit)                                                                      \
	X(cudaDeviceReset)

static unsigned long calls __attribute__((used));

/* Arguments stay where the caller put them, in whatever registers and on the stack. */
#define STAND_IN(name)                                                                             \
	static void *next_##name __attribute__((used));                                            \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                \
		"lock incq calls(%rip)\njmp *next_" #name "(%rip)\n.size " #name ", . - " #name    \
		"\n");
#define STAND_IN_BOTH(name, suffix) STAND_IN(name) STAND_IN(name##suffix)

PLAIN(STAND_IN)
STREAMED(STAND_IN_BOTH)

#define FIND(name)		next_##name = dlsym(RTLD_NEXT, #name);
#define FIND_BOTH(name, suffix) FIND(name) FIND(name##suffix)

__attribute__((constructor)) static void find(void)
{
	PLAIN(FIND)
	STREAMED(FIND_BOTH)
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("SYNC_CALLS");
	int fd = path && calls ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "calls=%lu\n", calls);
	close(fd);
}
