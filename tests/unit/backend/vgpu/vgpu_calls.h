/*
 * What a guest that keeps the rules asks of its vGPU process, by the first lane: each a request
 * of this name, whose status is returned where it is a call. What is named must succeeds, or the
 * test fails.
 */
#ifndef FGV_TESTS_VGPU_CALLS_H
#define FGV_TESTS_VGPU_CALLS_H

#include "tests/unit/backend/vgpu/vgpu_guest.h"

/* An address that neither process has anything at; ThreadSanitizer allows few. */
#ifdef __SANITIZE_THREAD__
#define VGPU_SHARED_ADDRESS 0x006000000000ull
#else
#define VGPU_SHARED_ADDRESS 0x400000000000ull
#endif

/* add(u64 data, u32 count, u8 more) adds @more and the variable bias, 5, to each of @count u32. */
extern const char vgpu_add_ptx[];
/* forever() never returns. */
extern const char vgpu_forever_ptx[];

void vgpu_must_post(struct vgpu *vgpu, uint32_t lane, uint16_t op, const void *message,
		    uint32_t len);
uint32_t vgpu_device_sync(struct vgpu *vgpu);

uint32_t vgpu_alloc(struct vgpu *vgpu, uint64_t size, uint64_t *address);
uint64_t vgpu_must_alloc(struct vgpu *vgpu, uint64_t size);
void vgpu_mem_free(struct vgpu *vgpu, uint64_t address);
void vgpu_fill(struct vgpu *vgpu, uint64_t address, uint64_t count, uint32_t value, uint32_t width);

/* To and from @arena_off from the arena's beginning; what goes in is at most FGV_DATA_MAX. */
void vgpu_copy_in(struct vgpu *vgpu, uint64_t address, const void *data, uint32_t len);
uint32_t vgpu_copy_out(struct vgpu *vgpu, uint64_t address, uint64_t len, uint64_t arena_off);

/* The memory at @off from the arena's beginning, for the GPU at @address. */
uint32_t vgpu_host_map(struct vgpu *vgpu, uint64_t address, uint64_t off, uint64_t len);
uint32_t vgpu_host_unmap(struct vgpu *vgpu, uint64_t address);

/* Modules travel by the arena's beginning. vgpu_put_image(): there; its length. */
uint64_t vgpu_put_image(struct vgpu *vgpu, const char *text);
uint32_t vgpu_load(struct vgpu *vgpu, uint64_t len, uint32_t *module);
uint32_t vgpu_load_ptx(struct vgpu *vgpu, const char *text, uint32_t *module);
uint32_t vgpu_get_function(struct vgpu *vgpu, uint32_t module, const char *name,
			   uint32_t *function);
/* A function of a new module. */
uint32_t vgpu_must_get(struct vgpu *vgpu, const char *text, const char *name);

/* Blocks of 128 threads; @count arguments of 8 bytes, 8 at the most. */
void vgpu_launch(struct vgpu *vgpu, uint32_t function, uint32_t blocks, const uint64_t *args,
		 uint32_t count);

uint32_t vgpu_must_create_stream(struct vgpu *vgpu, uint32_t flags);
uint32_t vgpu_must_create_event(struct vgpu *vgpu);
void vgpu_record(struct vgpu *vgpu, uint32_t event, uint32_t stream);

uint32_t vgpu_create_array(struct vgpu *vgpu, const struct fgv_array_create_request *request,
			   uint32_t *array);
/* Of floats. */
uint32_t vgpu_must_create_array(struct vgpu *vgpu, const uint64_t size[3], uint32_t flags,
				uint32_t levels);
uint32_t vgpu_get_level(struct vgpu *vgpu, uint32_t array, uint32_t level, uint32_t *part);
void vgpu_destroy_array(struct vgpu *vgpu, uint32_t array);
/* A texture of @array, or with 0 of 4 KiB of floats at an address still to be set. */
struct fgv_texture_create_request vgpu_right_texture(uint32_t array);
uint32_t vgpu_create_texture(struct vgpu *vgpu, const struct fgv_texture_create_request *request,
			     struct fgv_texture_create_reply *reply);
uint32_t vgpu_create_surface(struct vgpu *vgpu, uint32_t array,
			     struct fgv_surface_create_reply *reply);
void vgpu_destroy_texture(struct vgpu *vgpu, uint32_t texture);

#endif
