/*
 * Log lines to systemd's journal with fields, in its native form: beside MESSAGE and PRIORITY, as
 * far as a line is about them, FAIRGV_VM, FAIRGV_PROGRAM, FAIRGV_SESSION and FAIRGV_GPU. A line
 * that is passed on for another process has that one's name and number as SYSLOG_IDENTIFIER and
 * SYSLOG_PID.
 *
 * For the daemon alone. It also passes on what vGPU processes log (relay.h): the journal's socket
 * is nothing for a process that a guest may have taken over, which could send entries of any
 * fields and sizes there.
 */
#ifndef FGV_BACKEND_JOURNALD_H
#define FGV_BACKEND_JOURNALD_H

/* After fgv_log_be_service(); nothing where standard error does not lead to the journal. */
void fgv_journald_begin(void);

#endif
