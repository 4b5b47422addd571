/*
 * What a launch is, for the files that check, post and ask about launches.
 */
#ifndef FGV_CUDA_LAUNCH_CONFIG_H
#define FGV_CUDA_LAUNCH_CONFIG_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct fgv_launch {
	uint32_t grid[3];
	uint32_t block[3];
	size_t shared_bytes;
	CUstream stream;
	/* One of both; neither, if the kernel has no parameters. */
	void **args;	  /* a pointer to each argument */
	void **extra;	  /* all of them in one buffer, as CU_LAUNCH_PARAM_... say */
	bool cooperative; /* all blocks run at once */
	bool in_clusters; /* of so many blocks, placed so: */
	uint32_t cluster[3];
	CUclusterSchedulingPolicy policy;
	bool has_priority; /* of its own, for a capture: the stream's is launched with */
	int priority;
	bool early;		    /* need not wait for the end of the kernel before it */
	CUevent event;		    /* to be recorded once it has come so far; NULL: none */
	CUgraphEdgeData event_edge; /* of what waits for that in a capture */
};

/* What @config asks for; without arguments. CUDA_ERROR_INVALID_VALUE, or what attributes say. */
CUresult fgv_launch_read(const CUlaunchConfig *config, struct fgv_launch *launch);

#endif
