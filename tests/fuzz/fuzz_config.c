/* A configuration: it is taken, or refused with a reason. */
#include <stdlib.h>
#include <string.h>
#include "backend/config/config.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), why[512] = "";
	struct fgv_config config;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	if (fgv_config_parse(&config, text, "fuzz.conf", why, sizeof(why)) == 0)
		fgv_config_fini(&config);
	else if (!*why)
		abort();
	free(text);
	return 0;
}
