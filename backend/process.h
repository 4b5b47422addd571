/*
 * What the daemon's process has of its starter and leaves to others. Where these fail and must not,
 * the process ends.
 *
 * Threads: before any but the main one.
 */
#ifndef FGV_BACKEND_PROCESS_H
#define FGV_BACKEND_PROCESS_H

/* Other processes of its user can't write its memory, unless FAIRGV_DUMPABLE is set. */
void fgv_process_close_memory(void);

/* Descriptors 0 to 2 are open, and no others go to the processes that it starts. */
void fgv_process_seal_descriptors(void);

/* As many descriptors as it may have. */
void fgv_process_raise_descriptors(void);

/* Of a private daemon: the folder that was made for its @socket. */
void fgv_process_remove_folder(const char *socket);

#endif
