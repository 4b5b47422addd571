/*
 * The stages of a session's beginning, for its first GPU (main.c) and for further ones (parts.c).
 * Each has its reason in session->reason where it fails, and is undone by its fini, if it has one.
 *
 * Threads: the one that will be the part's dispatcher, or one that hands it over.
 */
#ifndef FGV_VGPU_STAGES_H
#define FGV_VGPU_STAGES_H

#include <cuda.h>

struct fgv_session;

/* Puts a stage's reason where the welcome takes it from; @status. */
CUresult fgv_stage_failed(struct fgv_session *session, CUresult status, const char *what, int err);

/* Its place at a soft GPU's engine. */
CUresult fgv_stage_soft_device_init(struct fgv_session *session);
void fgv_stage_soft_device_fini(struct fgv_session *session);

CUresult fgv_stage_gpu_init(struct fgv_session *session);
void fgv_stage_gpu_fini(struct fgv_session *session);

/* The multiprocessors that it begins with, once its VM is known. */
CUresult fgv_stage_units_init(struct fgv_session *session);

CUresult fgv_stage_window_init(struct fgv_session *session);
void fgv_stage_window_fini(struct fgv_session *session);

CUresult fgv_stage_accounts_init(struct fgv_session *session);
void fgv_stage_accounts_fini(struct fgv_session *session);

CUresult fgv_stage_staging_init(struct fgv_session *session);
CUresult fgv_stage_gate_init(struct fgv_session *session);
void fgv_stage_gate_fini(struct fgv_session *session);

CUresult fgv_stage_session_init(struct fgv_session *session);

#endif
