#include "worth.h"

enum { MAX_ROUNDS = 8 };

/* What is known of one part. */
typedef struct sum {
  uint64_t here, there; /* nanoseconds on its backend, and on those that its nodes could go to .. */
  uint64_t at_most;     /* .. or guessed */
  uint32_t n_computing;
  uint32_t backend, next;       /* next: where its first node would go */
  uint8_t is_timed, is_guessed; /* both are reported, the last is, for every node that computes */
  uint8_t can_move;             /* every node has somewhere to go */
} sum_t;

/* The backend after `backend` that claims the node; 0: none. */
static uint32_t next_claim(const as_stage_t *s, uint32_t node, uint32_t backend) {
  for (uint32_t b = backend + 1; b <= s->n_backends; b++)
    if (s->is_claimed[as_row(s, b, node)]) return b;
  return 0;
}

static void add(const as_stage_t *s, sum_t *sum, uint32_t node, uint32_t backend) {
  const uint32_t next = next_claim(s, node, backend);
  if (!sum->backend) sum->next = next;
  sum->backend = backend;
  if (!next) {
    sum->can_move = 0;
    return;
  }
  if (s->is_view[as_row(s, backend, node)]) return;
  const uint64_t here = s->nanoseconds[as_row(s, backend, node)], there = s->nanoseconds[as_row(s, next, node)];
  sum->n_computing++;
  sum->is_timed &= here && there;
  sum->is_guessed &= s->at_most[as_row(s, next, node)] != 0;
  sum->at_most += s->at_most[as_row(s, next, node)];
  sum->here += here;
  sum->there += there;
}

/* A part has a submission of its own, and what lies around it has two instead of one; what it reads and makes is moved
 * where devices differ. Where no times are reported it has to compute something, and preference counts, unless moving
 * takes longer than it could take elsewhere. */
static int is_worth(const as_stage_t *s, const sum_t *sum, const as_move_time_t *moves) {
  if (!sum->can_move) return 1;
  if (sum->n_computing < s->least_nodes) return 0;
  if (sum->is_timed) return sum->there + moves->there > sum->here + moves->here + 2 * s->launch[sum->backend - 1];
  return moves->here <= moves->there || !sum->is_guessed || sum->at_most + moves->there > moves->here;
}

static aot_status_t count_moves(const as_stage_t *s, const as_division_t *d, const sum_t *sums, as_move_time_t *out) {
  uint32_t *device = as_alloc(s, d->n_parts, sizeof *device), *other = as_alloc(s, d->n_parts, sizeof *other);
  if (!device || !other) return AOT_E_EXHAUSTED;
  if (s->n_devices < 2 || !d->wires) return AOT_OK;
  for (uint32_t p = 0; p < d->n_parts; p++) {
    device[p] = s->device_of[sums[p].backend - 1];
    other[p] = sums[p].next ? s->device_of[sums[p].next - 1] : device[p];
  }
  return as_count_moves(s, d->wires, d->n_parts, d->part, device, other, out);
}

aot_status_t as_divide_worthily(const as_stage_t *s, as_division_t *d, uint32_t *out_moved) {
  for (int round = 0;; round++) {
    if (as_divide(&d->order, d->colour, s->n_backends, d->part, &d->n_parts) != 0) return AOT_E_EXHAUSTED;
    if (round == MAX_ROUNDS) return AOT_OK;
    sum_t *sums = as_alloc(s, (uint64_t)d->n_parts + 1, sizeof *sums);
    as_move_time_t *moves = as_alloc(s, (uint64_t)d->n_parts + 1, sizeof *moves);
    if (!sums || !moves) return AOT_E_EXHAUSTED;
    uint32_t n_moved = 0;
    for (uint32_t p = 0; p < d->n_parts; p++) sums[p] = (sum_t){.is_timed = 1, .is_guessed = 1, .can_move = 1};
    for (uint32_t n = 0; n < d->order.n_nodes; n++) add(s, &sums[d->part[n]], d->nodes[n], d->colour[n] + 1);
    AOT_TRY(count_moves(s, d, sums, moves));
    for (uint32_t n = 0; n < d->order.n_nodes; n++) {
      if (is_worth(s, &sums[d->part[n]], &moves[d->part[n]])) continue;
      d->colour[n] = next_claim(s, d->nodes[n], d->colour[n] + 1) - 1;
      n_moved++;
    }
    if (!n_moved) return AOT_OK;
    *out_moved += n_moved;
  }
}
