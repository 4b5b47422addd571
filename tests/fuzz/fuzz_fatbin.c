/*
 * Images of a guest's, as the host reads them before the driver does: fat binaries, and what is not.
 */
#include <stdlib.h>
#include "backend/gpu/fatbin.h"
#include "common/fatbin.h"
#include "tests/fuzz/target.h"

static const unsigned sms[] = {FGV_FATBIN_ANY_SM, 75, 90};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const words[] = {".managed", "printf", NULL};
	struct fgv_fatbin_texts texts;
	size_t container_len;
	unsigned containers;

	if (fgv_fatbin_form(data, len) == FGV_FATBIN_CONTAINER) {
		if (fgv_fatbin_check(data, len, &containers) < 0)
			return 0;
		if (fgv_fatbin_extent(data, len, &container_len) < 0 || container_len > len)
			abort();
	}
	for (unsigned i = 0; i < sizeof(sms) / sizeof(*sms); i++) {
		fgv_fatbin_mentions(data, len, sms[i], words, 2);
		if (fgv_fatbin_ptx(data, len, sms[i], &texts) == 0)
			fgv_fatbin_texts_free(&texts);
	}
	return 0;
}
