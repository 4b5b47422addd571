/*
 * The ways between a VM's GPUs. NCCL asks for them before it has GPUs use each other's memory. Of
 * links there are those by a switch, and the switch is told of as something that is not in this
 * machine: which other GPUs it connects is the host's business.
 */
#include "frontend/libnvml/nvml.h"

#include <stdbool.h>
#include <stdio.h>

#define P2P_OK		  0
#define P2P_NOT_SUPPORTED 5

enum { P2P_READ, P2P_WRITE, P2P_NVLINK };

FGV_EXPORT enum fgv_nvml nvmlDeviceGetP2PStatus(const struct fgv_nvml_device *one,
						const struct fgv_nvml_device *other,
						unsigned capability, unsigned *status)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_check(other);
	bool has;

	if (!ret && !status)
		ret = FGV_NVML_INVALID_ARGUMENT;
	if (!ret)
		ret = fgv_nvml_look_at(one, &view);
	if (ret)
		return ret;
	has = capability == P2P_READ || capability == P2P_WRITE ||
	      (capability == P2P_NVLINK && view.nvlinks);
	*status = has && other->index < FGV_DEVICES_MAX && (view.peers >> other->index & 1)
			  ? P2P_OK
			  : P2P_NOT_SUPPORTED;
	return FGV_NVML_SUCCESS;
}

/* --- Links ------------------------------------------------------------------- */

/* @value is @what of a link that there is, and 0 of others. */
static enum fgv_nvml give(const struct fgv_nvml_device *device, unsigned link, unsigned *value,
			  unsigned what)
{
	struct fgv_msg_view view;
	enum fgv_nvml ret = fgv_nvml_look_at(device, &view);

	if (!ret && (link >= FGV_NVML_LINKS_MAX || !value))
		ret = FGV_NVML_INVALID_ARGUMENT;
	else if (!ret && !view.nvlinks)
		ret = FGV_NVML_NOT_SUPPORTED;
	if (!ret)
		*value = link < view.nvlinks ? what : 0;
	return ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetNvLinkState(const struct fgv_nvml_device *device,
						  unsigned link, unsigned *is_up)
{
	return give(device, link, is_up, 1);
}

/* To peers' memory, not to the host's. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetNvLinkCapability(const struct fgv_nvml_device *device,
						       unsigned link, unsigned capability,
						       unsigned *value)
{
	enum { FOR_PEERS, FOR_HOST, ATOMICS_OF_PEERS };

	return give(device, link, value,
		    capability == FOR_PEERS || capability == ATOMICS_OF_PEERS);
}

/* Of a link that there is, whose other end is asked for. */
static enum fgv_nvml check_other_end(const struct fgv_nvml_device *device, unsigned link,
				     const void *end)
{
	unsigned is_up;
	enum fgv_nvml ret = give(device, link, &is_up, 1);

	if (!ret && !is_up)
		ret = FGV_NVML_NOT_SUPPORTED;
	return !ret && !end ? FGV_NVML_INVALID_ARGUMENT : ret;
}

FGV_EXPORT enum fgv_nvml nvmlDeviceGetNvLinkRemoteDeviceType(const struct fgv_nvml_device *device,
							     unsigned link, unsigned *type)
{
	enum { TO_SWITCH = 2 };
	enum fgv_nvml ret = check_other_end(device, link, type);

	if (!ret)
		*type = TO_SWITCH;
	return ret;
}

/* How NVML, in a virtual machine, names a switch that the machine does not have. */
#define A_SWITCH .domain = 0xfffffff, .bus = 0xffff, .device = 0xff, .bus_id = "fffffff:ffff:ff"

FGV_EXPORT enum fgv_nvml nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct fgv_nvml_device *device,
							     unsigned link,
							     struct fgv_nvml_pci *pci)
{
	enum fgv_nvml ret = check_other_end(device, link, pci);

	if (!ret)
		*pci = (struct fgv_nvml_pci){A_SWITCH, .bus_id_short = "fffffff:ffff:ff"};
	return ret;
}

/* That of before R390 had the shorter structure. */
FGV_EXPORT enum fgv_nvml nvmlDeviceGetNvLinkRemotePciInfo(const struct fgv_nvml_device *device,
							  unsigned link,
							  struct fgv_nvml_pci_v2 *pci)
{
	enum fgv_nvml ret = check_other_end(device, link, pci);

	if (!ret)
		*pci = (struct fgv_nvml_pci_v2){A_SWITCH};
	return ret;
}
