/*
 * The journal's native form; see journald.h. sd_journal_sendv() may be called by any thread.
 */
#include "backend/journald.h"

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "common/log.h"

#define FIELDS_MAX 8
#define FIELD_LEN  1024

struct entry {
	struct iovec fields[FIELDS_MAX];
	char texts[FIELDS_MAX][FIELD_LEN];
	int count;
};

static void add(struct entry *entry, const char *name, const char *value)
{
	char *text = entry->texts[entry->count];

	if (!value || !*value)
		return;
	snprintf(text, FIELD_LEN, "%s=%s", name, value);
	entry->fields[entry->count++] = (struct iovec){text, strlen(text)};
}

static void add_number(struct entry *entry, const char *name, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	add(entry, name, text);
}

static int send_entry(enum fgv_log_level level, const struct fgv_log_subject *subject,
		      const char *text)
{
	static const unsigned priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
	struct entry entry = {.count = 0};

	add(&entry, "MESSAGE", text);
	add_number(&entry, "PRIORITY", priorities[level]);
	if (subject) {
		add(&entry, "FAIRGV_VM", subject->vm);
		add(&entry, "FAIRGV_PROGRAM", subject->program);
		add(&entry, "FAIRGV_GPU", subject->gpu);
		if (subject->session)
			add_number(&entry, "FAIRGV_SESSION", subject->session);
		add(&entry, "SYSLOG_IDENTIFIER", subject->writer);
		if (subject->writer_pid)
			add_number(&entry, "SYSLOG_PID", (unsigned)subject->writer_pid);
	}
	return sd_journal_sendv(entry.fields, entry.count);
}

void fgv_journald_begin(void)
{
	fgv_log_set_sink(send_entry);
}
