/*
 * Instead of a fuzzer: gives the inputs in the files that are named to the target, one after the
 * other. What a fuzzer has found once is tried so for ever, under all sanitizers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/fuzz/target.h"

#define INPUT_MAX (1 << 20)

static int replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_MAX), *exact = NULL;
	size_t len = file && data ? fread(data, 1, INPUT_MAX, file) : 0;
	int ret = file && data && !ferror(file) && feof(file) ? 0 : -1;

	/* A block of its own size, so that AddressSanitizer sees a read past it. */
	if (!ret) {
		exact = malloc(len ? len : 1);
		ret = exact ? 0 : -1;
	}
	if (!ret) {
		memcpy(exact, data, len);
		LLVMFuzzerTestOneInput(exact, len);
	} else {
		fprintf(stderr, "%s: %s\n", path, errno ? strerror(errno) : "too long");
	}
	free(exact);
	free(data);
	if (file)
		fclose(file);
	return ret;
}

int main(int argc, char **argv)
{
	/* A target may take descriptor 1 for what kernels print. */
	FILE *out = fdopen(dup(STDOUT_FILENO), "w");

	if (!out)
		return EXIT_FAILURE;
	for (int i = 1; i < argc; i++) {
		if (replay(argv[i]))
			return EXIT_FAILURE;
	}
	fprintf(out, "inputs=%d\n", argc - 1);
	fclose(out);
	return EXIT_SUCCESS;
}
