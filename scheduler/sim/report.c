/* Rows of cells and how they are printed; the chart is in plot.c. */
#define _GNU_SOURCE /* vasprintf() */
#include "scheduler/sim/report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more element behind @count; the arrays grow by doubling. */
static void *grown(struct report *report, void *array, size_t count, size_t size)
{
	void *bigger;

	if (count != 0 && (count & (count - 1)) != 0)
		return array;
	bigger = realloc(array, (count == 0 ? 1 : 2 * count) * size);
	if (bigger == NULL) {
		report->failed = true;
		return array;
	}
	return bigger;
}

void report_fini(struct report *report)
{
	for (size_t i = 0; i < report->kept_count; i++)
		free(report->kept[i]);
	free(report->kept);
	free(report->cells);
	free(report->chart.series);
	free(report->chart.groups);
	free(report->chart.points);
}

void report_column(struct report *report, const char *name, int decimals)
{
	if (report->column_count == REPORT_COLUMNS_MAX) {
		report->failed = true;
		return;
	}
	report->columns[report->column_count++] = (struct report_column){name, decimals};
}

static void add_cell(struct report *report, union report_cell cell)
{
	report->cells = grown(report, report->cells, report->cell_count, sizeof(cell));
	if (!report->failed)
		report->cells[report->cell_count++] = cell;
}

void report_text(struct report *report, const char *text)
{
	add_cell(report, (union report_cell){.text = text});
}

void report_number(struct report *report, double number)
{
	add_cell(report, (union report_cell){.number = number});
}

const char *report_keep(struct report *report, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	report->kept = grown(report, report->kept, report->kept_count, sizeof(*report->kept));
	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0 || report->failed) {
		if (len >= 0)
			free(text);
		report->failed = true;
		return "";
	}
	report->kept[report->kept_count++] = text;
	return text;
}

/* --- Charts ---------------------------------------------------------------- */

static unsigned int find_or_add(struct report *report, const char ***names, size_t *count,
				const char *name)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp((*names)[i], name) == 0)
			return (unsigned int)i;
	*names = grown(report, *names, *count, sizeof(**names));
	if (report->failed)
		return 0;
	(*names)[*count] = name;
	return (unsigned int)(*count)++;
}

unsigned int chart_series(struct report *report, const char *name)
{
	struct chart *chart = &report->chart;

	return find_or_add(report, &chart->series, &chart->series_count, name);
}

unsigned int chart_group(struct report *report, const char *label)
{
	struct chart *chart = &report->chart;

	return find_or_add(report, &chart->groups, &chart->group_count, label);
}

void chart_point(struct report *report, unsigned int series, double x, double y)
{
	struct chart *chart = &report->chart;

	chart->points = grown(report, chart->points, chart->point_count, sizeof(*chart->points));
	if (!report->failed)
		chart->points[chart->point_count++] = (struct chart_point){series, x, y};
}

/* --- Printing -------------------------------------------------------------- */

static size_t rows(const struct report *report)
{
	return report->column_count != 0 ? report->cell_count / report->column_count : 0;
}

static const union report_cell *cell_at(const struct report *report, size_t row, size_t column)
{
	return &report->cells[row * report->column_count + column];
}

/* @unknown is written for a number that is not finite. Returns the length. */
static int write_cell(const struct report *report, size_t row, size_t column, const char *unknown,
		      char *text, size_t size)
{
	const union report_cell *cell = cell_at(report, row, column);
	int decimals = report->columns[column].decimals;

	if (decimals == REPORT_STRING)
		return snprintf(text, size, "%s", cell->text);
	if (!isfinite(cell->number))
		return snprintf(text, size, "%s", unknown);
	return snprintf(text, size, "%.*f", decimals, cell->number);
}

static int column_width(const struct report *report, size_t column)
{
	int width = (int)strlen(report->columns[column].name);
	char text[128];

	for (size_t row = 0; row < rows(report); row++) {
		int len = write_cell(report, row, column, "-", text, sizeof(text));

		if (len > width)
			width = len;
	}
	return width;
}

static int closed(const struct report *report, FILE *out)
{
	if (report->failed)
		return -ENOMEM;
	return fflush(out) == 0 && ferror(out) == 0 ? 0 : -EIO;
}

int report_print_table(const struct report *report, FILE *out)
{
	int width[REPORT_COLUMNS_MAX] = {0};
	char text[128];

	if (report->failed)
		return -ENOMEM;
	fprintf(out, "%s\n\n", report->title);
	for (size_t c = 0; c < report->column_count; c++) {
		width[c] = column_width(report, c);
		if (report->columns[c].decimals == REPORT_STRING)
			width[c] = -width[c];
		fprintf(out, "%*s%s", width[c], report->columns[c].name,
			c + 1 == report->column_count ? "\n" : "  ");
	}
	for (size_t row = 0; row < rows(report); row++)
		for (size_t c = 0; c < report->column_count; c++) {
			write_cell(report, row, c, "-", text, sizeof(text));
			fprintf(out, "%*s%s", width[c], text,
				c + 1 == report->column_count ? "\n" : "  ");
		}
	return closed(report, out);
}

int report_print_csv(const struct report *report, FILE *out)
{
	char text[128];

	if (report->failed)
		return -ENOMEM;
	for (size_t c = 0; c < report->column_count; c++)
		fprintf(out, "%s%s", report->columns[c].name,
			c + 1 == report->column_count ? "\n" : ",");
	for (size_t row = 0; row < rows(report); row++)
		for (size_t c = 0; c < report->column_count; c++) {
			write_cell(report, row, c, "", text, sizeof(text));
			fprintf(out, "%s%s", text, c + 1 == report->column_count ? "\n" : ",");
		}
	return closed(report, out);
}

/* Rounded as the table shows it, so that the text of a number stays short. */
static json_t *json_cell(const struct report *report, size_t row, size_t column)
{
	const union report_cell *cell = cell_at(report, row, column);
	int decimals = report->columns[column].decimals;
	double scale;

	if (decimals == REPORT_STRING)
		return json_string(cell->text);
	if (!isfinite(cell->number))
		return json_null();
	if (decimals == 0)
		return json_integer((json_int_t)llround(cell->number));
	scale = pow(10, decimals);
	return json_real(round(cell->number * scale) / scale);
}

int report_print_json(const struct report *report, FILE *out)
{
	if (report->failed)
		return -ENOMEM;
	for (size_t row = 0; row < rows(report); row++) {
		json_t *object = json_object();
		int err = object == NULL ? -1 : 0;

		for (size_t c = 0; c < report->column_count && err == 0; c++)
			err = json_object_set_new(object, report->columns[c].name,
						  json_cell(report, row, c));
		if (err == 0)
			err = json_dumpf(object, out,
					 JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
		json_decref(object);
		if (err != 0)
			return -ENOMEM;
		fputc('\n', out);
	}
	return closed(report, out);
}
