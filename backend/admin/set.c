/* Setting what a VM has of its GPU's time; see set.h. */
#define _GNU_SOURCE /* struct ucred */
#include "backend/admin/set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "backend/config/config.h"
#include "backend/config/text.h"
#include "backend/sched/gpusched.h"
#include "common/log.h"

#define SLO_MAX_NS 10000000000ll /* as of the configuration's key */
#define SHARE_LEN  16		 /* "12.3456%" */

/* What the configuration allows, at the start and later. */
static void weight_limits(uint64_t *min, uint64_t *max)
{
	size_t count;
	const struct fgv_config_key *key = fgv_config_keys(&count);

	while (!key->of_vm || strcmp(key->name, "weight") != 0)
		key++;
	*min = key->min;
	*max = key->max;
}

static json_t *set_weight(struct fgv_vm *vm, const json_t *value, const struct ucred *peer,
			  char *why, size_t why_len)
{
	json_int_t weight = json_integer_value(value);
	uint32_t before = fgv_gpusched_weight(vm->shares[0].vgpu);
	uint64_t min, max;
	int ret;

	weight_limits(&min, &max);
	if (!json_is_integer(value) || weight < (json_int_t)min || weight > (json_int_t)max) {
		snprintf(why, why_len, "a weight is a whole number from %" PRIu64 " to %" PRIu64,
			 min, max);
		return NULL;
	}
	ret = fgv_vm_set_weight(vm, (uint32_t)weight);
	if (ret) {
		snprintf(why, why_len, "vm %s: the weight can't be changed: %s", vm->config->name,
			 strerror(-ret));
		return NULL;
	}
	fgv_info("vm %s: weight %u -> %u, by process %d of user %u", vm->config->name, before,
		 (unsigned)weight, (int)peer->pid, (unsigned)peer->uid);
	return json_pack("{s:s, s:I, s:I}", "vm", vm->config->name, "weight", weight, "before",
			 (json_int_t)before);
}

static json_t *set_priority(struct fgv_vm *vm, const json_t *value, const struct ucred *peer,
			    char *why, size_t why_len)
{
	json_int_t priority = json_integer_value(value);
	uint32_t before = fgv_gpusched_priority(vm->shares[0].vgpu);
	int ret;

	if (!json_is_integer(value) || priority < 0 || priority >= FGV_SCHED_PRIORITIES) {
		snprintf(why, why_len, "a priority is a whole number from 0 to %u",
			 FGV_SCHED_PRIORITIES - 1);
		return NULL;
	}
	ret = fgv_vm_set_priority(vm, (uint32_t)priority);
	if (ret == -EOPNOTSUPP) {
		snprintf(why, why_len, "policy %s knows no priorities; fikit does",
			 fgv_gpusched_policy(vm->shares[0].device->sched));
		return NULL;
	}
	if (ret) {
		snprintf(why, why_len, "vm %s: the priority can't be changed: %s", vm->config->name,
			 strerror(-ret));
		return NULL;
	}
	fgv_info("vm %s: priority %u -> %u, by process %d of user %u", vm->config->name, before,
		 (unsigned)priority, (int)peer->pid, (unsigned)peer->uid);
	return json_pack("{s:s, s:I, s:I}", "vm", vm->config->name, "priority", priority, "before",
			 (json_int_t)before);
}

/* Reads a share to *@share where there is one; false: it is none. */
static bool read_share(const json_t *request, const char *key, uint32_t *share, char *why,
		       size_t why_len)
{
	const json_t *value = json_object_get(request, key);
	json_int_t number = json_integer_value(value);

	if (value && (!json_is_integer(value) || number < 0 || number > FGV_SCHED_WHOLE)) {
		snprintf(why, why_len, "\"%s\" is a whole number from 0 to %u", key,
			 FGV_SCHED_WHOLE);
		return false;
	}
	if (value)
		*share = (uint32_t)number;
	return true;
}

/* The same of a time. */
static bool read_time(const json_t *request, const char *key, uint64_t *ns, char *why,
		      size_t why_len)
{
	const json_t *value = json_object_get(request, key);
	json_int_t number = json_integer_value(value);

	if (value && (!json_is_integer(value) || number < 0 || number > SLO_MAX_NS)) {
		snprintf(why, why_len, "\"%s\" is a whole number from 0 to %lld", key, SLO_MAX_NS);
		return false;
	}
	if (value)
		*ns = (uint64_t)number;
	return true;
}

/* Why @vm can't have @shares. */
static void explain(const struct fgv_vm *vm, const struct fgv_sched_shares *shares, int ret,
		    char *why, size_t why_len)
{
	const char *policy = fgv_gpusched_policy(vm->shares[0].device->sched);
	char request[SHARE_LEN], limit[SHARE_LEN];

	fgv_config_text_show_share(shares->request, request, sizeof(request));
	fgv_config_text_show_share(shares->limit, limit, sizeof(limit));
	if (ret == -EOPNOTSUPP)
		snprintf(why, why_len, "policy %s knows no requests and limits; gemini does",
			 policy);
	else if (ret == -ENOSPC)
		snprintf(why, why_len,
			 "with %s, the VMs of GPU %" PRIu64 " would request more than all of it",
			 request, vm->config->device);
	else if (ret == -ERANGE)
		snprintf(why, why_len,
			 "an slo of %.3f ms can't be kept beside those of GPU %" PRIu64 "'s VMs",
			 (double)shares->bound_ns / 1e6, vm->config->device);
	else if (ret == -EINVAL && shares->bound_ns && !shares->request)
		snprintf(why, why_len, "an slo needs a request, within which it is kept");
	else if (ret == -EINVAL && shares->limit)
		snprintf(why, why_len, "a request of %s is above a limit of %s", request, limit);
	else if (ret == -EINVAL)
		snprintf(why, why_len, "a limit of 0%% would let nothing run");
	else
		snprintf(why, why_len, "vm %s: the shares can't be changed: %s", vm->config->name,
			 strerror(-ret));
}

static void log_change(const struct fgv_vm *vm, const struct fgv_sched_shares *before,
		       const struct fgv_sched_shares *shares, const struct ucred *peer)
{
	char text[4][SHARE_LEN];

	fgv_config_text_show_share(before->request, text[0], SHARE_LEN);
	fgv_config_text_show_share(shares->request, text[1], SHARE_LEN);
	fgv_config_text_show_share(before->limit, text[2], SHARE_LEN);
	fgv_config_text_show_share(shares->limit, text[3], SHARE_LEN);
	fgv_info("vm %s: request %s -> %s, limit %s -> %s, slo %.3f -> %.3f ms, by process %d of "
		 "user %u",
		 vm->config->name, text[0], text[1], text[2], text[3],
		 (double)before->bound_ns / 1e6, (double)shares->bound_ns / 1e6, (int)peer->pid,
		 (unsigned)peer->uid);
}

static json_t *set_shares(struct fgv_vm *vm, const json_t *request, const struct ucred *peer,
			  char *why, size_t why_len)
{
	struct fgv_sched_shares before, shares;
	int ret;

	fgv_gpusched_shares(vm->shares[0].vgpu, &before);
	shares = before;
	if (!read_share(request, "request_ppm", &shares.request, why, why_len) ||
	    !read_share(request, "limit_ppm", &shares.limit, why, why_len) ||
	    !read_time(request, "slo_ns", &shares.bound_ns, why, why_len))
		return NULL;
	ret = fgv_vm_set_shares(vm, &shares);
	if (ret) {
		explain(vm, &shares, ret, why, why_len);
		return NULL;
	}
	log_change(vm, &before, &shares, peer);
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "vm", vm->config->name,
			 "request_ppm", (json_int_t)shares.request, "limit_ppm",
			 (json_int_t)shares.limit, "slo_ns", (json_int_t)shares.bound_ns,
			 "request_before_ppm", (json_int_t)before.request, "limit_before_ppm",
			 (json_int_t)before.limit, "slo_before_ns", (json_int_t)before.bound_ns);
}

json_t *fgv_admin_set(struct fgv_vm *vm, const json_t *request, const struct ucred *peer, char *why,
		      size_t why_len)
{
	const json_t *weight = json_object_get(request, "weight");
	const json_t *priority = json_object_get(request, "priority");
	bool has_share = json_object_get(request, "request_ppm") ||
			 json_object_get(request, "limit_ppm") ||
			 json_object_get(request, "slo_ns");

	if (weight && !has_share && !priority)
		return set_weight(vm, weight, peer, why, why_len);
	if (priority && !has_share && !weight)
		return set_priority(vm, priority, peer, why, why_len);
	if (has_share && !weight && !priority)
		return set_shares(vm, request, peer, why, why_len);
	snprintf(why, why_len, "%s",
		 weight     ? "\"weight\" is set by itself"
		 : priority ? "\"priority\" is set by itself"
			    : "\"weight\", \"priority\", \"request_ppm\", \"limit_ppm\" or "
			      "\"slo_ns\" is missing");
	return NULL;
}
