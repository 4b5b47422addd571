/*
 * fairgvctl doctor: what keeps FairGV from working on this machine, and what keeps shares from
 * binding everybody, each with what to do. docs/host.md says why.
 *
 * It looks at files below a folder that stands for the system's, so that a test can have its own
 * system.
 */
#include "tools/ctl.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/config/config.h"
#include "common/util.h"

enum verdict { FINE, HINT, WRONG };

struct doctor {
	const char *root; /* "": this system */
	const struct fgv_config *config;
	const char *control; /* the daemon's control socket */
	unsigned wrong;
};

/* One line; @text ends with what to do, where something is to be done. */
__attribute__((format(printf, 4, 5))) static void tell(struct doctor *doctor, enum verdict verdict,
						       const char *subject, const char *text, ...)
{
	static const char *const words[] = {"fine", "hint", "wrong"};
	va_list args;

	printf("%-5s  %-13s  ", words[verdict], subject);
	va_start(args, text);
	vprintf(text, args);
	va_end(args);
	putchar('\n');
	doctor->wrong += verdict == WRONG;
}

static void path_of(const struct doctor *doctor, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s%s", doctor->root, name);
}

/* The first line of a file, without its end; false where it can't be read. */
static bool read_line(const struct doctor *doctor, const char *name, char *line, size_t len)
{
	char path[PATH_MAX];
	FILE *file;
	bool found;

	path_of(doctor, name, path);
	file = fopen(path, "re");
	found = file && fgets(line, (int)len, file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
	return found;
}

static bool exists(const struct doctor *doctor, const char *name)
{
	char path[PATH_MAX];

	path_of(doctor, name, path);
	return !access(path, F_OK);
}

/* --- The daemon ---------------------------------------------------------------- */

static void check_daemon(struct doctor *doctor)
{
	int error = fgv_ctl_probe(doctor->control);

	if (!error)
		tell(doctor, FINE, "daemon", "answers at %s", doctor->control);
	else if (error == -EACCES)
		tell(doctor, HINT, "daemon", "%s is root's and the daemon's user's: ask as root",
		     doctor->control);
	else
		tell(doctor, WRONG, "daemon",
		     "none answers at %s: systemctl start fairgv; journalctl -u fairgv says why it "
		     "does not run",
		     doctor->control);
}

/* Whether users can come to the folder of @path. */
static void check_socket(struct doctor *doctor)
{
	const char *socket = doctor->config->socket;
	char path[PATH_MAX], *slash;
	struct stat folder;

	path_of(doctor, socket, path);
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	if (stat(path, &folder))
		tell(doctor, WRONG, "socket", "%s: %s: the daemon makes this folder when it starts",
		     path, strerror(errno));
	else if (!(folder.st_mode & S_IXOTH))
		tell(doctor, WRONG, "socket",
		     "%s is closed to users, whose programs connect in it: chmod o+x %s", path,
		     path);
	else
		tell(doctor, FINE, "socket", "users can connect at %s", socket);
}

/* A VM's own socket admits whoever gets to it. */
static void check_vm_sockets(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->config->vm_count; i++) {
		const struct fgv_config_vm *vm = &doctor->config->vms[i];
		char path[PATH_MAX], *slash;
		struct stat folder;

		if (!vm->socket)
			continue;
		path_of(doctor, vm->socket, path);
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
		if (!stat(path, &folder) && (folder.st_mode & S_IXOTH))
			tell(doctor, WRONG, "socket",
			     "%s is open to all users, and so is VM %s by its socket there: "
			     "chmod o-x %s",
			     path, vm->name, path);
	}
}

/* --- The GPU ------------------------------------------------------------------- */

static bool check_driver(struct doctor *doctor)
{
	char line[256];
	bool is_wanted = doctor->config->gpu.kind == FGV_GPU_CUDA;

	if (read_line(doctor, "/proc/driver/nvidia/version", line, sizeof(line))) {
		tell(doctor, FINE, "driver", "%s", line);
		return true;
	}
	if (doctor->config->gpu.kind == FGV_GPU_SOFT)
		tell(doctor, FINE, "driver", "none is needed: the GPU is a soft one");
	else
		tell(doctor, is_wanted ? WRONG : HINT, "driver",
		     "NVIDIA's is not loaded%s: modprobe nvidia",
		     is_wanted ? "" : ", so a soft GPU takes the place of the GPU");
	return false;
}

/* Members by the list of groups; whose first group it is, is not looked for. */
static void check_members(struct doctor *doctor, const char *name, const struct stat *file)
{
	const struct group *group = file->st_gid ? getgrgid(file->st_gid) : NULL;

	if (!file->st_gid)
		tell(doctor, WRONG, "devices",
		     "%s has no group of its own, so vGPU processes can't open it again: "
		     "docs/host.md gives it the group fairgv-gpu",
		     name);
	else if (group && group->gr_mem[0])
		tell(doctor, WRONG, "devices",
		     "%s is open to the members of group %s (%s, for one), whom no share binds: "
		     "gpasswd -d %s %s",
		     name, group->gr_name, group->gr_mem[0], group->gr_mem[0], group->gr_name);
	else
		tell(doctor, FINE, "devices", "%s is closed to users", name);
}

static void check_device(struct doctor *doctor, const char *path)
{
	const char *name = path + strlen(doctor->root);
	struct stat file;

	if (stat(path, &file) || S_ISDIR(file.st_mode))
		return;
	if (file.st_mode & (S_IROTH | S_IWOTH))
		tell(doctor, WRONG, "devices",
		     "%s is open to all users, whom no share binds then: docs/host.md closes it",
		     name);
	else
		check_members(doctor, name, &file);
}

static void check_devices(struct doctor *doctor)
{
	char pattern[PATH_MAX];
	glob_t found;

	path_of(doctor, "/dev/nvidia*", pattern);
	if (!glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			check_device(doctor, found.gl_pathv[i]);
	}
	globfree(&found);
}

/* Kernels that reach the memory of their vGPU process. */
static void check_hmm(struct doctor *doctor)
{
	char line[16];

	if (!read_line(doctor, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", line,
		       sizeof(line)))
		return;
	if (*line == 'N')
		tell(doctor, HINT, "HMM",
		     "is not switched off: option uvm_disable_hmm=1 of module nvidia-uvm");
	else
		tell(doctor, FINE, "HMM", "is switched off");
}

static void check_mps(struct doctor *doctor)
{
	if (exists(doctor, "/tmp/nvidia-mps/control"))
		tell(doctor, WRONG, "MPS",
		     "a server of somebody else's is at /tmp/nvidia-mps, by which programs get "
		     "past FairGV: echo quit | nvidia-cuda-mps-control");
	else
		tell(doctor, FINE, "MPS", "no server of somebody else's is seen");
}

static void check_holding(struct doctor *doctor)
{
	if (doctor->config->hold)
		tell(doctor, FINE, "holding",
		     "kernels that exceed their turn are held where that works, which the log "
		     "says");
	else
		tell(doctor, HINT, "holding",
		     "is off, so that a long kernel keeps others waiting: hold = \"auto\"");
}

/* --- The kernel ---------------------------------------------------------------- */

static void check_kernel(struct doctor *doctor)
{
	unsigned major = 0, minor = 0;
	char line[512];

	if (!read_line(doctor, "/proc/sys/kernel/osrelease", line, sizeof(line)) ||
	    sscanf(line, "%u.%u", &major, &minor) != 2)
		tell(doctor, HINT, "kernel", "its version is not known");
	else if (major < 6 || (major == 6 && minor < 5))
		tell(doctor, HINT, "kernel",
		     "%s: before 6.5 a program may pass for another one when it connects", line);
	else
		tell(doctor, FINE, "kernel", "%s", line);
	if (!read_line(doctor, "/sys/kernel/security/lsm", line, sizeof(line)))
		tell(doctor, HINT, "Landlock",
		     "is not known: mount -t securityfs none /sys/kernel/security");
	else if (!strstr(line, "landlock"))
		tell(doctor, HINT, "Landlock",
		     "is not in use, so vGPU processes may open what their user may: kernel "
		     "argument lsm=landlock,%s",
		     line);
	else
		tell(doctor, FINE, "Landlock", "limits the files of vGPU processes");
}

static void check_cgroups(struct doctor *doctor)
{
	char line[512];

	if (!strcmp(doctor->config->cgroup, "off"))
		tell(doctor, HINT, "groups",
		     "cgroup = \"off\": VMs' memory and processors are "
		     "limited for each process alone");
	else if (!read_line(doctor, "/sys/fs/cgroup/cgroup.controllers", line, sizeof(line)))
		tell(doctor, HINT, "groups",
		     "there are no control groups of version 2: kernel argument "
		     "systemd.unified_cgroup_hierarchy=1");
	else if (!strstr(line, "memory") || !strstr(line, "cpu"))
		tell(doctor, HINT, "groups", "their controllers are only: %s", line);
	else
		tell(doctor, FINE, "groups", "control groups can limit VMs");
}

/* --- All of it ----------------------------------------------------------------- */

static void check_all(struct doctor *doctor)
{
	tell(doctor, FINE, "configuration", "%s: VMs: %zu", doctor->config->file,
	     doctor->config->vm_count);
	check_daemon(doctor);
	check_socket(doctor);
	check_vm_sockets(doctor);
	if (check_driver(doctor)) {
		check_devices(doctor);
		check_hmm(doctor);
		check_mps(doctor);
	}
	check_holding(doctor);
	check_kernel(doctor);
	check_cgroups(doctor);
}

int fgv_ctl_doctor(const char *config_path, const char *control, const char *root)
{
	struct doctor doctor = {.root = root};
	struct fgv_config config;
	char why[1024];
	int ret;

	if (fgv_config_load(&config, config_path, why, sizeof(why))) {
		tell(&doctor, WRONG, "configuration", "%s", why);
		return fgv_ctl_flush() ? -EIO : -EINVAL;
	}
	doctor.config = &config;
	doctor.control = control ? control : config.control;
	check_all(&doctor);
	fgv_config_fini(&config);
	ret = fgv_ctl_flush();
	return ret || !doctor.wrong ? ret : -EINVAL;
}
