/*
 * What a configuration's text includes by lines like
 *
 *	@include "FILE"
 *
 * before libconfig sees them: older versions of it know no absolute paths, and end the program
 * where a folder is included.
 */
#ifndef FGV_BACKEND_CONFIG_INCLUDES_H
#define FGV_BACKEND_CONFIG_INCLUDES_H

#include <stddef.h>

/*
 * A copy of @text, for free(), whose includes of absolute paths lead there from @folder, which is
 * absolute and has no links. NULL where memory is out.
 */
char *fgv_config_includes_root(const char *text, const char *folder);

/*
 * -EINVAL if @text, of @file, or what it includes, includes a folder or a file that can't be read
 * (fgv_config_text_load), below @folder: then @why says where. What is not there is left to
 * libconfig, which says so.
 */
int fgv_config_includes_check(const char *text, const char *file, const char *folder, char *why,
			      size_t why_len);

#endif
