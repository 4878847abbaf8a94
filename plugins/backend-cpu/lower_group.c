/* A group of nodes, described in loop IR and called as a generated function.
 *
 * Values that only members read stay in registers, or in a row's buffer. */
#include "group_member.h"
#include "group_read.h"

#include <aot/graph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { WORTH_A_THREAD = 16384 /* elements */ };

static aot_status_t no_memory(bc_build_t *b) {
  return bc_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for a group");
}

typedef struct group {
  const uint32_t *members;
  uint32_t n;
  bc_member_t *infos;  /* by member */
  uint32_t *first;     /* by member: its first instruction */
  uint32_t *member_of; /* by instruction */
  const bc_tensor_t *space;
  lp_loop_t loop;
  lp_inst_t *insts;
  lp_access_t *accesses; /* loads and stores: LP_ARGS and its results a member at most */
  bc_tensor_t *tensors;  /* that they reach */
  uint32_t *rows;        /* value rows of the loads, BC_NONE for draws and reads; of the stores */
  lp_draw_t **draws;     /* of the loads, NULL for memory */
  uint32_t *nodes;       /* of the loads: id of the node that has index tensors for it */
} group_t;
enum { MAX_RESULTS = 3 };

static const aot_snap_node_t *member(const bc_build_t *b, const group_t *g, uint32_t k) {
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + g->members[k];
}

/* The instruction that gives result r of a member. */
static uint32_t result_inst(const group_t *g, uint32_t k, uint32_t r) {
  return g->first[k] + (g->infos[k].rows ? g->infos[k].rows->results[r] : 0);
}

/* The instruction that makes the value, BC_NONE: it comes from outside. Members are in order, so halving finds it. */
static uint32_t inst_of(const bc_build_t *b, const group_t *g, uint32_t row) {
  uint32_t low = 0, high = g->n;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (member(b, g, middle)->result_begin + member(b, g, middle)->n_results <= row) low = middle + 1;
    else high = middle;
  }
  if (low == g->n || member(b, g, low)->result_begin > row) return BC_NONE;
  return result_inst(g, low, row - member(b, g, low)->result_begin);
}

/* Strides of t in the space of the loop; 0: it does not broadcast. */
static int spread(const bc_tensor_t *t, const bc_tensor_t *space, int64_t *strides) {
  int32_t lead = space->rank - t->rank;
  if (lead < 0) return 0;
  for (int32_t d = 0; d < space->rank; d++) {
    int64_t size = d < lead ? 1 : t->sizes[d - lead];
    if (size != 1 && size != space->sizes[d]) return 0;
    strides[d] = size == 1 ? 0 : t->strides[d - lead];
  }
  return 1;
}

/* The same of a result, which may be without the dimensions that were reduced. */
static void spread_result(const bc_tensor_t *t, const group_t *g, int64_t *strides) {
  int32_t at = 0;
  for (int32_t d = 0; d < g->space->rank; d++) {
    const int is_dropped = t->rank != g->space->rank && (g->loop.reduced >> d & 1u);
    strides[d] = is_dropped || t->sizes[at] == 1 ? 0 : t->strides[at];
    at += !is_dropped;
  }
}

static int add_load(bc_build_t *b, group_t *g, uint32_t row, uint32_t *out) {
  const bc_tensor_t *t = &bc_value(b, row)->t;
  for (uint32_t k = 0; k < g->loop.n_loads; k++)
    if (g->rows[k] == row) {
      *out = k;
      return 1;
    }
  *out = g->loop.n_loads++;
  g->rows[*out] = row;
  g->tensors[*out] = *t;
  g->accesses[*out].dtype = t->dtype;
  return t->storage != BC_NONE && spread(t, g->space, g->accesses[*out].strides);
}

/* The numbers that the node at hand draws: an access that counts elements in row-major order. */
static int add_draw(bc_build_t *b, group_t *g, uint32_t *out) {
  lp_draw_t *draw = bc_pool_alloc(b->pool, sizeof *draw);
  uint32_t seed, offset;
  bc_tensor_t dense = *bc_type(b, 0);
  const int32_t dtype = draw && bc_op(b)->loop ? lp_op_draws(bc_op(b)->loop, dense.dtype, draw) : 0;
  if (!dtype || !add_load(b, g, (uint32_t)bc_arg(b, 0)->i, &seed) ||
      !add_load(b, g, (uint32_t)bc_arg(b, 1)->i, &offset))
    return 0;
  *out = g->loop.n_loads++;
  lp_access_t *access = &g->accesses[*out];
  access->dtype = dtype;
  access->draws = 1;
  access->seed = seed;
  access->offset = offset;
  draw->draw = (uint64_t)bc_arg_int(b, 2, 0);
  g->draws[*out] = draw;
  g->rows[*out] = BC_NONE;
  bc_make_contiguous(&dense);
  return spread(&dense, g->space, access->strides);
}

/* Strides in the result's space become those in the loop's, which may have more where the result has one. 0: bounds of
 * such a dimension, which count what the loop does not. */
static int spread_read(const bc_tensor_t *result, const group_t *g, uint32_t bounded, int64_t *strides) {
  const bc_tensor_t *space = g->space;
  const int32_t lead = space->rank - result->rank;
  int64_t own[AOT_MAX_RANK];
  if (lead < 0) return 0;
  memcpy(own, strides, sizeof own);
  for (int32_t d = 0; d < space->rank; d++) {
    const int is_one = d < lead || result->sizes[d - lead] != space->sizes[d];
    strides[d] = is_one ? 0 : own[d - lead];
    if (d >= lead && is_one && (result->sizes[d - lead] != 1 || bounded >> (d - lead) & 1u)) return 0;
  }
  return lead == 0 || !bounded;
}

/* What the node at hand reads by places: an access of its own. */
static int add_read(bc_build_t *b, group_t *g, uint32_t *out) {
  const bc_tensor_t *result = bc_type(b, 0);
  bc_read_t read;
  if (!bc_read(b, &read)) return 0;
  for (uint32_t i = 0; i < read.access.n_indices; i++) {
    const bc_tensor_t *index = &bc_value(b, read.indices[i])->t;
    const uint32_t k = read.access.indices[i].load = g->loop.n_loads++;
    if (index->storage == BC_NONE || !spread_read(result, g, 0, read.index_strides[i])) return 0;
    g->rows[k] = BC_NONE;
    g->tensors[k] = *index;
    g->accesses[k].dtype = index->dtype;
    memcpy(g->accesses[k].strides, read.index_strides[i], sizeof read.index_strides[i]);
  }
  if (read.outside != BC_NONE) {
    read.access.outside.kind = LP_LOAD;
    if (!add_load(b, g, read.outside, &read.access.outside.index)) return 0;
  }
  *out = g->loop.n_loads++;
  g->rows[*out] = BC_NONE;
  g->nodes[*out] = b->node->id;
  g->tensors[*out] = bc_value(b, read.value)->t;
  g->tensors[*out].offset += read.moved;
  g->accesses[*out] = read.access;
  return g->tensors[*out].storage != BC_NONE && spread_read(result, g, read.access.bounded, g->accesses[*out].strides);
}

/* The node's arguments, as far as the instruction reads them. */
static int add_args(bc_build_t *b, group_t *g, lp_inst_t *inst) {
  for (uint32_t p = 0; p < bc_n_places(b); p++) {
    const aot_snap_arg_t *a = bc_arg(b, p);
    lp_arg_t *out = &inst->args[p];
    out->kind = LP_ABSENT;
    if (!lp_reads(inst->text, LP_TK_ARG, p)) continue;
    if (a->kind == AOT_ARG_VALUE) {
      out->index = inst_of(b, g, (uint32_t)a->i);
      out->kind = out->index == BC_NONE ? LP_LOAD : LP_INST;
      if (out->kind == LP_LOAD && !add_load(b, g, (uint32_t)a->i, &out->index)) return 0;
    } else if (a->kind == AOT_ARG_FLOAT) {
      out->kind = LP_FLOAT;
      out->f = bc_arg_float(b, p, 0);
    } else if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL) {
      out->kind = a->kind == AOT_ARG_INT ? LP_INT : LP_BOOL;
      out->i = bc_arg_int(b, p, 0);
    } else if (a->kind == AOT_ARG_INTS) {
      out->kind = LP_DRAWN;
      if (!add_draw(b, g, &out->index)) return 0;
    }
  }
  return 1;
}

static int add_step(bc_build_t *b, group_t *g, const lp_row_op_t *op, uint32_t first, uint32_t k) {
  const int32_t work = lp_value_dtype(bc_arg_tensor(b, 0)->dtype), result = bc_type(b, 0)->dtype;
  lp_inst_t *inst = &g->insts[first + k];
  inst->text = op->steps[k].text;
  inst->reduce = op->steps[k].reduce;
  inst->compute = lp_step_dtype(op->steps[k].compute, work, result);
  inst->dtype = lp_step_dtype(op->steps[k].dtype, work, result);
  inst->n_args = LP_ARGS + LP_STEPS;
  if (!add_args(b, g, inst)) return 0;
  if (op->preset_at && bc_arg(b, op->preset_at)->kind == AOT_ARG_NONE && lp_reads(inst->text, LP_TK_ARG, op->preset_at))
    inst->args[op->preset_at] = (lp_arg_t){.kind = LP_FLOAT, .f = op->preset};
  for (uint32_t e = 0; e < k; e++)
    if (lp_reads(inst->text, LP_TK_STEP, e)) inst->args[LP_ARGS + e] = (lp_arg_t){.kind = LP_INST, .index = first + e};
  return 1;
}

static int add_member(bc_build_t *b, group_t *g, uint32_t k) {
  const bc_member_t *m = &g->infos[k];
  const uint32_t first = g->first[k] = g->loop.n_insts, n = m->rows ? m->rows->n_steps : 1;
  if (first + n > LP_INSTS) return 0;
  b->node = member(b, g, k);
  for (uint32_t s = 0; s < n; s++) g->member_of[first + s] = k;
  g->loop.n_insts += n;
  if (!m->rows) {
    g->insts[first].text = m->text;
    g->insts[first].compute = m->compute;
    g->insts[first].dtype = bc_type(b, 0)->dtype;
    if (m->reads) {
      g->insts[first].n_args = 1;
      g->insts[first].args[0].kind = LP_LOAD;
      return add_read(b, g, &g->insts[first].args[0].index);
    }
    g->insts[first].n_args = bc_n_places(b);
    return add_args(b, g, &g->insts[first]);
  }
  for (uint32_t s = 0; s < n; s++)
    if (!add_step(b, g, m->rows, first, s)) return 0;
  return 1;
}

/* Results that somebody outside the group reads.  */
static int is_read_outside(const bc_build_t *b, const group_t *g, uint32_t k, uint32_t row) {
  uint32_t inside = 0;
  for (uint32_t m = k + 1; m < g->n; m++) {
    const aot_snap_node_t *node = member(b, g, m);
    const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + node->operand_begin;
    for (uint32_t o = 0; o < node->n_operands; o++) inside += operands[o] == row;
  }
  return b->n_uses[row - b->value_begin] > inside;
}

static void add_stores(bc_build_t *b, group_t *g, uint32_t k) {
  const aot_snap_node_t *node = member(b, g, k);
  for (uint32_t r = 0; r < node->n_results; r++) {
    const uint32_t row = node->result_begin + r, at = g->loop.n_loads + g->loop.n_stores;
    const bc_tensor_t *t = &bc_value(b, row)->t;
    if (!t->dtype || !is_read_outside(b, g, k, row)) continue;
    g->rows[at] = row;
    g->tensors[at] = *t;
    g->accesses[at].dtype = t->dtype;
    g->accesses[at].inst = result_inst(g, k, r);
    g->accesses[at].of_row = !bc_same_sizes(t, g->space);
    g->loop.n_stores++;
    g->loop.in_place |= b->goes_home && 0 != b->goes_home[row - b->value_begin];
  }
}

static int describe(bc_build_t *b, group_t *g) {
  g->space = &bc_value(b, member(b, g, g->n - 1)->result_begin)->t;
  for (uint32_t k = 0; k < g->n; k++) {
    b->node = member(b, g, k);
    if (!bc_member(b, &g->infos[k])) return 0;
    if (g->loop.reduced) continue;
    g->loop.reduced = g->infos[k].reduced;
    g->space = bc_member_space(b, &g->infos[k]);
  }
  g->loop.rank = g->space->rank;
  memcpy(g->loop.sizes, g->space->sizes, sizeof g->space->sizes);
  g->loop.accesses = g->accesses;
  g->loop.insts = g->insts;
  for (uint32_t k = 0; k < g->n; k++)
    if (!add_member(b, g, k)) return 0;
  for (uint32_t k = 0; k < g->n; k++) add_stores(b, g, k);
  return 1;
}

/* An index tensor that a loop looks its places up in. */
typedef struct lookup {
  bc_ref_t at;
  bc_tensor_t index;
  int64_t size;
  int32_t wraps;
  uint32_t node; /* id */
} lookup_t;

typedef struct loop_step {
  const bc_loop_fn *function; /* where it is when the schedule runs */
  bc_ref_t *refs;
  char **
      pointers; /* of the accesses, the row buffers, and what tells of a wrong index; by part, if there is more than accesses */
  int64_t *numbers;
  uint32_t n, n_kept;
  int32_t n_parts;     /* that have pointers of their own */
  bc_ref_t kept;       /* row buffers, by part */
  int64_t kept_nbytes; /* of one */
  lookup_t *lookups;
  uint32_t n_lookups;
  int64_t *wrong; /* by part; NULL: no lookups */
  int64_t sizes[AOT_MAX_RANK];
  int64_t grain; /* indices of dimension 0 that are worth a thread */
} loop_step_t;

static char **pointers_of(const loop_step_t *p, int32_t part) {
  return p->n_parts > 1 ? p->pointers + (uint32_t)part * (p->n + p->n_kept + (p->wrong != NULL)) : p->pointers;
}

static void run_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const loop_step_t *p = payload;
  (*p->function)(pointers_of(p, part), p->sizes, p->numbers, begin, end);
}

/* Where the first index is that is out of range. */
static aot_status_t tell_wrong_index(const bc_frame_t *f, const lookup_t *l) {
  const char *at = bc_at(f, l->at);
  const int64_t n = bc_numel(&l->index);
  for (int64_t e = 0; e < n; e++) {
    int64_t place = 0, rest = e, index;
    for (int32_t d = l->index.rank - 1; d >= 0; rest /= l->index.sizes[d], d--)
      place += rest % l->index.sizes[d] * l->index.strides[d];
    if (l->index.dtype == AOT_I64) index = ((const int64_t *)(const void *)at)[place];
    else index = ((const int32_t *)(const void *)at)[place];
    if (index < l->size && index >= (l->wraps ? -l->size : 0)) continue;
    f->error->node = l->node;
    return bc_fail(f->error, AOT_E_RANGE, "bad-index",
                   "index %lld at position %lld is out of range for a dimension of size %lld", (long long)index,
                   (long long)e, (long long)l->size);
  }
  return AOT_OK;
}

static aot_status_t check_indices(const bc_frame_t *f, const loop_step_t *p) {
  int64_t wrong = 0;
  for (int32_t part = 0; part < p->n_parts; part++) wrong |= p->wrong[part];
  for (uint32_t k = 0; wrong && k < p->n_lookups; k++) AOT_TRY(tell_wrong_index(f, &p->lookups[k]));
  return AOT_OK;
}

static aot_status_t run_loop(const bc_frame_t *f, void *payload) {
  loop_step_t *p = payload;
  char *kept = p->n_kept ? bc_at(f, p->kept) : NULL;
  for (int32_t part = 0; part < p->n_parts; part++) {
    char **pointers = pointers_of(p, part);
    for (uint32_t k = 0; k < p->n; k++) /* a draw's pointer stays */
      if (p->refs[k].storage != BC_NONE) pointers[k] = bc_at(f, p->refs[k]);
    for (uint32_t k = 0; k < p->n_kept; k++, kept += p->kept_nbytes) pointers[p->n + k] = kept;
    if (p->wrong) p->wrong[part] = 0;
  }
  bc_parallel(f->workers, p->sizes[0], p->grain, run_part, p);
  return p->wrong ? check_indices(f, p) : AOT_OK;
}

/* The function for this loop: its name is the hash of its text. NULL: there is none. */
static aot_status_t find_function(bc_build_t *b, const lp_loop_t *loop, const bc_loop_fn **out) {
  lp_text_t body = {0}, text = {0};
  char name[32];
  lp_gen_c(loop, "F", &body);
  if (!body.failed) {
    snprintf(name, sizeof name, "lp_%016llx", (unsigned long long)XXH3_64bits(body.data, (size_t)body.size));
    *out = b->machine->find(b->machine->self, name);
    if (!*out) lp_gen_c(loop, name, &text);
  }
  aot_status_t status = body.failed || text.failed ? no_memory(b) : AOT_OK;
  if (status == AOT_OK && !*out && b->machine->add(b->machine->self, name, text.data, text.size, out) != AOT_OK)
    status = no_memory(b);
  lp_text_deinit(&body);
  lp_text_deinit(&text);
  return status;
}

/* The input that an output is to lie on: the store and the load go over it element by element. */
static int is_in_place(const bc_build_t *b, const group_t *g, uint32_t load, uint32_t store) {
  const lp_access_t *l = &g->accesses[load], *s = &g->accesses[store];
  const uint32_t home = b->goes_home[g->rows[store] - b->value_begin];
  if (!home || g->rows[load] == BC_NONE || b->out->inputs[home - 1].type.storage != g->tensors[load].storage ||
      aot_dtype_size(l->dtype) != aot_dtype_size(s->dtype))
    return 0;
  for (int32_t d = 0; d < g->loop.rank; d++)
    if (g->loop.sizes[d] != 1 && l->strides[d] != s->strides[d]) return 0;
  return 1;
}

static bc_ref_t use_load(bc_build_t *b, const group_t *g, uint32_t load) {
  int in_place = 0;
  for (uint32_t s = g->loop.n_loads; b->goes_home && !g->loop.reduced && s < g->loop.n_loads + g->loop.n_stores; s++)
    in_place |= is_in_place(b, g, load, s);
  return in_place ? bc_use_in_place(b, &g->tensors[load]) : bc_use(b, &g->tensors[load]);
}

static void add_lookups(bc_build_t *b, const group_t *g, loop_step_t *p) {
  for (uint32_t k = 0; k < g->loop.n_loads; k++)
    for (uint32_t i = 0; i < g->accesses[k].n_indices; i++) {
      const lp_index_t *x = &g->accesses[k].indices[i];
      p->lookups[p->n_lookups++] =
          (lookup_t){bc_use(b, &g->tensors[x->load]), g->tensors[x->load], x->size, x->wraps, g->nodes[k]};
    }
}

static aot_status_t add_loop(bc_build_t *b, const group_t *g, const bc_loop_fn *function) {
  const int has_indices = lp_has_indices(&g->loop);
  uint32_t n = g->loop.n_loads + g->loop.n_stores, rank = (uint32_t)g->loop.rank;
  const uint32_t n_more = g->loop.n_kept + (uint32_t)has_indices;
  const uint32_t n_parts = n_more ? (uint32_t)b->machine->n_threads : 1;
  int64_t inner = 1;
  bc_tensor_t kept = {.storage = BC_NONE};
  uint64_t nbytes = 0;
  loop_step_t *p;
  for (uint32_t k = 1; k <= g->loop.n_kept; k++) {
    const uint64_t size = lp_keep_size(&g->loop, k);
    if (size > nbytes) nbytes = size;
  }
  nbytes = (nbytes * (uint64_t)g->loop.sizes[rank - 1] + BC_ALIGN - 1) / BC_ALIGN * BC_ALIGN;
  if (g->loop.n_kept) AOT_TRY(bc_scratch(b, nbytes * g->loop.n_kept * n_parts, &kept));
  BC_STEP(b, run_loop, p);
  p->function = function;
  p->n = n;
  p->n_kept = g->loop.n_kept;
  p->n_parts = (int32_t)n_parts;
  p->kept = bc_use(b, &kept);
  p->kept_nbytes = (int64_t)nbytes;
  p->refs = bc_pool_alloc(b->pool, n * sizeof *p->refs);
  p->pointers = bc_pool_alloc(b->pool, n_parts * (n + n_more) * sizeof *p->pointers);
  p->numbers = bc_pool_alloc(b->pool, lp_n_numbers(&g->loop) * sizeof *p->numbers);
  p->lookups = bc_pool_alloc(b->pool, (g->loop.n_loads + 1) * sizeof *p->lookups);
  int64_t *wrong = bc_pool_alloc(b->pool, n_parts * sizeof *wrong);
  if (!p->refs || !p->pointers || !p->numbers || !p->lookups || !wrong) return no_memory(b);
  if (has_indices) p->wrong = wrong;
  add_lookups(b, g, p);
  lp_numbers(&g->loop, p->numbers);
  memcpy(p->sizes, g->loop.sizes, sizeof p->sizes);
  for (uint32_t d = 1; d < rank; d++) inner *= p->sizes[d];
  p->grain = (WORTH_A_THREAD + inner - 1) / inner;
  for (uint32_t k = 0; k < n; k++) {
    p->refs[k] = g->draws[k] ? bc_use(b, NULL) : k < g->loop.n_loads ? use_load(b, g, k) : bc_use(b, &g->tensors[k]);
    for (uint32_t part = 0; part < n_parts; part++) pointers_of(p, (int32_t)part)[k] = (char *)g->draws[k];
  }
  for (uint32_t part = 0; has_indices && part < n_parts; part++)
    pointers_of(p, (int32_t)part)[n + g->loop.n_kept] = (char *)&wrong[part];
  b->out->n_groups++;
  return AOT_OK;
}

static aot_status_t store_results(bc_build_t *b, group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    b->node = member(b, g, g->member_of[g->accesses[s].inst]);
    AOT_TRY(bc_result(b, g->rows[s] - b->node->result_begin, &g->tensors[s]));
  }
  return AOT_OK;
}

/* Geometry of the stores before memory is given: as bc_result will choose it. */
static void set_store_strides(group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    bc_result_geometry(&g->tensors[s]);
    spread_result(&g->tensors[s], g, g->accesses[s].strides);
  }
}

static aot_status_t lower(bc_build_t *b, group_t *g) {
  const bc_loop_fn *function = NULL;
  const aot_status_t unfit = g->n > 1 ? BC_APART : BC_DECLINED;
  if (!describe(b, g)) return unfit;
  if (g->loop.n_stores == 0) return AOT_OK; /* nobody reads it */
  set_store_strides(g);
  if (bc_numel(g->space) == 0) return store_results(b, g);
  if (!lp_simplify(&g->loop)) return unfit;
  lp_schedule(&g->loop);
  AOT_TRY(find_function(b, &g->loop, &function));
  if (!function) return BC_DECLINED;
  AOT_TRY(store_results(b, g));
  return add_loop(b, g, function);
}

aot_status_t bc_lower_group(bc_build_t *b, const uint32_t *members, uint32_t n_members) {
  const size_t n = n_members, n_insts = n * LP_STEPS, n_reached = n * (LP_ARGS + MAX_RESULTS);
  group_t g = {.members = members, .n = n_members, .insts = calloc(n_insts + 1, sizeof *g.insts)};
  g.infos = calloc(n + 1, sizeof *g.infos);
  g.first = calloc(n + 1, sizeof *g.first);
  g.member_of = calloc(n_insts + 1, sizeof *g.member_of);
  g.accesses = calloc(n_reached + 1, sizeof *g.accesses);
  g.tensors = calloc(n_reached + 1, sizeof *g.tensors);
  g.rows = calloc(n_reached + 1, sizeof *g.rows);
  g.draws = calloc(n_reached + 1, sizeof *g.draws);
  g.nodes = calloc(n_reached + 1, sizeof *g.nodes);
  const int is_there =
      g.nodes && g.insts && g.infos && g.first && g.member_of && g.accesses && g.tensors && g.rows && g.draws;
  aot_status_t status = is_there ? lower(b, &g) : no_memory(b);
  free(g.nodes);
  free(g.draws);
  free(g.rows);
  free(g.tensors);
  free(g.accesses);
  free(g.member_of);
  free(g.first);
  free(g.infos);
  free(g.insts);
  return status;
}
