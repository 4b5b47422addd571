/*
 * What a workload does between its command line and its last line: calibration, warm-up,
 * the wait for a common start, the loop, the check. A part of workload.h.
 */
#ifndef FGV_WORKLOAD_LOOP_H
#define FGV_WORKLOAD_LOOP_H

#define WORKLOAD_CALIBRATIONS 16   /* sizes tried at most */
#define WORKLOAD_ACCURACY     0.03 /* of the kernel time asked for, which ends the search */
#define WORKLOAD_FAR_OFF      0.5  /* which is worth a warning */
#define WORKLOAD_SAMPLE_US    5000 /* that a batch must last to be a measurement ... */
#define WORKLOAD_SAMPLE_MAX   256  /* ... or as many iterations */
#define WORKLOAD_SAMPLES      3

/* Device and context, and what the loop needs of them. */
static inline void workload_open(struct workload *w)
{
	struct cudaDeviceProp properties;
	int device;

	CUDA(w, cudaGetDevice(&device));
	CUDA(w, cudaGetDeviceProperties(&properties, device));
	for (size_t i = 0; i + 1 < sizeof(w->device) && properties.name[i]; i++)
		w->device[i] = properties.name[i] > ' ' ? properties.name[i] : '_';
	CUDA(w, cudaEventCreate(&w->first));
	CUDA(w, cudaEventCreate(&w->last));
	CUDA(w, cudaMalloc(&w->count, sizeof(*w->count)));
	if (w->as_graph)
		CUDA(w, cudaStreamCreate(&w->stream));
}

/* Everything as it was before the first iteration. */
static inline void workload_restart(struct workload *w)
{
	CUDA(w, cudaMemset(w->count, 0, sizeof(*w->count)));
	w->load();
	CUDA(w, cudaDeviceSynchronize());
}

/* That the device is not done is no error, though the runtime keeps it as one. */
static inline void workload_query(const struct workload *w)
{
	for (long i = 0; i < w->queries; i++) {
		cudaError_t error = cudaStreamQuery(NULL);

		if (error == cudaErrorNotReady)
			cudaGetLastError();
		else
			CUDA(w, error);
	}
}

/* The last batch's graph does what the new one does, where that has as many kernels. */
static inline void workload_update(struct workload *w, cudaGraph_t graph)
{
	cudaGraphExecUpdateResultInfo info;

	if (w->graph && cudaGraphExecUpdate(w->graph, graph, &info) == cudaSuccess)
		return;
	cudaGetLastError();
	if (w->graph)
		CUDA(w, cudaGraphExecDestroy(w->graph));
	CUDA(w, cudaGraphInstantiate(&w->graph, graph, 0));
}

/* Iterations @from to @to: launched one by one, or captured and launched as a graph. */
static inline void workload_steps(struct workload *w, long from, long to)
{
	cudaGraph_t graph;

	if (w->as_graph)
		CUDA(w, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
	for (long i = from; i < to; i++) {
		w->step(i);
		workload_query(w);
	}
	if (!w->as_graph)
		return;
	CUDA(w, cudaStreamEndCapture(w->stream, &graph));
	workload_update(w, graph);
	CUDA(w, cudaGraphDestroy(graph));
	CUDA(w, cudaGraphLaunch(w->graph, w->stream));
}

/* Runs iterations @from to @to, and returns the seconds between the events around them. */
static inline double workload_batch(struct workload *w, long from, long to, bool time_events)
{
	float ms = 0;

	if (time_events)
		CUDA(w, cudaEventRecord(w->first, NULL));
	workload_steps(w, from, to);
	if (time_events)
		CUDA(w, cudaEventRecord(w->last, NULL));
	CUDA(w, cudaDeviceSynchronize());
	if (time_events)
		CUDA(w, cudaEventElapsedTime(&ms, w->first, w->last));
	return (double)ms * 1e-3;
}

/* Microseconds of one kernel: the best of some batches that are long enough to measure. */
static inline double workload_measure(struct workload *w)
{
	double least_us = INFINITY;
	long count = 1, done = 0;

	for (int samples = 0; samples < WORKLOAD_SAMPLES;) {
		double us = workload_batch(w, done, done + count, true) * 1e6;

		done += count;
		if (us < WORKLOAD_SAMPLE_US && count < WORKLOAD_SAMPLE_MAX) {
			count *= 4;
			continue;
		}
		least_us = fmin(least_us, us / (double)(count * w->kernels));
		samples++;
	}
	return least_us;
}

static inline double workload_measure_size(struct workload *w, long size)
{
	double us;

	w->size = size;
	w->allocate();
	workload_restart(w);
	us = workload_measure(w);
	w->release();
	return us;
}

/* Sets the size with which a kernel comes nearest to the time that was asked for. */
static inline void workload_calibrate(struct workload *w)
{
	long low = 0, high = w->max_size + 1; /* too small, too large */
	long size = w->size, best = size;
	double error = INFINITY;

	for (int i = 0; i < WORKLOAD_CALIBRATIONS && high - low > 1; i++) {
		double us = workload_measure_size(w, size), ratio = w->kernel_us / us;

		if (fabs(1 / ratio - 1) < error) {
			error = fabs(1 / ratio - 1);
			best = size;
		}
		if (error <= WORKLOAD_ACCURACY)
			break;
		*(ratio > 1 ? &low : &high) = size;
		ratio = pow(ratio, 1 / w->growth);
		size = (long)fmin((double)size * ratio + 0.5, (double)w->max_size);
		size = size <= low ? low + 1 : size >= high ? high - 1 : size;
	}
	if (error > WORKLOAD_FAR_OFF)
		fprintf(stderr, "%s: no size gives kernels of %g us; %ld comes nearest\n", w->name,
			w->kernel_us, best);
	w->size = best;
}

/* Waits until the moment that --start-at tells. */
static inline void workload_wait(const struct workload *w)
{
	char line[64];
	struct timespec now, until;
	double start, late;

	if (strcmp(w->start_at, "-") == 0) {
		if (!fgets(line, sizeof(line), stdin))
			workload_usage(w, "--start-at: no time on standard input");
		line[strcspn(line, "\n")] = '\0';
		start = workload_date(w, line);
	} else {
		start = workload_date(w, w->start_at);
	}
	clock_gettime(CLOCK_REALTIME, &now);
	late = (double)now.tv_sec - start + (double)now.tv_nsec * 1e-9;
	if (late > 0)
		fprintf(stderr, "%s: starts %.3f s late\n", w->name, late);
	until.tv_sec = (time_t)start;
	until.tv_nsec = (long)((start - floor(start)) * 1e9);
	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
		continue;
}

/* What goes before the clock starts. */
static inline void workload_get_ready(struct workload *w)
{
	bool warm_up = w->kernel_us > 0 || w->run_s > 0 || w->start_at;

	if (w->kernel_us > 0)
		workload_calibrate(w);
	w->allocate();
	workload_restart(w);
	if (warm_up) {
		w->kernel_us = workload_measure(w);
		workload_restart(w);
	}
	if (!w->start_at)
		return;
	printf("ready workload=%s size=%ld kernel_us=%.3f\n", w->name, w->size, w->kernel_us);
	fflush(stdout);
	workload_wait(w);
}

static inline void workload_sleep(double seconds)
{
	struct timespec left;

	left.tv_sec = (time_t)seconds;
	left.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
	while (nanosleep(&left, &left) != 0)
		continue;
}

static inline void workload_progress(const struct workload *w)
{
	printf("progress workload=%s second=%d units=%.0f elapsed=%.6f", w->name, (int)w->seconds,
	       (double)w->done * w->units(), w->seconds);
	workload_print_events(w);
	putchar('\n');
	fflush(stdout);
}

static inline bool workload_is_done(const struct workload *w)
{
	return w->run_s > 0 ? w->seconds >= w->run_s : w->done == w->iterations;
}

static inline long workload_batch_end(const struct workload *w)
{
	long end = w->done + w->sync_every;

	return w->run_s > 0 || end < w->iterations ? end : w->iterations;
}

/* The part by the clock. */
static inline void workload_loop(struct workload *w)
{
	double started = workload_now(), awake_since = started, second = 1;

	while (!workload_is_done(w)) {
		long end = workload_batch_end(w);
		double now;

		w->event_seconds += workload_batch(w, w->done, end, w->time_events);
		now = workload_now();
		w->done = end;
		w->seconds = now - started;
		if (w->run_s > 0 && w->seconds >= second) {
			workload_progress(w);
			second = floor(w->seconds) + 1;
		}
		if (w->burst_s > 0 && now - awake_since >= w->burst_s && !workload_is_done(w)) {
			workload_sleep(w->sleep_s);
			awake_since = workload_now();
		}
	}
}

/* Says whether each kernel ran, exactly once. */
static inline bool workload_all_ran(const struct workload *w)
{
	unsigned long long ran, launched = w->copies ? 0 : (unsigned long long)w->done * w->kernels;

	CUDA(w, cudaMemcpy(&ran, w->count, sizeof(ran), cudaMemcpyDeviceToHost));
	if (ran == launched)
		return true;
	fprintf(stderr, "%s: %llu kernels ran, not %llu\n", w->name, ran, launched);
	return false;
}

/* Says whether the result was right. */
static inline bool workload_run(struct workload *w)
{
	bool verified;

	workload_open(w);
	workload_get_ready(w);
	workload_loop(w);
	verified = workload_all_ran(w) && w->verify();
	w->release();
	return verified;
}

/* All of a workload's main(). */
[[noreturn]] static inline void workload_main(struct workload *w, int argc, char **argv)
{
	bool verified = false;

	workload_parse(w, argc, argv);
	try {
		verified = workload_run(w);
	} catch (const std::bad_alloc &) {
		fprintf(stderr, "%s: not enough memory for size %ld\n", w->name, w->size);
	}
	workload_finish(w, verified);
}

#endif
