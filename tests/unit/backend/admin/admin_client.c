/*
 * See admin_client.h.
 */
#define _GNU_SOURCE
#include "tests/unit/backend/admin/admin_client.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct sockaddr_un admin_address(const struct daemon *daemon)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon->control);
	return address;
}

int admin_connect(const struct daemon *daemon)
{
	struct sockaddr_un address = admin_address(daemon);
	struct timeval limit = {.tv_sec = HANG_LIMIT_SEC};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	ck_assert_msg(!connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect: %s",
		      strerror(errno));
	return fd;
}

void admin_send(int fd, const char *bytes, size_t len)
{
	ck_assert_int_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

json_t *admin_receive(int fd)
{
	static char text[4 << 20];
	size_t len = 0;
	json_t *reply;
	ssize_t got;

	while ((got = recv(fd, text + len, sizeof(text) - len, 0)) > 0)
		len += (size_t)got;
	ck_assert_msg(got == 0 || errno == ECONNRESET, "no reply: %s", strerror(errno));
	close(fd);
	ck_assert_uint_gt(len, 0);
	ck_assert_ptr_eq(memchr(text, '\n', len), text + len - 1);
	reply = json_loadb(text, len, 0, NULL);
	ck_assert(json_is_object(reply));
	return reply;
}

json_t *admin_ask_bytes(const struct daemon *daemon, const char *bytes, size_t len)
{
	int fd = admin_connect(daemon);

	admin_send(fd, bytes, len);
	admin_send(fd, "\n", 1);
	return admin_receive(fd);
}

json_t *admin_ask(const struct daemon *daemon, const char *request)
{
	return admin_ask_bytes(daemon, request, strlen(request));
}

void admin_expect_refusal(json_t *reply, const char *text)
{
	const char *error = json_string_value(json_object_get(reply, "error"));

	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error, text) != NULL, "%s", error);
	ck_assert_ptr_null(strchr(error, '\n'));
	ck_assert_uint_eq(json_object_size(reply), 1);
	json_decref(reply);
}

json_int_t report_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	ck_assert_msg(json_is_integer(value), "%s is no integer", key);
	return json_integer_value(value);
}

void report_expect(const json_t *object, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(object, key));

	ck_assert_ptr_nonnull(value);
	ck_assert_str_eq(value, text);
}

const json_t *report_at(const json_t *object, const char *key, size_t i)
{
	const json_t *element = json_array_get(json_object_get(object, key), i);

	ck_assert_msg(element != NULL, "%s has no element %zu", key, i);
	return element;
}

size_t report_length(const json_t *object, const char *key)
{
	ck_assert(json_is_array(json_object_get(object, key)));
	return json_array_size(json_object_get(object, key));
}
