/*
 * The files and what is in them: all up to their offset, which the descriptors share with
 * whoever writes to them. Where all has been fetched the offset goes back to the start.
 */
#define _GNU_SOURCE
#include "backend/vgpu/console.h"

#include <errno.h>
#include <fcntl.h>
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#endif
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/vgpu/session.h"
#include "common/log.h"
#include "common/util.h"

/* What a sanitizer has to say of this process is no text of the guest's. */
static void keep_reports(int fd)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	__sanitizer_set_report_fd((void *)(intptr_t)fd);
#else
	(void)fd;
#endif
}

static int descriptor_of(unsigned file)
{
	return file == 0 ? STDOUT_FILENO : STDERR_FILENO;
}

static int open_file(struct fgv_console_file *file, int descriptor)
{
	int fd = memfd_create("fairgv-console", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *text;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, FGV_CONSOLE_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0 || dup2(fd, descriptor) < 0)
		err = -errno;
	close(fd);
	if (err < 0)
		return err;
	text = mmap(NULL, FGV_CONSOLE_BYTES, PROT_READ, MAP_SHARED, descriptor, 0);
	if (text == MAP_FAILED)
		return -errno;
	file->text = text;
	return 0;
}

int fgv_console_init(struct fgv_console *console)
{
	int log_fd = fgv_log_move();
	int err = log_fd < 0 ? log_fd : 0;

	pthread_mutex_init(&console->lock, NULL);
	keep_reports(log_fd);
	for (unsigned i = 0; err == 0 && i < FGV_ARRAY_LEN(console->files); i++)
		err = open_file(&console->files[i], descriptor_of(i));
	return err;
}

static size_t written(unsigned file)
{
	off_t end = lseek(descriptor_of(file), 0, SEEK_CUR);

	return end < 0 ? 0 : fgv_min_u64((uint64_t)end, FGV_CONSOLE_BYTES);
}

/* True: there may be text that was not there before. */
static bool print(struct fgv_session *session)
{
	const struct fgv_console_file *files = session->console->files;
	const size_t room[2] = {FGV_CONSOLE_BYTES - files[0].end, FGV_CONSOLE_BYTES - files[1].end};

	return session->gpu->ops->print(session->gpu, room);
}

/* Before a reply, which the guest reads first: fgv_ring_publish() orders the two. */
static void tell(struct fgv_session *session)
{
	struct fgv_console_file *files = session->console->files;
	bool any = false;

	for (unsigned i = 0; i < FGV_ARRAY_LEN(session->console->files); i++) {
		files[i].end = written(i);
		any |= files[i].end > files[i].taken;
	}
	__atomic_store_n(&fgv_window_head(&session->window)->text, any, __ATOMIC_RELAXED);
}

void fgv_console_look(struct fgv_session *session)
{
	pthread_mutex_lock(&session->console->lock);
	if (print(session))
		tell(session);
	pthread_mutex_unlock(&session->console->lock);
}

size_t fgv_console_take(struct fgv_console *console, unsigned file, void *text, size_t room)
{
	struct fgv_console_file *from = &console->files[file];
	size_t end = written(file);
	size_t len = fgv_min_u64(end - fgv_min_u64(from->taken, end), room);

	memcpy(text, from->text + from->taken, len);
	from->taken += len;
	if (from->taken >= end && end > 0) {
		lseek(descriptor_of(file), 0, SEEK_SET);
		from->taken = 0;
	}
	return len;
}

CUresult fgv_do_text_read(struct fgv_session *session, struct fgv_request *request,
			  const struct fgv_text_read_in *in, struct fgv_text_read_out *out)
{
	size_t room = fgv_min_u64(in->text_len, FGV_CONSOLE_BYTES);
	uint8_t *text = in->text;

	(void)request;
	pthread_mutex_lock(&session->console->lock);
	print(session);
	out->stdout_bytes = (uint32_t)fgv_console_take(session->console, 0, text, room);
	text += out->stdout_bytes;
	room -= out->stdout_bytes;
	out->stderr_bytes = (uint32_t)fgv_console_take(session->console, 1, text, room);
	tell(session);
	pthread_mutex_unlock(&session->console->lock);
	return CUDA_SUCCESS;
}
