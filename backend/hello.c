/*
 * Hellos; see hello.h. What follows the version is another version's business.
 */
#include "backend/hello.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "api/gpu_wire.h"

_Static_assert(FGV_API_VERSION == FGV_WIRE_VERSION, "gpu.api and wire.h carry one version");

#define REMEDY "install the same release on both sides and restart the daemon"

CUresult fgv_hello_check(const struct fgv_msg_hello *hello, size_t len, char *text, size_t text_len)
{
	if (len < sizeof(uint32_t) * 2 ||
	    (hello->type != FGV_MSG_HELLO && hello->type != FGV_MSG_LOOK)) {
		snprintf(text, text_len, "that was no hello");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (hello->version != FGV_WIRE_VERSION) {
		snprintf(text, text_len,
			 "the program's FairGV speaks version %u, the daemon's version %d: " REMEDY,
			 hello->version, FGV_WIRE_VERSION);
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	}
	if (len != sizeof(*hello) || hello->hash != FGV_API_HASH) {
		snprintf(text, text_len,
			 "the program's FairGV and the daemon's are of different builds, which "
			 "do not understand each other, though both speak version %d: " REMEDY,
			 FGV_WIRE_VERSION);
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	}
	if (hello->priority > FGV_PRIORITY_LAST || hello->need.reserved || hello->reserved ||
	    (hello->type == FGV_MSG_HELLO && hello->device) ||
	    !memchr(hello->vm, 0, sizeof(hello->vm)) ||
	    !memchr(hello->program, 0, sizeof(hello->program))) {
		snprintf(text, text_len, "the hello is malformed");
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

void fgv_hello_refuse(struct fgv_msg_welcome *welcome, CUresult status, const char *text)
{
	*welcome = (struct fgv_msg_welcome){
		.type = FGV_MSG_WELCOME,
		.version = FGV_WIRE_VERSION,
		.status = status,
	};
	snprintf(welcome->text, sizeof(welcome->text), "%s", text);
}

void fgv_hello_end(int fd, const char *text)
{
	struct fgv_msg_end end = {.type = FGV_MSG_END};

	snprintf(end.text, sizeof(end.text), "%s", text);
	send(fd, &end, sizeof(end), MSG_NOSIGNAL | MSG_DONTWAIT);
}
