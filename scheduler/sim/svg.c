/* Draws a report's chart as SVG: groups of bars, or lines, with axes and a legend. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sim/report.h"

#define WIDTH  1120.0
#define HEIGHT 560.0
#define LEFT   70.0
#define RIGHT  160.0
#define TOP    50.0
#define BOTTOM 150.0
#define TICKS  5

static const char *const colours[] = {
	"#1b6ca8", "#e07a1f", "#3a8f3a", "#b03a48", "#7d5ba6",
	"#7a5c45", "#c56ca6", "#5a5a5a", "#b8a02e", "#2fa3a3",
};

struct scale {
	double min_x, max_x, max_y;
};

#define COLOURS (sizeof(colours) / sizeof(colours[0]))

static const char *colour(size_t series)
{
	return colours[series % COLOURS];
}

/* The next round number not below @value. */
static double round_up(double value)
{
	double unit = value > 0 ? pow(10, floor(log10(value))) : 1;
	double steps[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i] * unit >= value)
			return steps[i] * unit;
	return 10 * unit;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Bars that dwarf the others are cut off: the top is four times the median at most. */
static double useful_top(const struct chart *chart, double top)
{
	double *values = malloc(chart->point_count * sizeof(*values)), median;
	size_t count = 0;

	if (values == NULL)
		return top;
	for (size_t i = 0; i < chart->point_count; i++)
		if (isfinite(chart->points[i].y))
			values[count++] = chart->points[i].y;
	qsort(values, count, sizeof(*values), by_value);
	median = count > 0 ? values[count / 2] : top;
	free(values);
	return fmin(top, 4 * median);
}

static struct scale scale_of(const struct chart *chart)
{
	struct scale s = {.min_x = INFINITY, .max_x = -INFINITY, .max_y = 0};

	for (size_t i = 0; i < chart->point_count; i++) {
		const struct chart_point *p = &chart->points[i];

		s.min_x = fmin(s.min_x, p->x);
		s.max_x = fmax(s.max_x, p->x);
		if (isfinite(p->y))
			s.max_y = fmax(s.max_y, p->y);
	}
	if (!(s.max_x > s.min_x))
		s.max_x = s.min_x + 1;
	if (chart->kind == CHART_BARS)
		s.max_y = useful_top(chart, s.max_y);
	else if (s.min_x > 0)
		s.min_x = fmin(s.min_x, s.max_x / 2) < s.max_x / 4 ? 0 : s.min_x;
	s.max_y = round_up(s.max_y);
	return s;
}

static double y_at(const struct scale *s, double y)
{
	return HEIGHT - BOTTOM - y / s->max_y * (HEIGHT - TOP - BOTTOM);
}

static double x_at(const struct scale *s, double x)
{
	return LEFT + (x - s->min_x) / (s->max_x - s->min_x) * (WIDTH - LEFT - RIGHT);
}

/* NULL: none. */
static void text(FILE *out, double x, double y, const char *anchor, const char *words)
{
	if (words == NULL)
		return;
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	for (; *words != '\0'; words++)
		switch (*words) {
		case '<':
			fputs("&lt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*words, out);
		}
	fputs("</text>\n", out);
}

static void number(FILE *out, double x, double y, const char *anchor, double value)
{
	char words[32];

	snprintf(words, sizeof(words), "%.4g", value);
	text(out, x, y, anchor, words);
}

static void axes(const struct chart *chart, const struct scale *s, FILE *out)
{
	text(out, WIDTH / 2, 24, "middle", chart->title);
	text(out, (WIDTH - RIGHT + LEFT) / 2, HEIGHT - 12, "middle", chart->x_title);
	text(out, 8, TOP - 14, "start", chart->y_title);
	for (int i = 0; i <= TICKS; i++) {
		double y = s->max_y * i / TICKS;

		fprintf(out,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
			LEFT, WIDTH - RIGHT, y_at(s, y), y_at(s, y));
		number(out, LEFT - 6, y_at(s, y) + 4, "end", y);
	}
	for (size_t i = 0; i < chart->series_count; i++) {
		double y = TOP + 20.0 * (double)i;

		fprintf(out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
			WIDTH - RIGHT + 14, y, colour(i));
		text(out, WIDTH - RIGHT + 32, y + 11, "start", chart->series[i]);
	}
}

static void bars(const struct chart *chart, const struct scale *s, FILE *out)
{
	double group = (WIDTH - LEFT - RIGHT) / (double)chart->group_count;
	double bar = 0.8 * group / (double)chart->series_count;

	for (size_t i = 0; i < chart->point_count; i++) {
		const struct chart_point *p = &chart->points[i];
		double x = LEFT + p->x * group + 0.1 * group + p->series * bar;

		double y = y_at(s, fmin(p->y, s->max_y));

		if (!isfinite(p->y))
			continue;
		fprintf(out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
			"fill=\"%s\"/>\n",
			x, y, bar, HEIGHT - BOTTOM - y, colour(p->series));
		if (p->y > s->max_y)
			number(out, x + bar / 2, y - 3, "middle", p->y);
	}
	for (size_t i = 0; i < chart->group_count; i++) {
		double x = LEFT + ((double)i + 0.5) * group + 4, y = HEIGHT - BOTTOM + 12;

		fprintf(out, "<g transform=\"rotate(-50 %.1f %.1f)\">", x, y);
		text(out, x, y, "end", chart->groups[i]);
		fputs("</g>\n", out);
	}
}

/* Later lines are thinner, so that those beneath them show. */
static void line(const struct chart *chart, const struct scale *s, size_t series, FILE *out)
{
	double last_y = NAN;

	fprintf(out, "<polyline fill=\"none\" stroke-width=\"%.1f\" stroke=\"%s\"%s points=\"",
		2 + 4.0 * (double)(chart->series_count - series - 1) / (double)chart->series_count,
		colour(series), series >= COLOURS ? " stroke-dasharray=\"6 4\"" : "");
	for (size_t i = 0; i < chart->point_count; i++) {
		const struct chart_point *p = &chart->points[i];

		if (p->series != series || !isfinite(p->y))
			continue;
		if (chart->kind == CHART_STEPS && isfinite(last_y))
			fprintf(out, "%.1f,%.1f ", x_at(s, p->x), last_y);
		last_y = y_at(s, p->y);
		fprintf(out, "%.1f,%.1f ", x_at(s, p->x), last_y);
	}
	fputs("\"/>\n", out);
}

static void lines(const struct chart *chart, const struct scale *s, FILE *out)
{
	double step = round_up((s->max_x - s->min_x) / 10);

	for (size_t series = 0; series < chart->series_count; series++)
		line(chart, s, series, out);
	for (double x = ceil(s->min_x / step) * step; x <= s->max_x; x += step)
		number(out, x_at(s, x), HEIGHT - BOTTOM + 18, "middle", x);
}

int report_print_svg(const struct report *report, FILE *out)
{
	const struct chart *chart = &report->chart;
	struct scale s = scale_of(chart);

	if (report->failed)
		return -ENOMEM;
	if (chart->point_count == 0)
		return -EINVAL;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"font-family=\"sans-serif\" font-size=\"%d\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH, HEIGHT, chart->group_count > 12 ? 9 : 12);
	axes(chart, &s, out);
	if (chart->kind == CHART_BARS)
		bars(chart, &s, out);
	else
		lines(chart, &s, out);
	fputs("</svg>\n", out);
	return fflush(out) == 0 && ferror(out) == 0 ? 0 : -EIO;
}
