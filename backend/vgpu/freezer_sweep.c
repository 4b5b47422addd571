/*
 * All pieces go out, or come in, in the order of their addresses; see freezer.h. What has got to
 * the host leaves the GPU at once, so that others' memory can come in meanwhile. Its place in the
 * store is what is not empty before it, whatever of that is where.
 *
 * Copies take the engine of their direction, where engines are granted by themselves: so one
 * session's memory can go out while another's comes in, and others compute.
 */
#include "backend/vgpu/freezer_priv.h"

#include "common/util.h"

static bool goes_out(const struct fgv_freezer *freezer)
{
	return freezer->way == FGV_HAUL_OUT;
}

CUresult fgv_freezer_begin_sweep(struct fgv_session *session, enum fgv_haul_way way)
{
	struct fgv_freezer *freezer = &session->freezer;
	struct fgv_haul *haul;
	CUresult status = fgv_haul_init(&haul, session->gpu, way);

	if (status != CUDA_SUCCESS)
		return status;
	fgv_haul_fini(freezer->haul);
	freezer->haul = haul;
	freezer->way = way;
	freezer->at = freezer->kept = freezer->left = fgv_pieces_first(&session->pieces);
	freezer->at_bytes = freezer->at_store = freezer->kept_parts = 0;
	freezer->is_leaving = false;
	return CUDA_SUCCESS;
}

/* --- What is moved next ---------------------------------------------------------- */

/* What the host has need not be copied again, but it is to leave. */
static bool is_to_move(const struct fgv_freezer *freezer, const struct fgv_memory_piece *piece)
{
	if (goes_out(freezer))
		return piece->state == FGV_PIECE_IN && !piece->is_kept;
	return piece->state == FGV_PIECE_OUT;
}

/* The piece that is moved now; NULL: all were. */
static const struct fgv_memory_piece *piece_at(struct fgv_freezer *freezer, uint64_t *address,
					       uint64_t *bytes)
{
	for (; freezer->at.block; fgv_pieces_next(&freezer->at)) {
		const struct fgv_memory_piece *piece = fgv_pieces_at(&freezer->at, address, bytes);

		if (freezer->at_bytes ? freezer->at_bytes < *bytes : is_to_move(freezer, piece))
			return piece;
		freezer->at_bytes = 0;
		if (piece->state != FGV_PIECE_EMPTY)
			freezer->at_store += *bytes;
	}
	return NULL;
}

/* As fgv_haul_next, of both ways. */
static CUresult next_part(void *arg, struct fgv_haul_part *part)
{
	struct fgv_session *session = arg;
	struct fgv_account *account = session->account;
	struct fgv_freezer *freezer = &session->freezer;
	uint64_t address, bytes;
	const struct fgv_memory_piece *piece = piece_at(freezer, &address, &bytes);
	CUresult status;

	if (!piece)
		return CUDA_ERROR_NOT_FOUND;
	if (piece->state == FGV_PIECE_OUT) {
		status = fgv_pieces_bind(&session->pieces, &freezer->at);
		if (status != CUDA_SUCCESS)
			return status;
	}
	*part = (struct fgv_haul_part){
		.address = address + freezer->at_bytes,
		.bytes = freezer->store.bytes + freezer->at_store + freezer->at_bytes,
		.len = fgv_min_u64(bytes - freezer->at_bytes, FGV_HAUL_SLOT_BYTES),
	};
	freezer->at_bytes += part->len;
	fgv_account_add(goes_out(freezer) ? &account->moved_out : &account->moved_in, part->len);
	return CUDA_SUCCESS;
}

/* --- What has got out ------------------------------------------------------------ */

/* Goes on to the first piece that the host does not have yet. */
static void note_kept(struct fgv_freezer *freezer)
{
	uint64_t arrived = fgv_haul_arrived(freezer->haul);

	for (; freezer->kept.block; fgv_pieces_next(&freezer->kept)) {
		uint64_t address, bytes, parts;
		struct fgv_memory_piece *piece = fgv_pieces_at(&freezer->kept, &address, &bytes);

		if (!is_to_move(freezer, piece))
			continue;
		parts = (bytes + FGV_HAUL_SLOT_BYTES - 1) / FGV_HAUL_SLOT_BYTES;
		if (freezer->kept_parts + parts > arrived)
			return;
		freezer->kept_parts += parts;
		piece->is_kept = true;
	}
}

int fgv_freezer_release(struct fgv_session *session)
{
	struct fgv_freezer *freezer = &session->freezer;
	struct fgv_pieces *pieces = &session->pieces;

	note_kept(freezer);
	if (freezer->is_leaving || !fgv_pieces_is_at(&freezer->left, &freezer->kept))
		fgv_gate_begin_calls(&session->gate);
	if (!freezer->is_leaving && !fgv_pieces_is_at(&freezer->left, &freezer->kept)) {
		fgv_pieces_retire(pieces, freezer->left, &freezer->kept);
		freezer->leaving = freezer->kept;
		freezer->is_leaving = true;
	}
	if (!freezer->is_leaving || !fgv_freezer_has_passed(session))
		return 0;
	fgv_pieces_unbind(pieces, freezer->left, &freezer->leaving);
	freezer->left = freezer->leaving;
	freezer->is_leaving = false;
	return 1;
}

/* --- Moving ---------------------------------------------------------------------- */

static struct fgv_gate *gate_of(struct fgv_session *session)
{
	if (!session->engines.are_granted)
		return &session->gate;
	return fgv_engines_gate(session,
				goes_out(&session->freezer) ? FGV_ENGINE_OUT : FGV_ENGINE_IN);
}

/* Whether the session has the engine; if not, it asks for it. */
static bool may_move(struct fgv_session *session, struct fgv_gate *gate)
{
	bool may =
		fgv_grant_state(gate->word) == FGV_GRANT_BUSY && gate->room_ns && !gate->is_filling;

	gate->blocked = true;
	if (may)
		fgv_gate_begin_calls(&session->gate);
	return may;
}

CUresult fgv_freezer_sweep(struct fgv_session *session, unsigned *moved)
{
	struct fgv_gate *gate = gate_of(session);
	CUresult status;

	*moved = 0;
	if (!may_move(session, gate))
		return CUDA_SUCCESS;
	status = fgv_haul_turn(session->freezer.haul, next_part, session, moved);
	/* It does not hang. */
	if (*moved)
		fgv_account_add(&gate->grant->progress, *moved);
	return status;
}
