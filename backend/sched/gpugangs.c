/* Gangs among the schedulers of a host's GPUs; see gpugangs.h. */
#include "backend/sched/gpugangs.h"

static void enter(void *arg)
{
	struct fgv_gpugangs *gangs = arg;

	pthread_mutex_lock(&gangs->lock);
}

static void leave(void *arg)
{
	struct fgv_gpugangs *gangs = arg;

	pthread_mutex_unlock(&gangs->lock);
}

int fgv_gpugangs_init(struct fgv_gpugangs *gangs)
{
	const struct fgv_gangs_lock lock = {enter, leave, gangs};
	int ret;

	*gangs = (struct fgv_gpugangs){0};
	pthread_mutex_init(&gangs->lock, NULL);
	ret = fgv_gangs_create(&gangs->gangs, &lock);
	if (ret)
		pthread_mutex_destroy(&gangs->lock);
	return ret;
}

void fgv_gpugangs_fini(struct fgv_gpugangs *gangs)
{
	fgv_gangs_destroy(gangs->gangs);
	gangs->gangs = NULL;
	pthread_mutex_destroy(&gangs->lock);
}

void fgv_gpugangs_join(struct fgv_gpugangs *gangs, unsigned gpu, const struct fgv_bells *bells)
{
	enter(gangs);
	gangs->bells[gpu] = bells;
	leave(gangs);
}

void fgv_gpugangs_leave(struct fgv_gpugangs *gangs, unsigned gpu)
{
	fgv_gpugangs_join(gangs, gpu, NULL);
}

void fgv_gpugangs_knock(struct fgv_gpugangs *gangs, uint32_t gpus)
{
	enter(gangs);
	for (unsigned i = 0; i < FGV_GANGS_GPUS; i++) {
		if ((gpus & UINT32_C(1) << i) && gangs->bells[i])
			fgv_bells_kick(gangs->bells[i]);
	}
	leave(gangs);
}
