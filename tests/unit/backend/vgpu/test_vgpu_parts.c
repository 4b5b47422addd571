/*
 * A session with two GPUs: each has memory, handles, a quota and a grant of its own, and does not
 * wait for the other; and one end ends both.
 */
#include <check.h>
#include <cuda.h>
#include <stdlib.h>
#include <unistd.h>
#include "softgpu/softgpu.h"
#include "tests/unit/backend/vgpu/vgpu_calls.h"

static struct vgpu first, second;

static void setup(void)
{
	struct fgv_setup both;

	vgpu_spawn(&first);
	vgpu_send_prepare(&first, VGPU_MEMORY);
	vgpu_right_setup(&first, &both);
	both.parts = 1;
	vgpu_send_setup(&first, &both);
	vgpu_send_part(&first, &second, 1);
	vgpu_read_welcome(&first);
	ck_assert_msg(first.welcome.status == CUDA_SUCCESS, "refused: %s", first.welcome.text);
	ck_assert_uint_eq(first.welcome.parts, 1);
	vgpu_read_part(&first, &second);
	ck_assert_uint_eq(second.welcome.parts, 0);
	vgpu_attach_lanes(&first);
	vgpu_attach_lanes(&second);
}

static void teardown(void)
{
	vgpu_leave(&first);
	vgpu_give_back(&second);
}

static uint32_t word_at(struct vgpu *vgpu, uint64_t address)
{
	ck_assert_uint_eq(vgpu_copy_out(vgpu, address, sizeof(uint32_t), 0), CUDA_SUCCESS);
	return *(uint32_t *)vgpu_arena(vgpu, 0);
}

/* Adds @more to a word that is 1, with a kernel; the kernel adds 5 besides. */
static uint32_t add_one_word(struct vgpu *vgpu, uint64_t more)
{
	uint32_t function = vgpu_must_get(vgpu, vgpu_add_ptx, "add");
	uint64_t address = vgpu_must_alloc(vgpu, 4096);
	uint64_t args[] = {address, 1, more};

	vgpu_fill(vgpu, address, 1, 1, 4);
	vgpu_launch(vgpu, function, 1, args, 3);
	return word_at(vgpu, address);
}

START_TEST(both_compute)
{
	ck_assert_uint_eq(add_one_word(&first, 10), 16);
	ck_assert_uint_eq(add_one_word(&second, 20), 26);
}
END_TEST

/* The program would take one for the other. */
START_TEST(addresses_differ)
{
	uint64_t one = vgpu_must_alloc(&first, 4096), other = vgpu_must_alloc(&second, 4096);

	ck_assert_uint_ne(one, other);
	vgpu_fill(&first, one, 1, 7, 4);
	vgpu_fill(&second, other, 1, 8, 4);
	ck_assert_uint_eq(word_at(&first, one), 7);
	ck_assert_uint_eq(word_at(&second, other), 8);
}
END_TEST

static uint64_t used_bytes(const struct vgpu *vgpu)
{
	return __atomic_load_n(&vgpu->accounts->sessions[2].memory_bytes, __ATOMIC_SEQ_CST);
}

START_TEST(quotas_are_kept_apart)
{
	uint64_t address, before = used_bytes(&second);

	vgpu_must_alloc(&first, VGPU_QUOTA - (1u << 20));
	ck_assert_uint_eq(used_bytes(&second), before);
	ck_assert_uint_eq(vgpu_alloc(&first, 2u << 20, &address), CUDA_ERROR_OUT_OF_MEMORY);
	vgpu_must_alloc(&second, VGPU_QUOTA - (1u << 20));
	ck_assert_uint_eq(vgpu_alloc(&second, 2u << 20, &address), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

/* A handle of the other GPU is none, or another object of this one's. */
START_TEST(handles_of_the_other_gpu)
{
	uint32_t stream = vgpu_must_create_stream(&second, 0), handle = 0;
	struct fgv_stream_sync_request request = {.stream = stream};
	uint32_t function = vgpu_must_get(&second, vgpu_add_ptx, "add");
	struct fgv_module_unload_request unload = {.module = function};

	ck_assert_uint_eq(
		vgpu_call(&second, 0, FGV_OP_STREAM_SYNC, &request, sizeof(request), NULL),
		CUDA_SUCCESS);
	ck_assert_uint_ne(vgpu_call(&first, 0, FGV_OP_STREAM_SYNC, &request, sizeof(request), NULL),
			  CUDA_SUCCESS);
	/* The failure of a post is told by the next call. */
	vgpu_must_post(&first, 0, FGV_OP_MODULE_UNLOAD, &unload, sizeof(unload));
	ck_assert_uint_ne(vgpu_device_sync(&first), CUDA_SUCCESS);
	ck_assert_uint_ne(vgpu_get_function(&first, 0, "add", &handle), CUDA_SUCCESS);
	ck_assert_uint_eq(add_one_word(&first, 1), 7);
	ck_assert_uint_eq(add_one_word(&second, 1), 7);
}
END_TEST

/* Nor is its memory reached by its address: that ends in a fault of this GPU alone. */
START_TEST(memory_of_the_other_gpu)
{
	uint64_t other = vgpu_must_alloc(&second, 4096);

	vgpu_fill(&second, other, 1, 9, 4);
	vgpu_fill(&first, other, 1, 1, 4);
	ck_assert_uint_ne(vgpu_device_sync(&first), CUDA_SUCCESS);
	ck_assert_uint_eq(word_at(&second, other), 9);
}
END_TEST

static uint64_t ask_peer(struct vgpu *vgpu, enum fgv_op op, uint32_t peer)
{
	return vgpu_call(vgpu, 0, op, &peer, sizeof(peer), NULL);
}

static uint64_t copy_between(struct vgpu *vgpu, uint64_t to, uint64_t from)
{
	struct fgv_copy_device_request copy = {.to = to, .from = from, .size = 4096};

	vgpu_must_post(vgpu, 0, FGV_OP_COPY_DEVICE, &copy, sizeof(copy));
	return vgpu_device_sync(vgpu);
}

/* Each way by itself; there are two GPUs, and none is its own peer. */
START_TEST(peers)
{
	uint64_t one = vgpu_must_alloc(&first, 4096), other = vgpu_must_alloc(&second, 4096);
	static const uint32_t none[] = {1, 2, FGV_DEVICES_MAX, UINT32_MAX};

	vgpu_fill(&second, other, 1, 9, 4);
	ck_assert_uint_eq(vgpu_device_sync(&second), CUDA_SUCCESS);
	ck_assert_uint_eq(copy_between(&first, one, other), CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(ask_peer(&second, FGV_OP_PEER_ENABLE, none[i]),
				  CUDA_ERROR_INVALID_DEVICE);
	ck_assert_uint_eq(ask_peer(&first, FGV_OP_PEER_DISABLE, 1),
			  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	ck_assert_uint_eq(ask_peer(&first, FGV_OP_PEER_ENABLE, 1), CUDA_SUCCESS);
	ck_assert_uint_eq(ask_peer(&first, FGV_OP_PEER_ENABLE, 1),
			  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	ck_assert_uint_eq(copy_between(&first, one, other), CUDA_SUCCESS);
	ck_assert_uint_eq(word_at(&first, one), 9);
	ck_assert_uint_eq(copy_between(&second, other, one), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(copy_between(&first, one, other + 1), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(ask_peer(&first, FGV_OP_PEER_DISABLE, 1), CUDA_SUCCESS);
	ck_assert_uint_eq(copy_between(&first, one, other), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Without its grant a GPU is not used, whatever the session has of the other. */
START_TEST(a_grant_is_of_one_gpu)
{
	uint64_t one = vgpu_must_alloc(&first, 4096), other = vgpu_must_alloc(&second, 4096);

	ck_assert_uint_eq(vgpu_device_sync(&second), CUDA_SUCCESS);
	vgpu_take_grant(&second);
	vgpu_fill(&second, other, 1, 3, 4);
	vgpu_await_wants(&second);
	/* Work on the first one goes on, and is charged there. */
	vgpu_fill(&first, one, 1, 4, 4);
	ck_assert_uint_eq(word_at(&first, one), 4);
	ck_assert_int_eq(fgv_grant_state(fgv_grant_load(second.grant)), FGV_GRANT_NONE);
	vgpu_grant(&second, FGV_GRANT_NO_LIMIT);
	ck_assert_uint_eq(word_at(&second, other), 3);
}
END_TEST

static uint32_t show(struct vgpu *vgpu, uint64_t address)
{
	struct fgv_host_show_request request = {.address = address};

	return vgpu_call(vgpu, 0, FGV_OP_HOST_SHOW, &request, sizeof(request), NULL);
}

/*
 * What the first one has mapped can be shown to the other, and nothing else; and it stays as long
 * as one of them has it, in whichever order a guest has it unmapped.
 */
START_TEST(host_memory_of_both)
{
	const uint64_t shared = VGPU_SHARED_ADDRESS, off = 1 << 20;
	uint32_t *word = (uint32_t *)vgpu_arena(&first, off);

	ck_assert_uint_eq(show(&second, shared), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(vgpu_host_map(&first, shared, off, 8192), CUDA_SUCCESS);
	ck_assert_uint_eq(show(&first, shared), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(show(&second, shared + 4096), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(show(&second, shared), CUDA_SUCCESS);
	ck_assert_uint_eq(show(&second, shared), CUDA_ERROR_ALREADY_MAPPED);
	vgpu_fill(&first, shared, 1, 5, 4);
	ck_assert_uint_eq(vgpu_device_sync(&first), CUDA_SUCCESS);
	vgpu_fill(&second, shared + 4, 1, 6, 4);
	ck_assert_uint_eq(vgpu_device_sync(&second), CUDA_SUCCESS);
	ck_assert_uint_eq(word[0], 5);
	ck_assert_uint_eq(word[1], 6);

	ck_assert_uint_eq(vgpu_host_unmap(&first, shared), CUDA_SUCCESS);
	ck_assert_uint_eq(show(&second, shared), CUDA_ERROR_ALREADY_MAPPED);
	vgpu_fill(&second, shared, 1, 7, 4);
	ck_assert_uint_eq(vgpu_device_sync(&second), CUDA_SUCCESS);
	ck_assert_uint_eq(word[0], 7);
	/* The address is taken, as the other still has it. */
	ck_assert_uint_eq(vgpu_host_map(&first, shared, off, 8192), CUDA_ERROR_ALREADY_MAPPED);
	ck_assert_uint_eq(vgpu_host_unmap(&second, shared), CUDA_SUCCESS);
	ck_assert_uint_eq(vgpu_host_map(&first, shared, off, 8192), CUDA_SUCCESS);
	ck_assert_uint_eq(show(&second, shared), CUDA_SUCCESS);
}
END_TEST

#define UNIT	    SOFTGPU_CHUNK_GRANULE
#define ALL	    CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define WRONG(call) ck_assert_uint_eq((call), CUDA_ERROR_INVALID_VALUE)
#define RIGHT(call) ck_assert_uint_eq((call), CUDA_SUCCESS)

static uint32_t reserve(struct vgpu *vgpu, uint64_t *address)
{
	struct fgv_address_reserve_request request = {.size = 2 * UNIT};
	struct fgv_address_reserve_reply reply = {0};
	uint32_t status =
		vgpu_call(vgpu, 0, FGV_OP_ADDRESS_RESERVE, &request, sizeof(request), &reply);

	*address = reply.address;
	return status;
}

static uint32_t free_addresses(struct vgpu *vgpu, uint64_t address)
{
	struct fgv_address_free_request request = {address};

	return vgpu_call(vgpu, 0, FGV_OP_ADDRESS_FREE, &request, sizeof(request), NULL);
}

static uint32_t must_create(struct vgpu *vgpu)
{
	struct fgv_memory_create_request request = {UNIT};
	struct fgv_memory_create_reply reply = {0};

	RIGHT(vgpu_call(vgpu, 0, FGV_OP_MEMORY_CREATE, &request, sizeof(request), &reply));
	return reply.memory;
}

static uint32_t map(struct vgpu *vgpu, uint64_t address, uint32_t memory)
{
	struct fgv_memory_map_request request = {
		.address = address, .size = UNIT, .memory = memory};

	return vgpu_call(vgpu, 0, FGV_OP_MEMORY_MAP, &request, sizeof(request), NULL);
}

static uint32_t allow(struct vgpu *vgpu, uint64_t address, uint64_t size, uint32_t flags)
{
	struct fgv_memory_access_request request = {
		.address = address, .size = size, .flags = flags};

	return vgpu_call(vgpu, 0, FGV_OP_MEMORY_ACCESS, &request, sizeof(request), NULL);
}

static uint32_t unmap(struct vgpu *vgpu, uint64_t address, uint64_t size)
{
	struct fgv_memory_unmap_request request = {address, size};

	return vgpu_call(vgpu, 0, FGV_OP_MEMORY_UNMAP, &request, sizeof(request), NULL);
}

/* The first one reserves for both; each maps its own memory, and is charged for it. */
START_TEST(addresses_are_the_sessions)
{
	uint64_t address, none, before[2] = {used_bytes(&first), used_bytes(&second)};
	uint32_t memory = must_create(&second), other = must_create(&second);

	ck_assert_uint_eq(used_bytes(&first), before[0]);
	ck_assert_uint_eq(used_bytes(&second), before[1] + 2 * UNIT);
	ck_assert_uint_eq(reserve(&second, &none), CUDA_ERROR_INVALID_DEVICE);
	RIGHT(reserve(&first, &address));
	ck_assert_uint_eq(free_addresses(&second, address), CUDA_ERROR_INVALID_DEVICE);
	RIGHT(map(&second, address, memory));
	WRONG(map(&first, address, must_create(&first)));
	WRONG(free_addresses(&first, address));
	WRONG(unmap(&first, address, UNIT));
	RIGHT(map(&second, address + UNIT, other));
	RIGHT(unmap(&second, address, 2 * UNIT));
	WRONG(unmap(&second, address, UNIT));
	RIGHT(free_addresses(&first, address));
	vgpu_must_post(&second, 0, FGV_OP_MEMORY_RELEASE,
		       &(struct fgv_memory_release_request){.memory = memory}, 4);
	RIGHT(vgpu_device_sync(&second));
	ck_assert_uint_eq(used_bytes(&second), before[1] + UNIT);
}
END_TEST

/* Access is given to one of them by its own request, and what one may use stays until it gives that
 * up. */
START_TEST(access_to_the_others_memory)
{
	uint32_t memory = must_create(&second);
	uint64_t address;

	RIGHT(reserve(&first, &address));
	RIGHT(map(&second, address, memory));
	RIGHT(map(&first, address + UNIT, must_create(&first)));
	WRONG(allow(&first, address, UNIT, CU_MEM_ACCESS_FLAGS_PROT_NONE));
	WRONG(allow(&first, address, UNIT, 2));
	WRONG(allow(&first, address, 3 * UNIT, ALL));
	WRONG(allow(&first, address + 4096, UNIT, ALL));
	RIGHT(allow(&first, address, 2 * UNIT, ALL));
	RIGHT(allow(&first, address, UNIT, ALL));
	vgpu_fill(&first, address, 1, 7, 4);
	RIGHT(vgpu_device_sync(&first));
	RIGHT(allow(&second, address, UNIT, ALL));
	ck_assert_uint_eq(word_at(&second, address), 7);
	WRONG(unmap(&second, address, UNIT));
	WRONG(unmap(&first, address, 2 * UNIT));
	RIGHT(unmap(&first, address, UNIT));
	WRONG(unmap(&first, address, UNIT));
	ck_assert_uint_eq(word_at(&second, address), 7);
	RIGHT(unmap(&second, address, UNIT));
	WRONG(allow(&first, address, UNIT, ALL));
	/* Another session of work at the same place. */
	RIGHT(map(&second, address, memory));
	RIGHT(allow(&first, address, UNIT, ALL));
	ck_assert_uint_eq(word_at(&first, address), 7);
}
END_TEST

/* Without access, or with none any more, it is a fault, as of any address. */
START_TEST(no_access_to_the_others_memory)
{
	uint64_t address;

	RIGHT(reserve(&first, &address));
	RIGHT(map(&second, address, must_create(&second)));
	RIGHT(allow(&second, address, UNIT, ALL));
	RIGHT(allow(&first, address, UNIT, ALL));
	RIGHT(unmap(&first, address, UNIT));
	vgpu_fill(&first, address, 1, 1, 4);
	ck_assert_uint_ne(vgpu_device_sync(&first), CUDA_SUCCESS);
	ck_assert_uint_eq(word_at(&second, address), 0);
}
END_TEST

START_TEST(a_violation_on_one_ends_both)
{
	struct fgv_slot slot = vgpu_slot(&second, FGV_OP_MEM_FREE, 0);
	unsigned lines;

	slot.op = UINT16_MAX;
	vgpu_publish(&second, 0, &slot);
	vgpu_wake(&second);
	ck_assert_int_eq(vgpu_finish(&first, &lines), EXIT_FAILURE);
	ck_assert_uint_eq(lines, 1);
	vgpu_give_back(&second);
}
END_TEST

START_TEST(hanging_up_on_one_ends_both)
{
	unsigned lines;

	close(second.connection_fd);
	second.connection_fd = -1;
	ck_assert_int_eq(vgpu_finish(&first, &lines), EXIT_SUCCESS);
	ck_assert_uint_eq(lines, 0);
	vgpu_give_back(&second);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vgpu_parts");
	TCase *living = tcase_create("living"), *ending = tcase_create("ending");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(living, setup, teardown);
	tcase_add_test(living, both_compute);
	tcase_add_test(living, addresses_differ);
	tcase_add_test(living, quotas_are_kept_apart);
	tcase_add_test(living, handles_of_the_other_gpu);
	tcase_add_test(living, peers);
	tcase_add_test(living, a_grant_is_of_one_gpu);
	tcase_add_test(living, addresses_are_the_sessions);
	tcase_add_test(living, access_to_the_others_memory);
	tcase_add_test(living, host_memory_of_both);
	tcase_set_timeout(living, 120);
	suite_add_tcase(suite, living);
	tcase_add_checked_fixture(ending, setup, NULL);
	tcase_add_test(ending, memory_of_the_other_gpu);
	tcase_add_test(ending, no_access_to_the_others_memory);
	tcase_add_test(ending, a_violation_on_one_ends_both);
	tcase_add_test(ending, hanging_up_on_one_ends_both);
	tcase_set_timeout(ending, 120);
	suite_add_tcase(suite, ending);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
