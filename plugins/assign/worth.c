#include "assign.h"

enum { MAX_ROUNDS = 8 };

/* What is known of one part. */
typedef struct sum {
  uint64_t here, there; /* nanoseconds on its backend, and on those that its nodes could go to */
  uint32_t n_computing;
  uint32_t backend;
  uint8_t is_timed; /* both are told, for every node that computes */
  uint8_t can_move; /* every node has somewhere to go */
} sum_t;

/* The backend after `backend` that claims the node; 0: none. */
static uint32_t next_claim(const as_stage_t *s, uint32_t node, uint32_t backend) {
  for (uint32_t b = backend + 1; b <= s->n_backends; b++)
    if (s->is_claimed[as_row(s, b, node)]) return b;
  return 0;
}

static void add(const as_stage_t *s, sum_t *sum, uint32_t node, uint32_t backend) {
  const uint32_t next = next_claim(s, node, backend);
  sum->backend = backend;
  if (!next) {
    sum->can_move = 0;
    return;
  }
  if (s->is_view[as_row(s, backend, node)]) return;
  const uint64_t here = s->nanoseconds[as_row(s, backend, node)], there = s->nanoseconds[as_row(s, next, node)];
  sum->n_computing++;
  sum->is_timed &= here && there;
  sum->here += here;
  sum->there += there;
}

/* A part has a submission of its own, and what lies around it has two instead of one. Where no times are told, preference counts, and the
 * part has to compute something. Its memory is where the others' is, so moving costs nothing. */
static int is_worth(const as_stage_t *s, const sum_t *sum) {
  if (!sum->can_move) return 1;
  if (sum->n_computing < s->least_nodes) return 0;
  return !sum->is_timed || sum->there > sum->here + 2 * s->launch[sum->backend - 1];
}

aot_status_t as_divide_worthily(const as_stage_t *s, as_division_t *d, uint32_t *out_moved) {
  for (int round = 0;; round++) {
    if (as_divide(&d->order, d->colour, s->n_backends, d->part, &d->n_parts) != 0) return AOT_E_EXHAUSTED;
    if (round == MAX_ROUNDS) return AOT_OK;
    sum_t *sums = as_alloc(s, (uint64_t)d->n_parts + 1, sizeof *sums);
    if (!sums) return AOT_E_EXHAUSTED;
    uint32_t n_moved = 0;
    for (uint32_t p = 0; p < d->n_parts; p++) sums[p] = (sum_t){.is_timed = 1, .can_move = 1};
    for (uint32_t n = 0; n < d->order.n_nodes; n++) add(s, &sums[d->part[n]], d->nodes[n], d->colour[n] + 1);
    for (uint32_t n = 0; n < d->order.n_nodes; n++) {
      if (is_worth(s, &sums[d->part[n]])) continue;
      d->colour[n] = next_claim(s, d->nodes[n], d->colour[n] + 1) - 1;
      n_moved++;
    }
    if (!n_moved) return AOT_OK;
    *out_moved += n_moved;
  }
}
