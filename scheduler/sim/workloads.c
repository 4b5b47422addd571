/*
 * The paper's Table 3, and how a row becomes a program. The last column is not in the
 * table: which of a program's synchronous calls wait for the GPU. Most of those that the
 * table counts are cudaGetLastError() after a launch, which needs an answer from the vGPU
 * but none from the GPU; their number per launch tells (BlackScholes: one per launch; srad:
 * 13 per 5 launches, of which 2 are copies). These two were read off the programs; of CS,
 * HG and SCAN it is inferred from their one call per launch; the others are assumed to wait.
 */
#include <string.h>

#include "common/util.h"
#include "scheduler/sim/sim.h"

const struct sim_workload sim_workloads[] = {
	{"CFD", "cfd", 198, 49.761, 87.130, 8.0, 1},
	{"HW", "heartwall", 10201, 0.794, 11.233, 1.3, 1},
	{"HS", "hotspot", 133, 59.520, 0.014, 7.8, 1},
	{"LMD", "laveMD", 1908357, 0.002, 0.061, 3.4, 1},
	{"NW", "nw", 11032, 2.666, 0.076, 1.4, 1},
	{"PF", "pathfinder", 592, 0.027, 0.078, 1.8, 1},
	{"SRD1", "srad_v1", 46, 247.525, 643.589, 9.3, 2.0 / 13},
	{"BS", "BlackScholes", 377, 26.318, 26.355, 7.6, 0},
	{"CS", "convolutionSeparable", 391, 19.223, 19.281, 5.2, 0},
	{"HG", "histogram", 431, 39.561, 39.588, 10.1, 0},
	{"MM", "matrixMul", 207, 44.241, 0.033, 5.8, 1},
	{"SCAN", "scan", 171, 54.705, 54.757, 8.8, 0},
	{.name = NULL},
};

const struct sim_workload *sim_workload_find(const char *name)
{
	for (const struct sim_workload *w = sim_workloads; w->name != NULL; w++)
		if (strcmp(w->name, name) == 0 || strcmp(w->title, name) == 0)
			return w;
	return NULL;
}

/* Few synchronous calls for its launches: they belong to setting up and taking down. */
static bool in_loop(const struct sim_workload *workload)
{
	return workload->sync_calls > 0.1 * workload->async_calls;
}

/*
 * A program that waits for the GPU in its loop spends the rest of its 10 ms on the
 * processor, between calls. One that does not wait runs ahead of the GPU; the rest of its
 * time was spent outside its loop, and is left out.
 */
struct sim_program sim_program_of(const struct sim_workload *workload,
				  const struct sim_params *params)
{
	double calls = workload->async_calls + workload->sync_calls;
	double waits = workload->sync_calls * workload->waits;
	double gpu_ns = workload->async_calls * workload->kernel_us * FGV_NS_PER_US +
			waits * (double)(params->copy_ns);
	double rest_ns = (10.0 * FGV_NS_PER_MS - gpu_ns) / calls;
	struct sim_program program = {
		.kernel_ns = workload->kernel_us * FGV_NS_PER_US,
		.jitter = 0.05,
		.host_ns = (double)params->call_ns,
		.sync_per_async = workload->sync_calls / workload->async_calls,
		.waits = workload->waits,
	};

	if (!in_loop(workload))
		program.sync_per_async = 0;
	else if (waits > 0 && rest_ns > program.host_ns)
		program.host_ns = rest_ns;
	return program;
}
