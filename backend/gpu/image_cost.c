/*
 * Sizes by the section headers of machine code, which is ELF, and by the declarations of PTX.
 */
#include "backend/gpu/image_cost.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/gpu/fatbin.h"
#include "backend/gpu/placed.h"
#include "backend/gpu/ptx_bytes.h"
#include "common/util.h"

/* Machine code of all forms for one GPU that an image unpacks to. */
#define UNPACKED_MAX (1024ull * 1024 * 1024)

/* NVIDIA's own types of sections, of which older tools made use. */
#define SECTION_GLOBAL 0x70000007u
#define SECTION_LOCAL  0x70000009u
#define SECTION_SHARED 0x7000000au

struct reading {
	unsigned sm;
	const struct fgv_gpu_placed *placed;
	size_t placed_count;
	size_t left; /* that may be unpacked */
	char *log;
	size_t log_len;
};

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void add(struct fgv_gpu_module_cost *sum, const struct fgv_gpu_module_cost *cost)
{
	sum->data = plus(sum->data, cost->data);
	sum->code = plus(sum->code, cost->code);
}

static void raise_to(struct fgv_gpu_module_cost *most, const struct fgv_gpu_module_cost *cost)
{
	most->data = fgv_max_u64(most->data, cost->data);
	most->code = fgv_max_u64(most->code, cost->code);
}

/* --- Machine code ------------------------------------------------------------ */

/* Of kernels, while they run. */
static bool is_of_kernels(const char *name, const Elf64_Shdr *section)
{
	bool is_named = !strncmp(name, ".nv.shared", 10) || !strncmp(name, ".nv.local", 9);

	return is_named && (section->sh_type == SHT_NOBITS || section->sh_type == SECTION_LOCAL ||
			    section->sh_type == SECTION_SHARED);
}

static void count_section(const char *name, const Elf64_Shdr *section,
			  struct fgv_gpu_module_cost *cost)
{
	uint64_t align = section->sh_addralign;
	uint64_t bytes = plus(section->sh_size, align > 1 ? align - 1 : 0);

	if (is_of_kernels(name, section))
		return;
	if (!strncmp(name, ".nv.global", 10) || section->sh_type == SHT_NOBITS ||
	    section->sh_type == SECTION_GLOBAL || section->sh_type == SECTION_GLOBAL + 1)
		cost->data = plus(cost->data, bytes);
	else if (section->sh_flags & SHF_ALLOC)
		cost->code = plus(cost->code, bytes);
}

static bool is_within(uint64_t off, uint64_t bytes, size_t len)
{
	return off <= len && bytes <= len - off;
}

/* The table of sections' names; false where it is not there. It ends with a NUL. */
static bool find_names(const uint8_t *image, size_t len, const Elf64_Ehdr *head, const char **names,
		       uint64_t *names_len)
{
	Elf64_Shdr section;

	if (head->e_shstrndx >= head->e_shnum)
		return false;
	memcpy(&section, image + head->e_shoff + head->e_shstrndx * sizeof(section),
	       sizeof(section));
	if (!section.sh_size || !is_within(section.sh_offset, section.sh_size, len))
		return false;
	*names = (const char *)image + section.sh_offset;
	*names_len = section.sh_size;
	return (*names)[*names_len - 1] == '\0';
}

static CUresult machine_code_cost(const uint8_t *image, size_t len,
				  struct fgv_gpu_module_cost *cost)
{
	const char *names;
	uint64_t names_len;
	Elf64_Ehdr head;

	*cost = (struct fgv_gpu_module_cost){0};
	if (len < sizeof(head))
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&head, image, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_shentsize != sizeof(Elf64_Shdr) || !head.e_shnum ||
	    !is_within(head.e_shoff, (uint64_t)head.e_shnum * sizeof(Elf64_Shdr), len) ||
	    !find_names(image, len, &head, &names, &names_len))
		return CUDA_ERROR_INVALID_IMAGE;
	for (unsigned i = 0; i < head.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, image + head.e_shoff + i * sizeof(section), sizeof(section));
		if (section.sh_name >= names_len)
			return CUDA_ERROR_INVALID_IMAGE;
		count_section(names + section.sh_name, &section, cost);
	}
	return CUDA_SUCCESS;
}

/* --- Text ---------------------------------------------------------------------- */

/* What it will be compiled to is not known: about as much code as there is text, seldom more. */
static CUresult text_cost(const struct reading *reading, const char *text,
			  struct fgv_gpu_module_cost *cost)
{
	*cost = (struct fgv_gpu_module_cost){.code = strlen(text)};
	if (fgv_ptx_bytes(text, reading->placed, reading->placed_count, &cost->data) == 0)
		return CUDA_SUCCESS;
	snprintf(reading->log, reading->log_len,
		 "the size of a variable in .global or .const can't be told");
	return CUDA_ERROR_INVALID_PTX;
}

/* --- Containers ------------------------------------------------------------------ */

static bool may_be_taken(const struct reading *reading, const struct fgv_fatbin_entry *entry)
{
	if (entry->kind == FGV_FATBIN_PTX)
		return reading->sm == FGV_FATBIN_ANY_SM || entry->sm <= reading->sm;
	return entry->kind == FGV_FATBIN_CUBIN && reading->sm != FGV_FATBIN_ANY_SM &&
	       entry->sm / 10 == reading->sm / 10 && entry->sm <= reading->sm;
}

static CUresult entry_cost(struct reading *reading, const struct fgv_fatbin_entry *entry,
			   struct fgv_gpu_module_cost *cost)
{
	CUresult status;
	char *bytes;
	int err = fgv_fatbin_unpack(entry, &reading->left, &bytes);

	if (err < 0)
		return fgv_placed_status(err, reading->log, reading->log_len);
	if (entry->kind == FGV_FATBIN_PTX)
		status = text_cost(reading, bytes, cost);
	else
		status = machine_code_cost((const uint8_t *)bytes, entry->unpacked_len, cost);
	free(bytes);
	return status;
}

static CUresult container_cost(struct reading *reading, const void *container, size_t len,
			       struct fgv_gpu_module_cost *most)
{
	struct fgv_gpu_module_cost cost;
	struct fgv_fatbin_entry entry;
	CUresult status = CUDA_SUCCESS;
	size_t at = 0;
	int err = 0;

	*most = (struct fgv_gpu_module_cost){0};
	while (status == CUDA_SUCCESS &&
	       (err = fgv_fatbin_entry(container, len, &at, &entry)) > 0) {
		if (!may_be_taken(reading, &entry))
			continue;
		status = entry_cost(reading, &entry, &cost);
		if (status == CUDA_SUCCESS)
			raise_to(most, &cost);
	}
	return err < 0 ? CUDA_ERROR_INVALID_IMAGE : status;
}

/* The first is a program by itself, or all the others together are. */
static CUresult containers_cost(struct reading *reading, const uint8_t *at, size_t len,
				struct fgv_gpu_module_cost *cost)
{
	struct fgv_gpu_module_cost first = {0}, rest = {0}, one;
	unsigned containers;
	size_t container_len;

	if (fgv_fatbin_check(at, len, &containers) < 0)
		return CUDA_ERROR_INVALID_IMAGE;
	for (unsigned i = 0; i < containers; i++) {
		CUresult status;

		if (fgv_fatbin_extent(at, len, &container_len) < 0)
			return CUDA_ERROR_INVALID_IMAGE;
		status = container_cost(reading, at, container_len, &one);
		if (status != CUDA_SUCCESS)
			return status;
		add(i ? &rest : &first, &one);
		at += container_len;
		len -= container_len;
	}
	*cost = first;
	raise_to(cost, &rest);
	return CUDA_SUCCESS;
}

CUresult fgv_image_cost(const void *image, size_t len, unsigned sm,
			const struct fgv_gpu_placed *placed, size_t placed_count, char *log,
			size_t log_len, struct fgv_gpu_module_cost *cost)
{
	struct reading reading = {
		.sm = sm,
		.placed = placed,
		.placed_count = placed_count,
		.left = UNPACKED_MAX,
		.log = log,
		.log_len = log_len,
	};

	switch (fgv_fatbin_form(image, len)) {
	case FGV_FATBIN_CONTAINER:
		return containers_cost(&reading, image, len, cost);
	case FGV_FATBIN_BARE_PTX:
		return text_cost(&reading, image, cost);
	case FGV_FATBIN_BARE_CUBIN:
		if (sm == FGV_FATBIN_ANY_SM)
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
		return machine_code_cost(image, len, cost);
	case FGV_FATBIN_NOTHING:
		break;
	}
	return CUDA_ERROR_INVALID_IMAGE;
}
