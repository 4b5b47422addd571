/*
 * The log of errors: it grows with a call that fails, is read from where the program left off, and
 * is told as it grows. The call that fails is one of its own, which every driver logs.
 */
#include "test.h"

#include <unistd.h>

#define ROOM 25600

struct heard {
	unsigned messages;
	size_t bytes;
};

static void hear(void *data, cudaLogLevel level, char *message, size_t len)
{
	struct heard *heard = (struct heard *)data;

	EXPECT(level == cudaLogLevelError || level == cudaLogLevelWarning);
	EXPECT(message && len > 0);
	heard->messages++;
	heard->bytes += len;
}

static void fail(void)
{
	cudaLogIterator here;
	size_t size = 100;

	CUDA(cudaLogsCurrent(&here, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsDumpToMemory(&here, NULL, &size, 0));
	cudaGetLastError();
}

static unsigned count_lines(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void dumped(void)
{
	static char text[ROOM + 1], again[ROOM + 1];
	cudaLogIterator from, at;
	size_t size = ROOM, more = ROOM;

	fail();
	CUDA(cudaLogsCurrent(&from, 0));
	at = from;
	CUDA(cudaLogsDumpToMemory(&at, text, &size, 0));
	EXPECT(at == from && size == 0);
	fail();
	size = ROOM;
	CUDA(cudaLogsDumpToMemory(&at, text, &size, 0));
	EXPECT(at != from && size > 0);
	EXPECT_EQ(size, strlen(text));
	EXPECT_EQ('\n', text[size - 1]);
	EXPECT_EQ('[', text[0]);
	/* All of them, of which these are the last. */
	CUDA(cudaLogsDumpToMemory(NULL, again, &more, 0));
	EXPECT(more > size && !strcmp(again + more - size, text));
	CUDA(cudaLogsDumpToMemory(&at, text, &size, 0));
	EXPECT_EQ(0, size);
}

/* Of many messages the last are told; CUDA's count of their bytes may be more than the room. */
static void cut_short(void)
{
	static char text[ROOM + 1], last[ROOM + 1];
	cudaLogIterator from, at;
	size_t size = ROOM, more;

	CUDA(cudaLogsCurrent(&from, 0));
	at = from;
	fail();
	CUDA(cudaLogsDumpToMemory(&at, last, &size, 0));
	for (int i = 0; i < 3; i++)
		fail();
	more = 3 * size;
	at = from;
	CUDA(cudaLogsDumpToMemory(&at, text, &more, 0));
	EXPECT(more > 0);
	EXPECT(count_lines(text) >= 2);
	/* Room for none. */
	more = 5;
	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsDumpToMemory(NULL, text, &more, 0));
	EXPECT_EQ(0, more);
	cudaGetLastError();
}

/* More than the log keeps: the last are there, and the program is up to date. */
static void too_many(void)
{
	static char text[ROOM + 1], last[ROOM + 1];
	cudaLogIterator from, at, end;
	size_t size = ROOM, more = ROOM;

	CUDA(cudaLogsCurrent(&from, 0));
	for (int i = 0; i < 300; i++)
		fail();
	CUDA(cudaLogsCurrent(&at, 0));
	fail();
	CUDA(cudaLogsCurrent(&end, 0));
	CUDA(cudaLogsDumpToMemory(&from, text, &size, 0));
	EXPECT(from == end);
	EXPECT(count_lines(text) >= 50 && count_lines(text) < 300);
	CUDA(cudaLogsDumpToMemory(&at, last, &more, 0));
	EXPECT(more > 0 && more < size && !strcmp(text + size - more, last));
}

static void to_file(void)
{
	static char text[ROOM + 1], written[ROOM + 1];
	char name[] = "/tmp/fairgv-logs-XXXXXX";
	int fd = mkstemp(name);
	cudaLogIterator from, at;
	size_t size = ROOM;

	EXPECT(fd >= 0);
	CUDA(cudaLogsCurrent(&from, 0));
	fail();
	at = from;
	CUDA(cudaLogsDumpToMemory(&at, text, &size, 0));
	at = from;
	CUDA(cudaLogsDumpToFile(&at, name, 0));
	EXPECT(at != from);
	EXPECT_EQ(size, read(fd, written, ROOM));
	EXPECT(!memcmp(written, text, size));
	close(fd);
	EXPECT(!unlink(name));
}

static void callbacks(void)
{
	struct heard one = {}, other = {};
	cudaLogsCallbackHandle handles[2];

	CUDA(cudaLogsRegisterCallback(hear, &one, &handles[0]));
	fail();
	EXPECT(one.messages > 0 && one.bytes > one.messages);
	CUDA(cudaLogsRegisterCallback(hear, &other, &handles[1]));
	one.messages = 0;
	fail();
	EXPECT(one.messages > 0);
	EXPECT_EQ(one.messages, other.messages);
	CUDA(cudaLogsUnregisterCallback(handles[0]));
	one.messages = 0;
	fail();
	EXPECT_EQ(0, one.messages);
	CUDA(cudaLogsUnregisterCallback(handles[1]));
}

static void wrong_uses(void)
{
	char text[10];
	size_t size = sizeof(text);

	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsRegisterCallback(NULL, NULL, NULL));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsCurrent(NULL, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsDumpToMemory(NULL, text, NULL, 0));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsDumpToMemory(NULL, text, &size, 1));
	EXPECT_CODE(cudaErrorInvalidValue, cudaLogsDumpToFile(NULL, NULL, 0));
	cudaGetLastError();
}

int main(void)
{
	dumped();
	cut_short();
	too_many();
	to_file();
	callbacks();
	wrong_uses();
	return 0;
}
