/*
 * A report's chart as commands for gnuplot: groups of bars, or lines. What gnuplot decides badly is
 * decided here: where an axis ends, when one bar dwarfs all others.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sim/report.h"

#define WIDTH  1120
#define HEIGHT 560

#define CLUSTER 0.8 /* of the distance between groups, which their bars take */

/* A group with more labels than this around it has smaller ones. */
#define GROUPS_FEW 12

static const char *const colours[] = {
	"#1b6ca8", "#e07a1f", "#3a8f3a", "#b03a48", "#7d5ba6",
	"#7a5c45", "#c56ca6", "#5a5a5a", "#b8a02e", "#2fa3a3",
};

#define COLOURS (sizeof(colours) / sizeof(colours[0]))

static const char *colour(size_t series)
{
	return colours[series % COLOURS];
}

/* In gnuplot's double quotes; NULL: an empty text. */
static void quoted(const char *text, FILE *out)
{
	fputc('"', out);
	for (; text != NULL && *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void set_text(const char *what, const char *text, FILE *out)
{
	fprintf(out, "set %s ", what);
	quoted(text, out);
	fputc('\n', out);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Where bars are cut off: at four times the median. INFINITY: none is so high. */
static double cut_of(const struct chart *chart)
{
	double *values = malloc(chart->point_count * sizeof(*values));
	double median, top;
	size_t count = 0;

	if (values == NULL)
		return INFINITY;
	for (size_t i = 0; i < chart->point_count; i++)
		if (isfinite(chart->points[i].y))
			values[count++] = chart->points[i].y;
	qsort(values, count, sizeof(*values), by_value);
	median = count > 0 ? values[count / 2] : INFINITY;
	top = count > 0 ? values[count - 1] : 0;
	free(values);
	return top > 4 * median ? 4 * median : INFINITY;
}

static void frame(const struct chart *chart, FILE *out)
{
	fprintf(out,
		"set terminal svg noenhanced size %d, %d font \"sans-serif,%d\" "
		"background rgb \"white\"\n"
		"set encoding utf8\n"
		"set border 3\n"
		"set xtics nomirror\n"
		"set ytics nomirror\n"
		"set grid ytics\n"
		"set key outside right top Left reverse\n",
		WIDTH, HEIGHT, chart->group_count > GROUPS_FEW ? 9 : 12);
	set_text("title", chart->title, out);
	set_text("xlabel", chart->x_title, out);
	set_text("ylabel", chart->y_title, out);
}

/* Bars of a group stand side by side around its middle. */
static double x_of(const struct chart *chart, const struct chart_point *p)
{
	if (chart->kind != CHART_BARS)
		return p->x;
	return p->x + CLUSTER * ((p->series + 0.5) / (double)chart->series_count - 0.5);
}

/* The points of one series, as data that a plot names. */
static void data(const struct chart *chart, size_t series, FILE *out)
{
	fprintf(out, "$series%zu << END\n", series);
	for (size_t i = 0; i < chart->point_count; i++) {
		const struct chart_point *p = &chart->points[i];

		if (p->series == series && isfinite(p->y))
			fprintf(out, "%.9g %.9g\n", x_of(chart, p), p->y);
	}
	fputs("END\n", out);
}

/* How the next series is drawn follows. */
static void plot(size_t series, FILE *out)
{
	fprintf(out, "%s$series%zu with ", series > 0 ? ", \\\n     " : "plot ", series);
}

/* --- Bars ------------------------------------------------------------------ */

static void group_names(const struct chart *chart, FILE *out)
{
	fputs("set xtics rotate by 50 right scale 0 (", out);
	for (size_t i = 0; i < chart->group_count; i++) {
		if (i > 0)
			fputs(", ", out);
		quoted(chart->groups[i], out);
		fprintf(out, " %zu", i);
	}
	fprintf(out, ")\nset xrange [-0.6:%.1f]\n", (double)chart->group_count - 0.4);
}

/* What is cut off says how high it is. */
static void cut(const struct chart *chart, double at, FILE *out)
{
	if (!isfinite(at)) {
		fputs("set yrange [0:*]\n", out);
		return;
	}
	fprintf(out, "set yrange [0:%.9g]\n", at);
	for (size_t i = 0; i < chart->point_count; i++) {
		const struct chart_point *p = &chart->points[i];

		if (isfinite(p->y) && p->y > at)
			fprintf(out, "set label \"%.4g\" at %.9g, %.9g center offset 0, 0.5\n",
				p->y, x_of(chart, p), at);
	}
}

static void bars(const struct chart *chart, FILE *out)
{
	group_names(chart, out);
	cut(chart, cut_of(chart), out);
	fprintf(out, "set boxwidth %.9g\nset style fill solid\n",
		CLUSTER / (double)chart->series_count);
	for (size_t series = 0; series < chart->series_count; series++) {
		plot(series, out);
		fprintf(out, "boxes fc rgb \"%s\" title ", colour(series));
		quoted(chart->series[series], out);
	}
}

/* --- Lines ----------------------------------------------------------------- */

/* Later lines are thinner, so that those beneath them show. */
static void lines(const struct chart *chart, FILE *out)
{
	const char *shape = chart->kind == CHART_STEPS ? "steps" : "lines";
	double count = (double)chart->series_count;

	fputs("set yrange [0:*]\n", out);
	for (size_t series = 0; series < chart->series_count; series++) {
		plot(series, out);
		fprintf(out, "%s lw %.1f lc rgb \"%s\"%s title ", shape,
			2 + 4 * (count - (double)series - 1) / count, colour(series),
			series >= COLOURS ? " dashtype 2" : "");
		quoted(chart->series[series], out);
	}
}

int report_print_plot(const struct report *report, FILE *out)
{
	const struct chart *chart = &report->chart;

	if (report->failed)
		return -ENOMEM;
	if (chart->point_count == 0)
		return -EINVAL;
	frame(chart, out);
	for (size_t series = 0; series < chart->series_count; series++)
		data(chart, series, out);
	if (chart->kind == CHART_BARS)
		bars(chart, out);
	else
		lines(chart, out);
	fputc('\n', out);
	return fflush(out) == 0 && ferror(out) == 0 ? 0 : -EIO;
}
