/*
 * A look at a program's file, where FairGV was built without its libcuda: whether the program loads
 * a libcudart at all, and whether it looks for it where ours is. What is read decides on a line of text and on nothing else; a file that is no
 * program, or not understood, gives no hint.
 */
#define _GNU_SOURCE
#include "tools/run.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char library[] = "libcudart.so";

/* What there is to know of a program. The texts are the file's. */
struct needs {
	bool has_kernels;
	const char *runtime; /* the libcudart that it loads; NULL: none */
	const char *rpath;   /* goes before LD_LIBRARY_PATH; NULL: nothing does */
};

static bool find_program(const char *name, char *path, size_t len)
{
	char *copy, *rest, *folder;
	bool found = false;

	if (strchr(name, '/')) {
		snprintf(path, len, "%s", name);
		return true;
	}
	copy = strdup(getenv("PATH") ? getenv("PATH") : "");
	rest = copy;
	while (copy && !found && (folder = strsep(&rest, ":"))) {
		snprintf(path, len, "%s/%s", *folder ? folder : ".", name);
		found = !access(path, X_OK);
	}
	free(copy);
	return found;
}

static void read_entry(Elf *elf, size_t strings, const GElf_Dyn *entry, struct needs *needs,
		       bool *has_runpath)
{
	const char *text = elf_strptr(elf, strings, entry->d_un.d_val);

	if (entry->d_tag == DT_RUNPATH)
		*has_runpath = true;
	else if (entry->d_tag == DT_RPATH)
		needs->rpath = text;
	else if (entry->d_tag == DT_NEEDED && text && !strncmp(text, library, strlen(library)))
		needs->runtime = text;
}

static void read_dynamic(Elf *elf, Elf_Scn *section, size_t strings, struct needs *needs)
{
	Elf_Data *data = elf_getdata(section, NULL);
	bool has_runpath = false;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		read_entry(elf, strings, &entry, needs, &has_runpath);
	/* The loader takes no notice of it beside a run path. */
	if (has_runpath)
		needs->rpath = NULL;
}

static bool read_sections(Elf *elf, struct needs *needs)
{
	Elf_Scn *section = NULL;
	bool is_dynamic = false;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			return false;
		name = elf_strptr(elf, names, header.sh_name);
		needs->has_kernels |= name && !strcmp(name, ".nv_fatbin");
		if (header.sh_type != SHT_DYNAMIC)
			continue;
		is_dynamic = true;
		read_dynamic(elf, section, header.sh_link, needs);
	}
	return is_dynamic;
}

/* The first folder of needs->rpath that has the runtime, if it comes from @program's RPATH. */
static bool find_in_rpath(const char *program, const struct needs *needs, const char *own_folder,
			  char *found, size_t len)
{
	char origin[PATH_MAX], own[2 * PATH_MAX], *copy = strdup(needs->rpath), *rest = copy;
	struct stat ours = {0}, other;
	bool is_other = false;
	char *folder;

	snprintf(origin, sizeof(origin), "%s", program);
	dirname(origin);
	snprintf(own, sizeof(own), "%s/%s", own_folder, needs->runtime);
	stat(own, &ours);
	while (copy && !is_other && (folder = strsep(&rest, ":"))) {
		bool from_origin = !strncmp(folder, "$ORIGIN", strlen("$ORIGIN"));

		int need = snprintf(found, len, "%s%s/%s", from_origin ? origin : "",
				    from_origin ? folder + strlen("$ORIGIN") : folder,
				    needs->runtime);

		if (need >= (int)len || stat(found, &other))
			continue;
		is_other = other.st_ino != ours.st_ino || other.st_dev != ours.st_dev;
		break;
	}
	free(copy);
	return is_other;
}

static const char *judge(const struct fgv_run *run, const char *path, const struct needs *needs,
			 char *text, size_t len)
{
	char other[PATH_MAX];

	if (needs->has_kernels && !needs->runtime) {
		snprintf(text, len,
			 "%s has NVIDIA's CUDA runtime linked in and won't use FairGV: build it with "
			 "nvcc -cudart shared",
			 path);
		return text;
	}
	if (!needs->runtime || !needs->rpath ||
	    !find_in_rpath(path, needs, run->library_folder, other, sizeof(other)))
		return NULL;
	snprintf(text, len,
		 "%s loads %s by an RPATH of its own and won't use FairGV: link it without, or "
		 "with -Wl,--enable-new-dtags",
		 path, other);
	return text;
}

/* With our libcuda every runtime ends up here, wherever it comes from. */
static bool has_driver(const struct fgv_run *run)
{
	char path[sizeof(run->library_folder) + 32];

	snprintf(path, sizeof(path), "%s/libcuda.so.1", run->library_folder);
	return !access(path, F_OK);
}

const char *fgv_run_hint(const struct fgv_run *run, char *text, size_t len)
{
	struct needs needs = {0};
	const char *hint = NULL;
	char path[PATH_MAX];
	Elf *elf;
	int fd;

	if (has_driver(run) || !find_program(run->program[0], path, sizeof(path)) ||
	    elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && read_sections(elf, &needs))
		hint = judge(run, path, &needs, text, len);
	elf_end(elf);
	close(fd);
	return hint;
}
