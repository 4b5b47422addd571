/*
 * Tables of text in columns, as libsmartcols prints them; see ctl.h. Out of memory ends the
 * program.
 */
#define _GNU_SOURCE
#include "tools/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/log.h"
#include "common/util.h"

static void check(bool works)
{
	if (works)
		return;
	fgv_error("out of memory");
	exit(EXIT_FAILURE);
}

static void add_column(struct fgv_table *table, const char *name)
{
	bool left = name[0] == '<';
	struct libscols_column *column =
		scols_table_new_column(table->table, name + left, 0, left ? 0 : SCOLS_FL_RIGHT);

	check(column);
	table->columns++;
}

/* As wide as it must be, whatever the terminal is: what is cut off can't be read by a program. */
void fgv_table_init(struct fgv_table *table, const char *const *names)
{
	*table = (struct fgv_table){.table = scols_new_table()};
	check(table->table && !scols_table_set_column_separator(table->table, "  "));
	scols_table_set_termforce(table->table, SCOLS_TERMFORCE_NEVER);
	scols_table_enable_noencoding(table->table, 1);
	while (names[table->columns])
		add_column(table, names[table->columns]);
}

void fgv_table_add(struct fgv_table *table, const char *format, ...)
{
	size_t column = table->cells++ % table->columns;
	va_list args;
	char *text;

	if (column == 0)
		table->line = scols_table_new_line(table->table, NULL);
	va_start(args, format);
	check(table->line && vasprintf(&text, format, args) >= 0);
	va_end(args);
	fgv_log_flatten(text); /* programs name themselves */
	check(!scols_line_refer_data(table->line, column, text));
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

/* libsmartcols prints no heads of columns without lines. */
static void add_heads(struct fgv_table *table)
{
	scols_table_enable_noheadings(table->table, 1);
	for (size_t i = 0; i < table->columns; i++) {
		struct libscols_column *column = scols_table_get_column(table->table, i);

		fgv_table_add(table, "%s", scols_column_get_name(column));
	}
}

void fgv_table_print(struct fgv_table *table)
{
	if (!table->cells)
		add_heads(table);
	check(!scols_print_table(table->table));
	scols_unref_table(table->table);
	*table = (struct fgv_table){0};
}

int fgv_ctl_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fgv_error("can't write: %s", strerror(errno));
	return -EIO;
}
