/*
 * Tables of text in columns; see ctl.h. Out of memory ends the program.
 */
#define _GNU_SOURCE
#include "tools/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/util.h"

static void *checked(void *memory)
{
	if (memory)
		return memory;
	fgv_error("out of memory");
	exit(EXIT_FAILURE);
}

void fgv_table_init(struct fgv_table *table, const char *const *names)
{
	*table = (struct fgv_table){.names = names};
	while (names[table->columns])
		table->columns++;
}

void fgv_table_add(struct fgv_table *table, const char *format, ...)
{
	size_t count = table->count++;
	va_list args;

	if (count % table->columns == 0)
		table->cells = checked(
			realloc(table->cells, (count + table->columns) * sizeof(*table->cells)));
	va_start(args, format);
	if (vasprintf(&table->cells[count], format, args) < 0)
		checked(NULL);
	va_end(args);
	fgv_log_flatten(table->cells[count]); /* programs name themselves */
}

void fgv_ctl_show_time(char *text, size_t len, uint64_t ns)
{
	if (ns < FGV_NS_PER_US)
		snprintf(text, len, "%" PRIu64 " ns", ns);
	else if (ns < FGV_NS_PER_MS)
		snprintf(text, len, "%.2f us", (double)ns / FGV_NS_PER_US);
	else if (ns < FGV_NS_PER_SEC)
		snprintf(text, len, "%.2f ms", (double)ns / FGV_NS_PER_MS);
	else
		snprintf(text, len, "%.2f s", (double)ns / FGV_NS_PER_SEC);
}

void fgv_ctl_show_bytes(char *text, size_t len, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(text, len, "%" PRIu64 " B", bytes);
		return;
	}
	for (; value >= 1024 && unit + 1 < FGV_ARRAY_LEN(units); unit++)
		value /= 1024;
	snprintf(text, len, "%.1f %s", value, units[unit]);
}

void fgv_table_add_time(struct fgv_table *table, uint64_t ns)
{
	char text[FGV_CTL_TEXT_LEN];

	fgv_ctl_show_time(text, sizeof(text), ns);
	fgv_table_add(table, "%s", text);
}

void fgv_table_add_bytes(struct fgv_table *table, uint64_t bytes)
{
	char text[FGV_CTL_TEXT_LEN];

	fgv_ctl_show_bytes(text, sizeof(text), bytes);
	fgv_table_add(table, "%s", text);
}

void fgv_table_add_share(struct fgv_table *table, uint64_t part, uint64_t whole)
{
	if (whole)
		fgv_table_add(table, "%.1f%%", 100.0 * (double)part / (double)whole);
	else
		fgv_table_add(table, "-");
}

static const char *title_of(const struct fgv_table *table, size_t column)
{
	return table->names[column] + (table->names[column][0] == '<');
}

static int width_of(const struct fgv_table *table, size_t column)
{
	size_t width = strlen(title_of(table, column));

	for (size_t i = column; i < table->count; i += table->columns)
		width = fgv_max_u64(width, strlen(table->cells[i]));
	return (int)width;
}

/* The last column is not filled up, so that no line ends with spaces. */
static void print_cell(const struct fgv_table *table, size_t column, const char *text, int width)
{
	bool last = column + 1 == table->columns;

	if (table->names[column][0] == '<')
		printf("%-*s", last ? 0 : width, text);
	else
		printf("%*s", width, text);
	fputs(last ? "\n" : "  ", stdout);
}

void fgv_table_print(struct fgv_table *table)
{
	int widths[FGV_TABLE_COLUMNS_MAX];

	for (size_t c = 0; c < table->columns; c++)
		widths[c] = width_of(table, c);
	for (size_t c = 0; c < table->columns; c++)
		print_cell(table, c, title_of(table, c), widths[c]);
	for (size_t i = 0; i < table->count; i++) {
		size_t column = i % table->columns;

		print_cell(table, column, table->cells[i], widths[column]);
		free(table->cells[i]);
	}
	free(table->cells);
	table->cells = NULL;
	table->count = 0;
}

int fgv_ctl_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fgv_error("can't write: %s", strerror(errno));
	return -EIO;
}
