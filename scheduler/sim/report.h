/*
 * What a command of fairgv-sim prints: rows of named cells, as a table, as CSV or as one
 * JSON object per line; and a chart of them, which gnuplot draws. Strings in cells and charts must
 * live as long as the report, or be put into it by report_keep().
 */
#ifndef FGV_SCHEDULER_SIM_REPORT_H
#define FGV_SCHEDULER_SIM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define REPORT_COLUMNS_MAX 80
#define REPORT_STRING	   -1 /* decimals of a column of strings */

struct report_column {
	const char *name;
	int decimals;
};

union report_cell {
	const char *text;
	double number; /* not finite: unknown */
};

enum chart_kind { CHART_BARS, CHART_LINES, CHART_STEPS };

/* Bars: a group per x, a bar per series. Lines and steps: a line per series. */
struct chart_point {
	unsigned int series;
	double x;
	double y;
};

struct chart {
	enum chart_kind kind;
	const char *title, *x_title, *y_title;
	const char **series; /* names, @series_count of them */
	const char **groups; /* bars: a label per group */
	size_t series_count, group_count;
	struct chart_point *points;
	size_t point_count;
};

struct report {
	const char *title;
	struct report_column columns[REPORT_COLUMNS_MAX];
	size_t column_count;
	union report_cell *cells;
	size_t cell_count; /* a multiple of column_count */
	struct chart chart;
	char **kept;
	size_t kept_count;
	bool failed; /* out of memory; nothing is printed */
};

void report_fini(struct report *report);
void report_column(struct report *report, const char *name, int decimals);

/* The next cell of the current row, from left to right. */
void report_text(struct report *report, const char *text);
void report_number(struct report *report, double number);

/* A formatted string that lives as long as the report. */
const char *report_keep(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The index of a series, of a group: found by its name or made. */
unsigned int chart_series(struct report *report, const char *name);
unsigned int chart_group(struct report *report, const char *label);
void chart_point(struct report *report, unsigned int series, double x, double y);

/* 0 or a negative errno. */
int report_print_table(const struct report *report, FILE *out);
int report_print_csv(const struct report *report, FILE *out);
int report_print_json(const struct report *report, FILE *out);

/* The chart as commands for gnuplot, which make it an SVG on its standard output. */
int report_print_plot(const struct report *report, FILE *out);

/* Has gnuplot draw the chart into a file. On failure, @why says what is wrong. */
int report_draw(const struct report *report, const char *path, char *why, size_t size);

#endif
