#include "flash_attention.h"

#include "attention_steps.h"
#include "flash_kernels.h"
#include "kit/lowering/fuse_rng.h"
#include "nvrtc_kernel.h"
#include <math.h>
#include <string.h>

enum { LEAST_ARCH = 80 };

static gc_lowering_t *lowering(const lw_build_t *b) { return b->machine->self; }

static const lw_attention_places_t *places_of(const lw_build_t *b) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + b->node->op;
  return lw_attention_places(aot_snap_text(b->s, op->name));
}

/* ---- what is taken ---- */

/* By sizes alone: operands that lie otherwise are copied. */
static int fits(const lw_attention_t *a, const lw_tensor_t *keep, uint32_t shared_of_block) {
  lw_tensor_t t[GC_ATT_N_IN_MEMORY] = {{0}};
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
    const int of_keys = what == GC_ATT_K || what == GC_ATT_V || what == GC_ATT_GK || what == GC_ATT_GV;
    t[what] = what == GC_ATT_KEEP ? *keep : of_keys ? *a->k : *a->q;
    lw_make_contiguous(&t[what]);
  }
  gc_own_attention_t o = {.call = gc_describe_attention(a, t, GC_ATT_N_IN_MEMORY)};
  int is_taken = gc_own_takes(&o.call);
  gc_own_choose(&o);
  for (o.kind = 0; o.kind < GC_OWN_N_KINDS && is_taken; o.kind++) {
    uint32_t blocks, threads, shared;
    gc_own_launch(&o, &blocks, &threads, &shared);
    is_taken = shared <= shared_of_block;
  }
  return is_taken;
}

static int reads_as_gradient(lw_build_t *b, const lw_attention_t *a) {
  const lw_tensor_t *go = lw_arg_tensor(b, 0);
  const lw_tensor_t *const operands[] = {a->q, a->k, a->v};
  if (!go || b->node->n_results != 3 || !lw_is_attention_output(go, a)) return 0;
  for (uint32_t r = 0; r < 3; r++)
    if (lw_type(b, r)->dtype != go->dtype || !lw_same_sizes(lw_type(b, r), operands[r])) return 0;
  return 1;
}

uint32_t gc_own_attention_draws(lw_build_t *b) {
  const gc_lowering_t *l = lowering(b);
  const lw_attention_places_t *at = l->machine.arch < LEAST_ARCH || !l->choices->draws_attention ? NULL : places_of(b);
  lw_attention_t a;
  lw_draw_t draw;
  if (!at || at->keep == LW_NONE || !lw_attention_call(b, at, &a) || a.q->rank != 4 || a.mask) return LW_NONE;
  const int is_called =
      at->is_backward ? reads_as_gradient(b, &a) : b->node->n_results == 1 && lw_is_attention_output(lw_type(b, 0), &a);
  const uint32_t keep = lw_arg_row(b, at->keep);
  return is_called && fits(&a, a.keep, l->machine.block_shared) && lw_read_draw(b, keep, &draw) && draw.below > 0 &&
                 draw.below <= 1
             ? keep
             : LW_NONE;
}

int gc_is_own_attention(const lw_build_t *b) {
  const lw_attention_places_t *at = places_of(b);
  return at && at->keep != LW_NONE && lw_is_drawn_by_readers(b, lw_arg_row(b, at->keep));
}

/* ---- steps ---- */

static gc_own_attention_t describe(const lw_attention_t *a, const lw_draw_t *draw, const lw_tensor_t *t) {
  gc_own_attention_t o = {.call = gc_describe_attention(a, t, GC_ATT_N_IN_MEMORY),
                          .n_kept = (uint32_t)ceil((double)draw->below * (1 << 24))};
  gc_own_choose(&o);
  return o;
}

static aot_status_t add_kernel(lw_build_t *b, gc_own_attention_t *o, int32_t kind, const lw_tensor_t *const *tensors,
                               int n, const int64_t *number) {
  static const int n_products[] = {[GC_OWN_OUTPUT] = 2, [GC_OWN_QUERIES] = 3, [GC_OWN_KEYS] = 4};
  static const uint32_t writes[] = {[GC_OWN_OUTPUT] = 7u << 3, [GC_OWN_QUERIES] = 3u << 7, [GC_OWN_KEYS] = 3u << 6};
  const gc_attention_t *a = &o->call;
  gc_own_kernel_t own = {.kind = "own attention", .print = gc_print_own_attention, .self = o, .number = number};
  o->kind = kind;
  own.writes = writes[kind];
  gc_own_launch(o, &own.blocks, &own.threads, &own.shared);
  AOT_TRY(gc_add_own_kernel(b, &own, tensors, n));
  const double pairs = (double)(a->n_batch * a->n_head * a->n_query) * (double)a->n_key * (a->is_causal ? 0.5 : 1);
  lw_count_flops(b, 2.0 * n_products[kind] * pairs * (double)a->width, a->dtype);
  return AOT_OK;
}

static aot_status_t add_forward(lw_build_t *b, gc_own_attention_t *o, const lw_draw_t *draw, const lw_tensor_t *t,
                                const lw_tensor_t *bits) {
  const lw_tensor_t *const tensors[] = {&t[GC_ATT_Q],
                                        &t[GC_ATT_K],
                                        &t[GC_ATT_V],
                                        &t[GC_ATT_O],
                                        &t[GC_ATT_STATS],
                                        bits,
                                        &lw_value(b, draw->seed)->t,
                                        &lw_value(b, draw->offset)->t};
  return add_kernel(b, o, GC_OWN_OUTPUT, tensors, 8, &draw->number);
}

static aot_status_t make_bytes(lw_build_t *b, uint64_t nbytes, lw_tensor_t *out) {
  *out = (lw_tensor_t){.dtype = AOT_I32, .rank = 1, .sizes = {(int64_t)(nbytes / 4)}, .strides = {1}};
  return lw_new_tensor(b, out);
}

/* Types of what a call reads. */
static void operand_types(const lw_build_t *b, const lw_attention_t *a, lw_tensor_t *t) {
  t[GC_ATT_Q] = gc_plain_type(b, a->q);
  t[GC_ATT_K] = gc_plain_type(b, a->k);
  t[GC_ATT_V] = gc_plain_type(b, a->v);
  t[GC_ATT_KEEP] = *a->keep;
  lw_make_contiguous(&t[GC_ATT_KEEP]);
  t[GC_ATT_STATS] = gc_rows_type(a);
}
static aot_status_t make_operands(lw_build_t *b, const lw_attention_t *a, lw_tensor_t *t) {
  AOT_TRY(gc_make_plain(b, a->q, &t[GC_ATT_Q]));
  AOT_TRY(gc_make_plain(b, a->k, &t[GC_ATT_K]));
  return gc_make_plain(b, a->v, &t[GC_ATT_V]);
}

static aot_status_t forward(lw_build_t *b, const lw_attention_places_t *at, const lw_attention_t *a,
                            const lw_draw_t *draw) {
  lw_tensor_t t[GC_ATT_N_IN_MEMORY] = {{0}}, bits;
  operand_types(b, a, t);
  t[GC_ATT_O] = gc_plain_result_type(b, 0);
  gc_own_attention_t o = describe(a, draw, t);
  AOT_TRY(make_operands(b, a, t));
  AOT_TRY(gc_make_plain_result(b, 0, &t[GC_ATT_O]));
  AOT_TRY(lw_new_tensor(b, &t[GC_ATT_STATS]));
  AOT_TRY(make_bytes(b, gc_own_bits_nbytes(&o.call), &bits));
  AOT_TRY(add_forward(b, &o, draw, t, &bits));
  return gc_keep_attention(b, at, a, &t[GC_ATT_O], &t[GC_ATT_STATS], &bits);
}

static aot_status_t backward(lw_build_t *b, const lw_attention_places_t *at, const lw_attention_t *a,
                             const lw_draw_t *draw) {
  const lw_tensor_t *go = lw_arg_tensor(b, 0);
  const gc_kept_attention_t *kept = gc_find_kept_attention(b, at, a);
  lw_tensor_t t[GC_ATT_N_IN_MEMORY] = {{0}}, bits, rows;
  if (kept && !kept->bits.dtype) kept = NULL;
  operand_types(b, a, t);
  t[GC_ATT_O] = gc_plain_type(b, kept ? &kept->o : go);
  if (!kept) lw_make_contiguous(&t[GC_ATT_O]);
  t[GC_ATT_GO] = gc_plain_type(b, go);
  for (uint32_t r = 0; r < 3; r++) t[GC_ATT_GQ + r] = gc_plain_result_type(b, r);
  gc_own_attention_t o = describe(a, draw, t);

  AOT_TRY(make_operands(b, a, t));
  AOT_TRY(gc_make_plain(b, go, &t[GC_ATT_GO]));
  if (kept) {
    AOT_TRY(gc_make_plain(b, &kept->o, &t[GC_ATT_O]));
    t[GC_ATT_STATS] = kept->stats;
    bits = kept->bits;
  } else {
    AOT_TRY(lw_new_tensor(b, &t[GC_ATT_O]));
    AOT_TRY(lw_new_tensor(b, &t[GC_ATT_STATS]));
    AOT_TRY(make_bytes(b, gc_own_bits_nbytes(&o.call), &bits));
    AOT_TRY(add_forward(b, &o, draw, t, &bits));
  }
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(gc_make_plain_result(b, r, &t[GC_ATT_GQ + r]));
  AOT_TRY(make_bytes(b, gc_own_rows_nbytes(&o.call), &rows));
  const lw_tensor_t *const of_queries[] = {&t[GC_ATT_Q],  &t[GC_ATT_K], &t[GC_ATT_V],  &t[GC_ATT_O], &t[GC_ATT_STATS],
                                           &t[GC_ATT_GO], &bits,        &t[GC_ATT_GQ], &rows};
  const lw_tensor_t *const of_keys[] = {&t[GC_ATT_Q], &t[GC_ATT_K], &t[GC_ATT_V],  &t[GC_ATT_GO],
                                        &rows,        &bits,        &t[GC_ATT_GK], &t[GC_ATT_GV]};
  AOT_TRY(add_kernel(b, &o, GC_OWN_QUERIES, of_queries, 9, NULL));
  return add_kernel(b, &o, GC_OWN_KEYS, of_keys, 8, NULL);
}

aot_status_t gc_lower_own_attention(lw_build_t *b, const lw_attention_places_t *at) {
  lw_attention_t a;
  lw_draw_t draw;
  if (!lw_attention_call(b, at, &a) || !lw_read_draw(b, lw_arg_row(b, at->keep), &draw))
    return lw_fail(b->error, AOT_E_INTERNAL, "internal", "attention that was to draw is another call now");
  return at->is_backward ? backward(b, at, &a, &draw) : forward(b, at, &a, &draw);
}
