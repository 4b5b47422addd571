/*
 * Values of the configuration as text, and whether they are the same; see config.h.
 */
#include "backend/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/config/text.h"

static void show_gpu(FILE *out, const struct fgv_gpu_choice *choice)
{
	static const char *const kinds[] = {"auto", "cuda", "soft"};

	fputs(kinds[choice->kind], out);
	if (choice->kind == FGV_GPU_SOFT && choice->count)
		fprintf(out, ":%u", choice->count);
	for (unsigned i = 0; choice->kind == FGV_GPU_CUDA && i < choice->count; i++)
		fprintf(out, "%c%u", i ? ',' : ':', choice->ordinals[i]);
}

static void show_users(FILE *out, const struct fgv_config_users *users)
{
	for (size_t i = 0; i < users->count; i++)
		fprintf(out, "%s%u", i ? "," : "", (unsigned)users->uids[i]);
}

static void show_devices(FILE *out, const struct fgv_config_devices *devices)
{
	if (devices->is_all)
		fputs("all", out);
	for (unsigned i = 0; !devices->is_all && i < devices->count; i++)
		fprintf(out, "%s%u", i ? "," : "", devices->list[i]);
}

static void show_uids(FILE *out, const struct fgv_config_uids *uids)
{
	if (uids->count)
		fprintf(out, "%u-%zu", (unsigned)uids->first, uids->first + uids->count - 1);
	else
		fputs("none", out);
}

static void show_number(FILE *out, const struct fgv_config_key *key, uint64_t number)
{
	char text[40];

	if (number == FGV_CONFIG_NO_LIMIT)
		snprintf(text, sizeof(text), "none");
	else if (key->type == FGV_CONFIG_SIZE)
		fgv_config_text_show_size(number, text, sizeof(text));
	else if (key->type == FGV_CONFIG_SHARE ||
		 (key->type == FGV_CONFIG_SMS && (number & FGV_CONFIG_PART)))
		fgv_config_text_show_share(number & (FGV_CONFIG_PART - 1), text, sizeof(text));
	else if (key->type == FGV_CONFIG_NUMBER || key->type == FGV_CONFIG_SMS || !number)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	else
		fgv_config_text_show_duration(number, text, sizeof(text));
	fputs(text, out);
}

static void show_factor(FILE *out, uint64_t factor)
{
	if (factor == FGV_CONFIG_NO_LIMIT || !factor)
		fputs(factor ? "true" : "false", out);
	else
		fprintf(out, "%.3f", (double)factor / FGV_CONFIG_FACTOR_ONE);
}

/* The two words of a key that says yes or no. */
static const char *word(enum fgv_config_type type, bool value)
{
	switch (type) {
	case FGV_CONFIG_AUTO:
		return value ? "auto" : "off";
	case FGV_CONFIG_SANDBOX:
		return value ? "record" : "enforce";
	case FGV_CONFIG_PAGEABLE:
		return value ? "refuse" : "warn";
	default:
		return value ? "true" : "false";
	}
}

static const char *const slicing_names[] = {
	[FGV_SLICING_OFF] = "off",
	[FGV_SLICING_AUTO] = "auto",
	[FGV_SLICING_ON] = "on",
	[FGV_SLICING_AS_ALL] = "none",
};

static void show_text(FILE *out, const char *text)
{
	fputs(text ? text : "none", out);
}

static void show(FILE *out, const struct fgv_config_key *key, const void *value)
{
	switch (key->type) {
	case FGV_CONFIG_GPU:
		show_gpu(out, value);
		break;
	case FGV_CONFIG_PATH:
	case FGV_CONFIG_NAME:
	case FGV_CONFIG_CGROUP:
		show_text(out, *(const char *const *)value);
		break;
	case FGV_CONFIG_SIZE:
	case FGV_CONFIG_NUMBER:
	case FGV_CONFIG_DURATION:
	case FGV_CONFIG_TIMEOUT:
	case FGV_CONFIG_SHARE:
	case FGV_CONFIG_SMS:
		show_number(out, key, *(const uint64_t *)value);
		break;
	case FGV_CONFIG_FACTOR:
		show_factor(out, *(const uint64_t *)value);
		break;
	case FGV_CONFIG_SWITCH:
	case FGV_CONFIG_AUTO:
	case FGV_CONFIG_SANDBOX:
	case FGV_CONFIG_PAGEABLE:
		fputs(word(key->type, *(const bool *)value), out);
		break;
	case FGV_CONFIG_POLICY:
		fputs((*(const struct fgv_policy *const *)value)->name, out);
		break;
	case FGV_CONFIG_CONTEXT:
		fputs(*(const enum fgv_context *)value == FGV_CONTEXT_MPS ? "mps" : "isolated",
		      out);
		break;
	case FGV_CONFIG_UIDS:
		show_uids(out, value);
		break;
	case FGV_CONFIG_USER:
		fprintf(out, "%u", (unsigned)*(const uid_t *)value);
		break;
	case FGV_CONFIG_USERS:
		show_users(out, value);
		break;
	case FGV_CONFIG_DEVICES:
		show_devices(out, value);
		break;
	case FGV_CONFIG_SLICING:
		fputs(slicing_names[*(const enum fgv_slicing *)value], out);
		break;
	case FGV_CONFIG_PLACE:
		fputs((*(const struct fgv_place_rule *const *)value)->name, out);
		break;
	case FGV_CONFIG_VMS:
		break;
	}
}

char *fgv_config_show(const struct fgv_config_key *key, const void *values)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	show(out, key, (const char *)values + key->offset);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_same_users(const struct fgv_config_users *a, const struct fgv_config_users *b)
{
	return a->count == b->count && !memcmp(a->uids, b->uids, a->count * sizeof(*a->uids));
}

/* What "hang" comes to depends on whether the file has it. */
static bool is_same_hang(const struct fgv_config *a, const struct fgv_config *b)
{
	return a->hang_ns == b->hang_ns && a->hang_held_ns == b->hang_held_ns;
}

static bool is_same_gpu(const struct fgv_gpu_choice *a, const struct fgv_gpu_choice *b)
{
	return a->kind == b->kind && a->count == b->count &&
	       !memcmp(a->ordinals, b->ordinals, a->count * sizeof(*a->ordinals));
}

static bool is_same_devices(const struct fgv_config_devices *a, const struct fgv_config_devices *b)
{
	return a->is_all == b->is_all && a->count == b->count &&
	       !memcmp(a->list, b->list, a->count * sizeof(*a->list));
}

bool fgv_config_is_same(const struct fgv_config_key *key, const void *a, const void *b)
{
	const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;
	const struct fgv_config_uids *uids_x = x, *uids_y = y;

	switch (key->type) {
	case FGV_CONFIG_GPU:
		return is_same_gpu(x, y);
	case FGV_CONFIG_PATH:
	case FGV_CONFIG_NAME:
	case FGV_CONFIG_CGROUP:
		return is_same_text(*(const char *const *)x, *(const char *const *)y);
	case FGV_CONFIG_TIMEOUT:
		return key->of_vm ? *(const uint64_t *)x == *(const uint64_t *)y
				  : is_same_hang(a, b);
	case FGV_CONFIG_SIZE:
	case FGV_CONFIG_NUMBER:
	case FGV_CONFIG_DURATION:
	case FGV_CONFIG_SHARE:
	case FGV_CONFIG_SMS:
	case FGV_CONFIG_FACTOR:
		return *(const uint64_t *)x == *(const uint64_t *)y;
	case FGV_CONFIG_SWITCH:
	case FGV_CONFIG_AUTO:
	case FGV_CONFIG_SANDBOX:
	case FGV_CONFIG_PAGEABLE:
		return *(const bool *)x == *(const bool *)y;
	case FGV_CONFIG_POLICY:
		return *(const struct fgv_policy *const *)x == *(const struct fgv_policy *const *)y;
	case FGV_CONFIG_CONTEXT:
		return *(const enum fgv_context *)x == *(const enum fgv_context *)y;
	case FGV_CONFIG_UIDS:
		return uids_x->first == uids_y->first && uids_x->count == uids_y->count;
	case FGV_CONFIG_USER:
		return *(const uid_t *)x == *(const uid_t *)y;
	case FGV_CONFIG_USERS:
		return is_same_users(x, y);
	case FGV_CONFIG_DEVICES:
		return is_same_devices(x, y);
	case FGV_CONFIG_SLICING:
		return *(const enum fgv_slicing *)x == *(const enum fgv_slicing *)y;
	case FGV_CONFIG_PLACE:
		return *(const struct fgv_place_rule *const *)x ==
		       *(const struct fgv_place_rule *const *)y;
	case FGV_CONFIG_VMS:
		break;
	}
	return true;
}

const struct fgv_config_vm *fgv_config_find_vm(const struct fgv_config *config, const char *name)
{
	for (size_t i = 0; i < config->vm_count; i++) {
		if (!strcmp(config->vms[i].name, name))
			return &config->vms[i];
	}
	return NULL;
}
