/*
 * What the host has measured of its GPU: temperature, power, clocks, link. What it does not
 * know, or a GPU does not have, is not supported.
 */
#include "frontend/libnvml/nvml.h"

#include "common/util.h"

static enum fgv_nvml take(const struct fgv_msg_view *view, enum fgv_figure figure, unsigned *value)
{
	if (!value)
		return FGV_NVML_INVALID_ARGUMENT;
	if (view->figures[figure] == FGV_FIGURE_UNKNOWN)
		return FGV_NVML_NOT_SUPPORTED;
	*value = view->figures[figure];
	return FGV_NVML_SUCCESS;
}

static enum fgv_nvml get(const struct fgv_nvml_device *device, enum fgv_figure figure,
			 unsigned *value)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	return ret ? ret : take(&view, figure, value);
}

/* --- Temperature and fans ---------------------------------------------------- */

/* Sensor 0 is the GPU's; there is no other. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetTemperature(const struct fgv_nvml_device *device,
						  unsigned sensor, unsigned *degrees)
{
	if (sensor)
		return FGV_NVML_INVALID_ARGUMENT;
	return get(device, FGV_FIGURE_TEMPERATURE, degrees);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetTemperatureV(const struct fgv_nvml_device *device,
						   struct fgv_nvml_temperature *temperature)
{
	unsigned degrees = 0;
	enum fgv_nvml ret;

	if (!temperature)
		return FGV_NVML_INVALID_ARGUMENT;
	if (temperature->version != FGV_NVML_VERSION(*temperature, 1))
		return FGV_NVML_ARGUMENT_VERSION;
	ret = nvmlDeviceGetTemperature(device, temperature->sensor, &degrees);
	if (!ret)
		temperature->degrees = (int32_t)degrees;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetFanSpeed(const struct fgv_nvml_device *device,
					       unsigned *percent)
{
	return get(device, FGV_FIGURE_FAN, percent);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetFanSpeed_v2(const struct fgv_nvml_device *device,
						  unsigned fan, unsigned *percent)
{
	return fan ? FGV_NVML_INVALID_ARGUMENT : get(device, FGV_FIGURE_FAN, percent);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetNumFans(const struct fgv_nvml_device *device, unsigned *count)
{
	unsigned percent;
	enum fgv_nvml ret = get(device, FGV_FIGURE_FAN, &percent);

	if (ret && ret != FGV_NVML_NOT_SUPPORTED)
		return ret;
	if (!count)
		return FGV_NVML_INVALID_ARGUMENT;
	*count = !ret;
	return FGV_NVML_SUCCESS;
}

/* --- Power and clocks -------------------------------------------------------- */

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPowerUsage(const struct fgv_nvml_device *device, unsigned *mw)
{
	return get(device, FGV_FIGURE_POWER, mw);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetEnforcedPowerLimit(const struct fgv_nvml_device *device,
							 unsigned *mw)
{
	return get(device, FGV_FIGURE_POWER_LIMIT, mw);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPowerManagementLimit(const struct fgv_nvml_device *device,
							   unsigned *mw)
	FGV_ALIAS(nvmlDeviceGetEnforcedPowerLimit);

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetPowerManagementDefaultLimit(const struct fgv_nvml_device *device, unsigned *mw)
{
	return get(device, FGV_FIGURE_POWER_DEFAULT, mw);
}

FGV_EXPORT enum fgv_nvml
nvmlDeviceGetPowerManagementLimitConstraints(const struct fgv_nvml_device *device, unsigned *least,
					     unsigned *most)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (!ret)
		ret = take(&view, FGV_FIGURE_POWER_LEAST, least);
	return ret ? ret : take(&view, FGV_FIGURE_POWER_MOST, most);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPerformanceState(const struct fgv_nvml_device *device,
						       unsigned *state)
{
	return get(device, FGV_FIGURE_STATE, state);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetPowerState(const struct fgv_nvml_device *device,
						 unsigned *state)
	FGV_ALIAS(nvmlDeviceGetPerformanceState);

#define CLOCKS 4 /* graphics, multiprocessors, memory, video */

FGV_EXPORT enum fgv_nvml nvmlDeviceGetClockInfo(const struct fgv_nvml_device *device,
						unsigned clock, unsigned *mhz)
{
	if (clock >= CLOCKS)
		return FGV_NVML_INVALID_ARGUMENT;
	return get(device, FGV_FIGURE_CLOCK_GRAPHICS + clock, mhz);
}

/* The one that CUDA tells as well, in kHz. */
static enum fgv_nvml take_max_clock(const struct fgv_msg_view *view, unsigned clock, unsigned *mhz)
{
	static const CUdevice_attribute attributes[CLOCKS] = {
		CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
		CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
		CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
	};
	enum fgv_nvml ret = take(view, FGV_FIGURE_MAX_GRAPHICS + clock, mhz);
	int khz = 0;

	if (ret != FGV_NVML_NOT_SUPPORTED || !attributes[clock] ||
	    !fgv_nvml_attribute(view, attributes[clock], &khz))
		return ret;
	*mhz = (unsigned)khz / 1000;
	return FGV_NVML_SUCCESS;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMaxClockInfo(const struct fgv_nvml_device *device,
						   unsigned clock, unsigned *mhz)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret;

	if (clock >= CLOCKS)
		return FGV_NVML_INVALID_ARGUMENT;
	ret = fgv_nvml_look_at(device, &view);
	return ret ? ret : take_max_clock(&view, clock, mhz);
}

/* Of the kinds of a clock there is the current one. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetClock(const struct fgv_nvml_device *device, unsigned clock,
					    unsigned kind, unsigned *mhz)
{
	enum fgv_nvml ret = fgv_nvml_check(device);

	if (ret)
		return ret;
	return kind ? FGV_NVML_NOT_SUPPORTED : nvmlDeviceGetClockInfo(device, clock, mhz);
}

/* --- The link ---------------------------------------------------------------- */

FGV_EXPORT enum fgv_nvml nvmlDeviceGetCurrPcieLinkGeneration(const struct fgv_nvml_device *device,
							     unsigned *generation)
{
	return get(device, FGV_FIGURE_LINK_GENERATION, generation);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetCurrPcieLinkWidth(const struct fgv_nvml_device *device,
							unsigned *width)
{
	return get(device, FGV_FIGURE_LINK_WIDTH, width);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMaxPcieLinkGeneration(const struct fgv_nvml_device *device,
							    unsigned *generation)
{
	return get(device, FGV_FIGURE_LINK_MAX_GENERATION, generation);
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetMaxPcieLinkWidth(const struct fgv_nvml_device *device,
						       unsigned *width)
{
	return get(device, FGV_FIGURE_LINK_MAX_WIDTH, width);
}

/* --- Fields ------------------------------------------------------------------ */

static const struct {
	uint32_t id;
	enum fgv_figure figure;
} fields[] = {
	{186, FGV_FIGURE_POWER}, /* at the moment */
	{187, FGV_FIGURE_POWER_LEAST},	 {188, FGV_FIGURE_POWER_MOST},
	{189, FGV_FIGURE_POWER_DEFAULT}, {190, FGV_FIGURE_POWER_LIMIT},
};

#define FIELD_LINK_STATE 165 /* of the NVLink that its scope numbers */

static void fill_field(const struct fgv_msg_view *view, struct fgv_nvml_field *field)
{
	field->time_us = (int64_t)view->time_us;
	field->latency_us = 0;
	field->status = FGV_NVML_NOT_SUPPORTED;
	if (field->id == FIELD_LINK_STATE && view->nvlinks) {
		field->type = FGV_NVML_TYPE_U32;
		field->u64 = field->scope < view->nvlinks;
		field->status = FGV_NVML_SUCCESS;
	}
	for (size_t i = 0; i < FGV_ARRAY_LEN(fields); i++) {
		if (fields[i].id != field->id)
			continue;
		field->type = FGV_NVML_TYPE_U32;
		field->u64 = 0;
		field->status = take(view, fields[i].figure, &field->u32);
	}
}

/* Each field says for itself whether it is there. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetFieldValues(const struct fgv_nvml_device *device, int count,
						  struct fgv_nvml_field *values)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (!ret && (count < 0 || (count && !values)))
		ret = FGV_NVML_INVALID_ARGUMENT;
	for (int i = 0; !ret && i < count; i++)
		fill_field(&view, &values[i]);
	return ret;
}
