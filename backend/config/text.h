/*
 * Configuration as text: the file itself, and what sizes, durations, the choice of
 * GPUs and users look like in it. Used by config.c.
 *
 * Errors are -EINVAL where nothing else is said; results are written on success only.
 */
#ifndef FGV_BACKEND_CONFIG_TEXT_H
#define FGV_BACKEND_CONFIG_TEXT_H

#include "backend/config/config.h"

/*
 * The whole of a file (or of a pipe) as a string, for free(). -EFBIG above 1 MiB,
 * -EILSEQ where it holds a NUL, else why it can't be read.
 */
int fgv_config_text_load(const char *path, char **text);

/*
 * The line of the first number in @text that libconfig would cut down to 32 bits
 * without a word (older versions do), or 0. Numbers with an L behind them are not.
 */
unsigned fgv_config_text_find_overflow(const char *text);

/* "4096", "64K", "4G": -EINVAL for anything else, -ERANGE for 2^64 and more. */
int fgv_config_text_size(const char *text, uint64_t *bytes);

/* The shortest way to write @bytes, for messages. */
void fgv_config_text_show_size(uint64_t bytes, char *text, size_t len);

/* "100us", "6ms", "10s" and "0", in ns: -EINVAL and -ERANGE as above. */
int fgv_config_text_duration(const char *text, uint64_t *ns);

/* The same the other way round. */
void fgv_config_text_show_duration(uint64_t ns, char *text, size_t len);

/* "50%", "12.5%", in parts of FGV_SCHED_WHOLE: -EINVAL for anything else and above 100%. */
int fgv_config_text_share(const char *text, uint64_t *share);

/* The same the other way round. */
void fgv_config_text_show_share(uint64_t share, char *text, size_t len);

/* What a number, a size or a duration of @key must be: "64M to 16T", "0 or 100ms to 1s". */
void fgv_config_text_show_range(const struct fgv_config_key *key, char *text, size_t len);

/* "auto", "cuda", "cuda:0,1", "soft", "soft:2". */
int fgv_config_text_gpu(const char *text, struct fgv_gpu_choice *choice);

/* The name of a user, or a number: -ENOENT where no user has that name. */
int fgv_config_text_user(const char *text, uid_t *uid);

/* "1900000000-1900065535", or "none"; no range has 0, or what is not a user's number. */
int fgv_config_text_uids(const char *text, struct fgv_config_uids *uids);

/* Whether @text may be the name of a VM. */
bool fgv_config_text_is_name(const char *text);

#endif
