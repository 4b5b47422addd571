/*
 * Looks; see look.h. How the view gets here is the transport's.
 */
#include "frontend/client/look.h"

#include <string.h>

#include "frontend/client/connect.h"
#include "frontend/client/transport.h"

#define END(text) ((text)[sizeof(text) - 1] = '\0')

static CUresult check(const struct fgv_failure *failure, struct fgv_msg_view *view, size_t len)
{
	if (len < offsetof(struct fgv_msg_view, status) || view->type != FGV_MSG_VIEW)
		return fgv_connect_fail(failure, CUDA_ERROR_NOT_INITIALIZED,
					"the backend's answer is odd");
	if (view->version != FGV_WIRE_VERSION || len != sizeof(*view) ||
	    view->processes > FGV_VIEW_PROCESSES)
		return fgv_connect_fail(failure, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
					"the backend speaks version %u, this library version %u",
					view->version, FGV_WIRE_VERSION);
	END(view->vm);
	END(view->text);
	END(view->driver);
	END(view->device.name);
	END(view->device.pci_bus_id);
	for (uint32_t i = 0; i < view->processes; i++)
		END(view->process[i].program);
	if (view->status)
		return fgv_connect_fail(failure, fgv_connect_status(view->status), "refused: %s",
					view->text);
	return CUDA_SUCCESS;
}

CUresult fgv_look(uint32_t device, struct fgv_msg_view *view, char *why, size_t why_len)
{
	const struct fgv_failure failure = {why, why_len};
	size_t len = 0;
	CUresult res = fgv_connect_transport()->look(device, view, &len, &failure);

	return res ? res : check(&failure, view, len);
}

CUresult fgv_look_and_log(uint32_t device, struct fgv_msg_view *view, enum fgv_log_level level,
			  const char *failure)
{
	char why[512];
	CUresult res = fgv_look(device, view, why, sizeof(why));

	if (res)
		fgv_log(level, "%s: %s (CUDA error %d)", failure, why, (int)res);
	return res;
}
