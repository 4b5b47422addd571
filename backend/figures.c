/*
 * Figures of GPUs, not older than a second; see figures.h.
 */
#include "backend/figures.h"

#include "backend/nvml.h"

static void forget(uint32_t values[FGV_FIGURES])
{
	for (unsigned i = 0; i < FGV_FIGURES; i++)
		values[i] = FGV_FIGURE_UNKNOWN;
}

void fgv_figures_init(struct fgv_figures *figures, struct fgv_nvml *nvml)
{
	figures->nvml = nvml;
	for (unsigned i = 0; i < FGV_GPU_DEVICES_MAX; i++) {
		figures->device[i].read_ns = 0;
		figures->device[i].has_nvlinks = false;
		forget(figures->device[i].values);
	}
}

const uint32_t *fgv_figures_read(struct fgv_figures *figures, unsigned index, const char *place,
				 uint64_t now_ns)
{
	uint32_t *values = figures->device[index].values;
	uint64_t read_ns = figures->device[index].read_ns;

	if (!figures->nvml || !*place || (read_ns && now_ns - read_ns < FGV_FIGURES_NS))
		return values;
	figures->device[index].read_ns = now_ns;
	forget(values);
	fgv_nvml_measure(figures->nvml, place, values);
	return values;
}

uint32_t fgv_figures_nvlinks(struct fgv_figures *figures, unsigned index, const char *place)
{
	if (!figures->nvml || !*place)
		return 0;
	if (!figures->device[index].has_nvlinks)
		figures->device[index].nvlinks = fgv_nvml_nvlinks(figures->nvml, place);
	figures->device[index].has_nvlinks = true;
	return figures->device[index].nvlinks;
}
