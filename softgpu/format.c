/*
 * One conversion at a time is handed to the C library, with a specification that was put
 * together here from what has been understood, and an argument of the type that goes with it.
 */
#include "softgpu/format.h"

#include <stdio.h>
#include <string.h>

#include "common/util.h"

#define SPEC_MAX   48
#define NUMBER_MAX 4096 /* of width and precision */

struct job {
	struct warp *w;
	unsigned lane;
	const char *at; /* in the format */
	uint64_t args;
	char *text;
	size_t room;
	struct formatted result;
};

struct spec {
	char flags[8];
	int width;
	int precision;	/* -1: none */
	unsigned bytes; /* of an integer */
	char conversion;
};

bool fgv_softgpu_read_string(struct warp *w, unsigned lane, uint64_t address, char *text,
			     size_t room)
{
	for (size_t i = 0; i + 1 < room; i++) {
		if (!fgv_softgpu_lane_read(w, address + i, 1, lane, text + i))
			return false;
		if (!text[i])
			return true;
	}
	text[room - 1] = '\0';
	return true;
}

static void put(struct job *j, const char *text, size_t len)
{
	len = fgv_min_u64(len, j->room - j->result.len);
	memcpy(j->text + j->result.len, text, len);
	j->result.len += len;
}

/* The next argument, of 4 or 8 bytes. */
static uint64_t take(struct job *j, unsigned bytes)
{
	uint64_t value = 0;

	j->args = fgv_align_up(j->args, bytes);
	if (!fgv_softgpu_lane_read(j->w, j->args, bytes, j->lane, &value))
		j->result.faulty = true;
	j->args += bytes;
	j->result.count++;
	return value;
}

/* A number of the format, or the argument that stands for it. */
static int number(struct job *j)
{
	int value = 0;

	if (*j->at == '*') {
		j->at++;
		return (int)take(j, 4);
	}
	for (; *j->at >= '0' && *j->at <= '9'; j->at++)
		value = value < NUMBER_MAX ? value * 10 + (*j->at - '0') : value;
	return value;
}

static void read_flags(struct job *j, struct spec *spec)
{
	size_t count = 0;

	for (; *j->at && strchr("-+ #0", *j->at); j->at++) {
		if (!strchr(spec->flags, *j->at) && count + 2 < sizeof(spec->flags))
			spec->flags[count++] = *j->at;
	}
}

static void read_width(struct job *j, struct spec *spec)
{
	spec->width = number(j);
	if (spec->width < 0) {
		spec->width = spec->width < -NUMBER_MAX ? NUMBER_MAX : -spec->width;
		if (!strchr(spec->flags, '-'))
			strcat(spec->flags, "-");
	}
	if (*j->at == '.') {
		j->at++;
		spec->precision = number(j);
	}
	spec->width = spec->width > NUMBER_MAX ? NUMBER_MAX : spec->width;
	spec->precision = spec->precision > NUMBER_MAX ? NUMBER_MAX : spec->precision;
}

/* h, hh, l, ll, j, z, t: what is shorter than int was promoted and is cut again. */
static void read_size(struct job *j, struct spec *spec)
{
	spec->bytes = 4;
	for (; *j->at && strchr("hljztL", *j->at); j->at++) {
		if (*j->at == 'h')
			spec->bytes = spec->bytes == 2 ? 1 : 2;
		else
			spec->bytes = 8;
	}
}

static void read_spec(struct job *j, struct spec *spec)
{
	*spec = (struct spec){.precision = -1};
	read_flags(j, spec);
	read_width(j, spec);
	read_size(j, spec);
	spec->conversion = *j->at;
	if (*j->at)
		j->at++;
}

/* The specification again, with @size and, where it was given, the precision. */
static void write_spec(const struct spec *spec, const char *size, char text[SPEC_MAX])
{
	char width[12] = "";
	char precision[12] = "";

	if (spec->width)
		snprintf(width, sizeof(width), "%d", spec->width);
	if (spec->precision >= 0)
		snprintf(precision, sizeof(precision), ".%d", spec->precision);
	snprintf(text, SPEC_MAX, "%%%s%s%s%s%c", spec->flags, width, precision, size,
		 spec->conversion);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
/* Puts what snprintf makes of the value; its size in C is the specification's. */
#define PUT_VALUE(j, text, value)                                                                  \
	do {                                                                                       \
		char out[2 * NUMBER_MAX];                                                          \
		int len = snprintf(out, sizeof(out), text, value);                                 \
                                                                                                   \
		if (len > 0)                                                                       \
			put(j, out, fgv_min_u64((uint64_t)len, sizeof(out) - 1));                  \
	} while (0)

static void put_integer(struct job *j, const struct spec *spec)
{
	uint64_t value = take(j, spec->bytes == 8 ? 8 : 4);
	unsigned shift = 64 - 8 * spec->bytes;
	char text[SPEC_MAX];

	if (spec->conversion == 'd' || spec->conversion == 'i')
		value = (uint64_t)((int64_t)(value << shift) >> shift);
	else
		value = value << shift >> shift;
	write_spec(spec, "ll", text);
	PUT_VALUE(j, text, (unsigned long long)value);
}

static void put_float(struct job *j, const struct spec *spec)
{
	uint64_t bits = take(j, 8);
	char text[SPEC_MAX];
	double value;

	memcpy(&value, &bits, sizeof(value));
	write_spec(spec, "", text);
	PUT_VALUE(j, text, value);
}

static void put_string(struct job *j, const struct spec *spec)
{
	uint64_t address = take(j, 8);
	char text[SPEC_MAX];
	char string[NUMBER_MAX + 1] = "(null)";
	size_t room = sizeof(string);

	/* A precision also says how much there is to be read. */
	if (spec->precision >= 0)
		room = fgv_min_u64(room, (uint64_t)spec->precision + 1);
	if (address && !j->result.faulty &&
	    !fgv_softgpu_read_string(j->w, j->lane, address, string, room)) {
		j->result.faulty = true;
		return;
	}
	write_spec(spec, "", text);
	PUT_VALUE(j, text, string);
}

static void put_conversion(struct job *j, const struct spec *spec, const char *start)
{
	char text[SPEC_MAX];

	switch (spec->conversion) {
	case 'd':
	case 'i':
	case 'o':
	case 'u':
	case 'x':
	case 'X':
		put_integer(j, spec);
		break;
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		put_float(j, spec);
		break;
	case 'c':
		write_spec(spec, "", text);
		PUT_VALUE(j, text, (int)take(j, 4));
		break;
	case 'p':
		write_spec(spec, "", text);
		PUT_VALUE(j, text, (void *)(uintptr_t)take(j, 8));
		break;
	case 's':
		put_string(j, spec);
		break;
	case '%':
		put(j, "%", 1);
		break;
	default:
		/* What is no conversion is printed as it stands. */
		put(j, start, (size_t)(j->at - start));
	}
}
#pragma GCC diagnostic pop

struct formatted fgv_softgpu_format(struct warp *w, unsigned lane, uint64_t format, uint64_t args,
				    char *text, size_t room)
{
	struct job j = {.w = w, .lane = lane, .args = args, .text = text, .room = room};
	char copy[NUMBER_MAX + 1];

	if (!fgv_softgpu_read_string(w, lane, format, copy, sizeof(copy))) {
		j.result.faulty = true;
		return j.result;
	}
	j.at = copy;
	while (*j.at && !j.result.faulty) {
		const char *start = j.at;
		size_t plain = strcspn(start, "%");
		struct spec spec;

		put(&j, start, plain);
		j.at += plain;
		if (!*j.at)
			break;
		start = j.at++;
		read_spec(&j, &spec);
		put_conversion(&j, &spec, start);
	}
	return j.result;
}
