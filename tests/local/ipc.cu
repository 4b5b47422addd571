/*
 * Shares memory with other programs, as it is told by lines of input; each is answered by one line,
 * "ok" and what it brought, or "error" and the name of CUDA's code.
 *
 *	device NUMBER		ok: what comes from now on is on that device
 *	alloc BYTES		ok NUMBER: memory of cudaMalloc
 *	create BYTES		ok NUMBER: of cuMemCreate, mapped, that can be exported
 *	get NUMBER		ok HANDLE
 *	open HANDLE		ok NUMBER
 *	send NUMBER PATH	ok: its descriptor, to whoever listens there
 *	receive PATH BYTES	listening, and then ok NUMBER
 *	fill NUMBER SEED	ok: by a kernel
 *	check NUMBER SEED	ok yes, or ok no: by a copy
 *	sum NUMBER		ok SUM of its words, by a kernel
 *	drop NUMBER		ok: as it was got, so it is given back
 *	event			ok NUMBER: of its events
 *	get_event NUMBER	ok HANDLE
 *	open_event HANDLE	ok NUMBER
 *	record NUMBER		ok: in the stream, behind what is there
 *	await NUMBER		ok: what comes next in the stream waits for it
 *	happened NUMBER		ok yes, or ok no
 *	synchronize NUMBER	ok
 *	forget NUMBER		ok
 *	busy MILLISECONDS	ok: the stream has so much to do
 *	put NUMBER SEED		ok: as fill, and does not wait
 *	idle			ok yes, or ok no: whether the stream has nothing to do
 *	settle			ok, once it has not
 *	free			ok BYTES, as cudaMemGetInfo() says
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

enum kind { GONE, ALLOCATED, CREATED, OPENED };

struct memory {
	kind is;
	unsigned *words;
	size_t bytes;
	CUmemGenericAllocationHandle handle;
};

static std::vector<memory> memories;
static std::vector<cudaEvent_t> events;
static cudaStream_t stream; /* that of put, busy, record and await */

/* The driver's functions that are used. */
static struct {
	decltype(&cuMemCreate) create;
	decltype(&cuMemRelease) release;
	decltype(&cuMemAddressReserve) reserve;
	decltype(&cuMemAddressFree) unreserve;
	decltype(&cuMemMap) map;
	decltype(&cuMemUnmap) unmap;
	decltype(&cuMemSetAccess) access;
	decltype(&cuMemExportToShareableHandle) to_descriptor;
	decltype(&cuMemImportFromShareableHandle) from_descriptor;
	decltype(&cuGetErrorName) name;
} driver;

template <typename function> static void find(function *found, const char *name)
{
	static void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *address = library ? dlsym(library, name) : nullptr;

	if (!address) {
		fprintf(stderr, "ipc: %s\n", dlerror());
		exit(1);
	}
	memcpy(found, &address, sizeof(address));
}

static void find_all()
{
	find(&driver.create, "cuMemCreate");
	find(&driver.release, "cuMemRelease");
	find(&driver.reserve, "cuMemAddressReserve");
	find(&driver.unreserve, "cuMemAddressFree");
	find(&driver.map, "cuMemMap");
	find(&driver.unmap, "cuMemUnmap");
	find(&driver.access, "cuMemSetAccess");
	find(&driver.to_descriptor, "cuMemExportToShareableHandle");
	find(&driver.from_descriptor, "cuMemImportFromShareableHandle");
	find(&driver.name, "cuGetErrorName");
}

/* What a call of either library has failed with; the rest of the line is left out then. */
static void need(cudaError_t error)
{
	cudaGetLastError();
	if (error)
		throw std::string(cudaGetErrorName(error));
}

static void need(CUresult result)
{
	const char *name = "?";

	if (!result)
		return;
	driver.name(result, &name);
	throw std::string(name);
}

static __global__ void fill(unsigned *words, size_t count, unsigned seed)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		words[i] = (unsigned)i * 2654435761u + seed;
}

static __global__ void keep_busy(unsigned long long ns)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - start < ns);
}

static __global__ void add(const unsigned *words, size_t count, unsigned long long *sum)
{
	unsigned long long own = 0;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		own += words[i];
	atomicAdd(sum, own);
}

static size_t keep(kind is, void *words, size_t bytes, CUmemGenericAllocationHandle handle)
{
	memories.push_back({is, (unsigned *)words, bytes, handle});
	return memories.size() - 1;
}

static memory &at(size_t number)
{
	if (number >= memories.size() || memories[number].is == GONE)
		throw std::string("no such memory");
	return memories[number];
}

static size_t map(CUmemGenericAllocationHandle handle, size_t bytes)
{
	CUmemAccessDesc access = {};
	CUdeviceptr address;

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	need(driver.reserve(&address, bytes, 0, 0, 0));
	need(driver.map(address, bytes, 0, handle, 0));
	need(driver.access(address, bytes, &access, 1));
	return keep(CREATED, (void *)address, bytes, handle);
}

static size_t create(size_t bytes)
{
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle handle;

	need(cudaFree(nullptr));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	need(driver.create(&handle, bytes, &prop, 0));
	return map(handle, bytes);
}

static void drop(size_t number)
{
	memory &gone = at(number);
	CUdeviceptr address = (CUdeviceptr)gone.words;

	switch (gone.is) {
	case ALLOCATED:
		need(cudaFree(gone.words));
		break;
	case OPENED:
		need(cudaIpcCloseMemHandle(gone.words));
		break;
	default:
		need(driver.unmap(address, gone.bytes));
		need(driver.unreserve(address, gone.bytes));
		need(driver.release(gone.handle));
	}
	gone.is = GONE;
}

/* --- Handles and descriptors --- */

template <typename handle_type> static std::string text_of(const handle_type &handle)
{
	std::string text;
	char byte[3];

	for (unsigned char each : handle.reserved) {
		snprintf(byte, sizeof(byte), "%02x", each);
		text += byte;
	}
	return text;
}

template <typename handle_type> static handle_type handle_of(const char *text)
{
	handle_type handle = {};

	for (char &each : handle.reserved) {
		char byte[3] = {text[0], text[0] ? text[1] : '\0', '\0'};

		each = (char)strtoul(byte, nullptr, 16);
		text += text[0] ? 2 : 0;
	}
	return handle;
}

static sockaddr_un address_of(const char *path)
{
	sockaddr_un address = {};

	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

union control {
	cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void send_fd(const char *path, int fd)
{
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_un address = address_of(path);
	control control = {};
	char byte = 0;
	iovec part = {&byte, 1};
	msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (connect(connection, (sockaddr *)&address, sizeof(address)) ||
	    sendmsg(connection, &message, 0) != 1)
		throw std::string("it can't be sent");
	close(connection);
}

static int receive_fd(const char *path)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), connection, fd = -1;
	sockaddr_un address = address_of(path);
	control control = {};
	char byte;
	iovec part = {&byte, 1};
	msghdr message = {};

	if (bind(listener, (sockaddr *)&address, sizeof(address)) || listen(listener, 1))
		throw std::string("nothing can be received there");
	puts("listening");
	fflush(stdout);
	connection = accept(listener, nullptr, nullptr);
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen)
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	close(connection);
	close(listener);
	if (fd < 0)
		throw std::string("no descriptor came");
	return fd;
}

static size_t import(int fd, size_t bytes)
{
	CUmemGenericAllocationHandle handle;

	need(cudaFree(nullptr));
	need(driver.from_descriptor(&handle, (void *)(intptr_t)fd,
				    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	return map(handle, bytes);
}

/* --- Commands --- */

static bool is_right(const memory &memory, unsigned seed)
{
	std::vector<unsigned> words(memory.bytes / sizeof(unsigned));

	need(cudaMemcpy(words.data(), memory.words, memory.bytes, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < words.size(); i++) {
		if (words[i] != (unsigned)i * 2654435761u + seed)
			return false;
	}
	return true;
}

static unsigned long long sum_of(const memory &memory)
{
	unsigned long long *sum, result;

	need(cudaMalloc(&sum, sizeof(*sum)));
	need(cudaMemset(sum, 0, sizeof(*sum)));
	add<<<8, 128>>>(memory.words, memory.bytes / sizeof(unsigned), sum);
	need(cudaMemcpy(&result, sum, sizeof(result), cudaMemcpyDeviceToHost));
	need(cudaFree(sum));
	return result;
}

static cudaEvent_t event_at(size_t number)
{
	if (number >= events.size() || !events[number])
		throw std::string("no such event");
	return events[number];
}

static std::string keep_event(cudaEvent_t event)
{
	events.push_back(event);
	return std::to_string(events.size() - 1);
}

static std::string answer(cudaError_t error)
{
	if (error == cudaErrorNotReady)
		return cudaGetLastError(), "no";
	need(error);
	return "yes";
}

/* False: it is none of those of events and of the stream. */
static bool run_event(const std::string &verb, const char *first, const char *second,
		      std::string *result)
{
	size_t number = strtoull(first, nullptr, 0);
	cudaEvent_t made;

	if (!stream)
		need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	if (verb == "event") {
		need(cudaEventCreateWithFlags(&made,
					      cudaEventInterprocess | cudaEventDisableTiming));
		*result = keep_event(made);
	} else if (verb == "get_event") {
		cudaIpcEventHandle_t handle;

		need(cudaIpcGetEventHandle(&handle, event_at(number)));
		*result = text_of(handle);
	} else if (verb == "open_event") {
		need(cudaIpcOpenEventHandle(&made, handle_of<cudaIpcEventHandle_t>(first)));
		*result = keep_event(made);
	} else if (verb == "record") {
		need(cudaEventRecord(event_at(number), stream));
	} else if (verb == "await") {
		need(cudaStreamWaitEvent(stream, event_at(number), 0));
	} else if (verb == "happened") {
		*result = answer(cudaEventQuery(event_at(number)));
	} else if (verb == "synchronize") {
		need(cudaEventSynchronize(event_at(number)));
	} else if (verb == "forget") {
		need(cudaEventDestroy(event_at(number)));
		events[number] = nullptr;
	} else if (verb == "busy") {
		keep_busy<<<1, 1, 0, stream>>>(number * 1000000);
		need(cudaGetLastError());
	} else if (verb == "put") {
		fill<<<8, 128, 0, stream>>>(at(number).words, at(number).bytes / sizeof(unsigned),
					    (unsigned)strtoul(second, nullptr, 0));
		need(cudaGetLastError());
	} else if (verb == "idle") {
		*result = answer(cudaStreamQuery(stream));
	} else if (verb == "settle") {
		need(cudaStreamSynchronize(stream));
	} else {
		return false;
	}
	return true;
}

static std::string run(const std::string &verb, const char *first, const char *second)
{
	size_t number = strtoull(first, nullptr, 0), other = strtoull(second, nullptr, 0);
	void *made;

	if (verb == "device") {
		need(cudaSetDevice((int)number));
		return "";
	}
	if (verb == "alloc") {
		need(cudaMalloc(&made, number));
		return std::to_string(keep(ALLOCATED, made, number, 0));
	}
	if (verb == "create")
		return std::to_string(create(number));
	if (verb == "get") {
		cudaIpcMemHandle_t handle;

		need(cudaIpcGetMemHandle(&handle, at(number).words));
		return text_of(handle);
	}
	if (verb == "open") {
		need(cudaIpcOpenMemHandle(&made, handle_of<cudaIpcMemHandle_t>(first), cudaIpcMemLazyEnablePeerAccess));
		return std::to_string(keep(OPENED, made, other, 0));
	}
	if (verb == "send") {
		int fd;

		need(driver.to_descriptor(&fd, at(number).handle,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		send_fd(second, fd);
		close(fd);
		return "";
	}
	if (verb == "receive")
		return std::to_string(import(receive_fd(first), other));
	if (verb == "fill") {
		fill<<<8, 128>>>(at(number).words, at(number).bytes / sizeof(unsigned),
				 (unsigned)other);
		need(cudaGetLastError());
		need(cudaDeviceSynchronize());
		return "";
	}
	if (verb == "check")
		return is_right(at(number), (unsigned)other) ? "yes" : "no";
	if (verb == "sum")
		return std::to_string(sum_of(at(number)));
	if (verb == "drop") {
		drop(number);
		return "";
	}
	if (verb == "free") {
		size_t left, total;

		need(cudaMemGetInfo(&left, &total));
		return std::to_string(left);
	}
	std::string result;

	if (!run_event(verb, first, second, &result))
		throw std::string("no such command");
	return result;
}

int main()
{
	char line[1024], verb[16], first[512], second[512];

	find_all();
	while (fgets(line, sizeof(line), stdin)) {
		*verb = *first = *second = '\0';
		sscanf(line, "%15s %511s %511s", verb, first, second);
		try {
			printf("ok %s\n", run(verb, first, second).c_str());
		} catch (const std::string &why) {
			printf("error %s\n", why.c_str());
		}
		fflush(stdout);
	}
	return 0;
}
