/* Groups of pointwise nodes: found by common/fusion, described in loop IR, called as generated functions.
 *
 * A node is fusible when its operator is a row of the loop operators' table in this form, and dtypes are supported.
 * Nodes of one iteration space (the result's sizes) may share a loop. Values that only members read stay in
 * registers. */
#include "lower.h"

#include "common/fusion/group.h"
#include "common/kernels/rk_core.h"
#include "common/loops/loop.h"
#include <aot/graph.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { WORTH_A_THREAD = 16384 /* elements */ };

static aot_status_t no_memory(bc_build_t *b) {
  return bc_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for a group");
}

/* ---- one node ---- */

static uint32_t n_places(const bc_build_t *b) { return b->node->n_args < LP_ARGS ? b->node->n_args : LP_ARGS; }

/* The node's arguments as the operator table sees them. 0: an argument that loops cannot hold. */
static int read_operands(const bc_build_t *b, lp_operand_t *out, aot_str_t *word) {
  word->size = 0;
  word->data = "";
  for (uint32_t k = 0; k < n_places(b); k++) {
    const aot_snap_arg_t *a = bc_arg(b, k);
    memset(&out[k], 0, sizeof out[k]);
    if (a->kind == AOT_ARG_VALUE) {
      const bc_tensor_t *t = bc_arg_tensor(b, k);
      if (!t) return 0;
      out[k] = (lp_operand_t){LP_LOAD, t->dtype, t->rank};
    } else if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_FLOAT || a->kind == AOT_ARG_BOOL) {
      out[k].kind = a->kind == AOT_ARG_INT ? LP_INT : a->kind == AOT_ARG_FLOAT ? LP_FLOAT : LP_BOOL;
    } else if (a->kind == AOT_ARG_STR) {
      word->data = (const char *)b->s + b->s->chars.at + a->i;
      word->size = a->n;
    } else if (a->kind == AOT_ARG_VALUES) {
      return 0;
    }
  }
  return 1;
}

static const lp_op_t *loop_op(const bc_build_t *b) { return bc_op(b)->loop; }

static int is_number(const bc_tensor_t *t) { return t && t->rank == 0 && t->dtype == AOT_I64; }

/* A draw that a loop can make: seed and offset come from outside (its own space has dimensions, theirs has none). What
 * is wrong with others, an empty range for one, the reference kernel tells. */
static int draws_well(const bc_build_t *b) {
  int has_range = b->node->n_args > 5;
  return is_number(bc_arg_tensor(b, 0)) && is_number(bc_arg_tensor(b, 1)) && bc_type(b, 0)->rank > 0 &&
         (!has_range || bc_arg_int(b, 3, 0) < bc_arg_int(b, 4, 0));
}

/* The reference kernel knows what a bound of NaN means where it is a number. */
static int bounds_by_nan(const bc_build_t *b, const lp_operand_t *operands, const char *text) {
  for (uint32_t k = 0; (strstr(text, "@min") || strstr(text, "@max")) && k < n_places(b); k++)
    if (operands[k].kind == LP_FLOAT && isnan(bc_arg_float(b, k, 0))) return 1;
  return 0;
}

/* A number that a narrow integer dtype does not hold wraps in it (-1 is 255 beside u8), which the reference kernel
 * does; loops compute in 64 bits. */
static int numbers_fit(const bc_build_t *b, const lp_operand_t *operands) {
  int32_t dtypes[LP_ARGS + 1] = {bc_type(b, 0)->dtype}, n = 1;
  for (uint32_t k = 0; k < n_places(b); k++)
    if (operands[k].kind == LP_LOAD) dtypes[n++] = operands[k].dtype;
  for (uint32_t k = 0; k < n_places(b); k++)
    for (int32_t d = 0; operands[k].kind == LP_INT && d < n; d++)
      if (rk_is_int(dtypes[d]) && dtypes[d] != AOT_BOOL &&
          rk_wrap_to(bc_arg_int(b, k, 0), dtypes[d]) != bc_arg_int(b, k, 0))
        return 0;
  return 1;
}

static const char *choose(const bc_build_t *b, int32_t *out_compute) {
  const lp_op_t *op = loop_op(b);
  lp_operand_t operands[LP_ARGS];
  lp_draw_t draw;
  aot_str_t word;
  if (!op || b->node->n_results != 1 || !bc_type(b, 0)->dtype || !read_operands(b, operands, &word)) return NULL;
  if (lp_op_draws(op, bc_type(b, 0)->dtype, &draw) && !draws_well(b)) return NULL;
  if (!numbers_fit(b, operands)) return NULL;
  const char *text = lp_choose(op, operands, n_places(b), word, bc_type(b, 0)->dtype, out_compute);
  return text && bounds_by_nan(b, operands, text) ? NULL : text;
}

static int reads(const char *text, uint32_t k) {
  for (; *text; text++)
    if (text[0] == '$' && text[1] == (char)('0' + k)) return 1;
  return 0;
}

/* ---- finding groups ---- */

/* Numbers for iteration spaces: a table of the distinct sizes, by hash. */
typedef struct spaces {
  uint32_t *slots; /* node whose result has these sizes, BC_NONE: free */
  uint32_t mask;
} spaces_t;

static uint32_t space_of(const bc_build_t *b, spaces_t *s, uint32_t node) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const bc_tensor_t *t = bc_type(b, 0);
  uint64_t nbytes = (uint64_t)t->rank * sizeof t->sizes[0],
           h = XXH3_64bits(t->sizes, (size_t)nbytes) + (uint64_t)t->rank;
  for (uint32_t at = (uint32_t)h & s->mask;; at = (at + 1) & s->mask) {
    if (s->slots[at] == BC_NONE) return s->slots[at] = node;
    const bc_tensor_t *other = &bc_value(b, nodes[s->slots[at]].result_begin)->t;
    if (other->rank == t->rank && memcmp(other->sizes, t->sizes, (size_t)nbytes) == 0) return s->slots[at];
  }
}

typedef struct group_arrays {
  uint32_t *begin, *producers, *space, *def;
  spaces_t spaces;
} group_arrays_t;

static int allocate(bc_build_t *b, group_arrays_t *a, uint64_t n_operands) {
  uint64_t n = b->graph->n_nodes, slots = 16;
  while (slots < 2 * n) slots *= 2;
  a->begin = malloc((n + 1) * 4);
  a->producers = malloc((n_operands + 1) * 4);
  a->space = malloc((n + 1) * 4);
  a->def = malloc(((uint64_t)b->n_values + 1) * 4);
  a->spaces.slots = malloc(slots * 4);
  a->spaces.mask = (uint32_t)(slots - 1);
  if (!a->begin || !a->producers || !a->space || !a->def || !a->spaces.slots) return -1;
  memset(a->def, 0xFF, ((size_t)b->n_values + 1) * 4);
  memset(a->spaces.slots, 0xFF, (size_t)slots * 4);
  return 0;
}

static void fill(bc_build_t *b, group_arrays_t *a) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  uint32_t at = 0;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    int32_t compute;
    b->node = &nodes[i];
    a->begin[i] = at;
    for (uint32_t k = 0; k < nodes[i].n_operands; k++) {
      uint32_t row = operands[nodes[i].operand_begin + k];
      a->producers[at++] = row == AOT_NO_ID ? FU_NONE : a->def[row - b->value_begin];
    }
    for (uint32_t r = 0; r < nodes[i].n_results; r++) a->def[nodes[i].result_begin + r - b->value_begin] = i;
    a->space[i] = !bc_is_region_sum(b, i) && choose(b, &compute) ? space_of(b, &a->spaces, i) : FU_NONE;
  }
  a->begin[b->graph->n_nodes] = at;
}

aot_status_t bc_find_groups(bc_build_t *b, uint32_t *out_group) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  group_arrays_t a;
  uint64_t n_operands = 0;
  memset(&a, 0, sizeof a);
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) n_operands += nodes[i].n_operands;
  int failed = allocate(b, &a, n_operands);
  if (!failed) {
    fill(b, &a);
    fu_graph_t g = {b->graph->n_nodes, a.begin, a.producers, a.space, BC_MAX_GROUP};
    failed = fu_group(&g, out_group);
    for (uint32_t i = 0; i < b->graph->n_nodes && !failed; i++)
      if (a.space[i] == FU_NONE) out_group[i] = BC_NONE;
  }
  free(a.begin);
  free(a.producers);
  free(a.space);
  free(a.def);
  free(a.spaces.slots);
  return failed ? no_memory(b) : AOT_OK;
}

/* ---- one group ---- */

typedef struct group {
  const uint32_t *members;
  uint32_t n;
  lp_loop_t loop;
  lp_inst_t *insts;      /* one a member */
  lp_access_t *accesses; /* loads and stores: LP_ARGS + 1 a member at most */
  bc_tensor_t *tensors;  /* that they reach */
  uint32_t *rows;        /* value rows of the loads, BC_NONE for draws */
  lp_draw_t **draws;     /* of the loads, NULL for memory */
} group_t;

static const aot_snap_node_t *member(const bc_build_t *b, const group_t *g, uint32_t k) {
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + g->members[k];
}

/* The instruction that makes the value, BC_NONE: it comes from outside. Members are in order, so halving finds it. */
static uint32_t inst_of(const bc_build_t *b, const group_t *g, uint32_t row) {
  uint32_t low = 0, high = g->n;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (member(b, g, middle)->result_begin < row) low = middle + 1;
    else high = middle;
  }
  return low < g->n && member(b, g, low)->result_begin == row ? low : BC_NONE;
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

static int add_load(bc_build_t *b, group_t *g, uint32_t row, const bc_tensor_t *space, uint32_t *out) {
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
  return t->storage != BC_NONE && spread(t, space, g->accesses[*out].strides);
}

/* The numbers that the node at hand draws: an access that counts elements in row-major order. */
static int add_draw(bc_build_t *b, group_t *g, const bc_tensor_t *space, uint32_t *out) {
  lp_draw_t *draw = bc_pool_alloc(b->pool, sizeof *draw);
  uint32_t seed, offset;
  bc_tensor_t dense = *bc_type(b, 0);
  if (!draw || !add_load(b, g, (uint32_t)bc_arg(b, 0)->i, space, &seed) ||
      !add_load(b, g, (uint32_t)bc_arg(b, 1)->i, space, &offset))
    return 0;
  *out = g->loop.n_loads++;
  lp_access_t *access = &g->accesses[*out];
  access->dtype = lp_op_draws(loop_op(b), dense.dtype, draw);
  access->draws = 1;
  if (!access->dtype) return 0;
  access->seed = seed;
  access->offset = offset;
  draw->draw = (uint64_t)bc_arg_int(b, 2, 0);
  g->draws[*out] = draw;
  g->rows[*out] = BC_NONE;
  bc_make_contiguous(&dense);
  return spread(&dense, space, access->strides);
}

static int add_inst(bc_build_t *b, group_t *g, uint32_t k, const bc_tensor_t *space) {
  lp_inst_t *inst = &g->insts[k];
  b->node = member(b, g, k);
  inst->text = choose(b, &inst->compute);
  inst->dtype = bc_type(b, 0)->dtype;
  inst->n_args = n_places(b);
  for (uint32_t p = 0; inst->text && p < inst->n_args; p++) {
    const aot_snap_arg_t *a = bc_arg(b, p);
    lp_arg_t *out = &inst->args[p];
    out->kind = LP_ABSENT;
    if (!reads(inst->text, p)) continue;
    if (a->kind == AOT_ARG_VALUE) {
      out->index = inst_of(b, g, (uint32_t)a->i);
      out->kind = out->index == BC_NONE ? LP_LOAD : LP_INST;
      if (out->kind == LP_LOAD && !add_load(b, g, (uint32_t)a->i, space, &out->index)) return 0;
    } else if (a->kind == AOT_ARG_FLOAT) {
      out->kind = LP_FLOAT;
      out->f = bc_arg_float(b, p, 0);
    } else if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL) {
      out->kind = a->kind == AOT_ARG_INT ? LP_INT : LP_BOOL;
      out->i = bc_arg_int(b, p, 0);
    } else if (a->kind == AOT_ARG_INTS) {
      out->kind = LP_DRAWN;
      if (!add_draw(b, g, space, &out->index)) return 0;
    }
  }
  return inst->text != NULL;
}

/* Results that somebody outside the group reads.  */
static int is_read_outside(const bc_build_t *b, const group_t *g, uint32_t k) {
  uint32_t row = member(b, g, k)->result_begin, inside = 0;
  for (uint32_t m = k + 1; m < g->n; m++) {
    const aot_snap_node_t *node = member(b, g, m);
    const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + node->operand_begin;
    for (uint32_t o = 0; o < node->n_operands; o++) inside += operands[o] == row;
  }
  return b->n_uses[row - b->value_begin] > inside;
}

static int describe(bc_build_t *b, group_t *g) {
  const bc_tensor_t space = bc_value(b, member(b, g, g->n - 1)->result_begin)->t;
  g->loop.rank = space.rank;
  memcpy(g->loop.sizes, space.sizes, sizeof space.sizes);
  g->loop.accesses = g->accesses;
  g->loop.insts = g->insts;
  g->loop.n_insts = g->n;
  for (uint32_t k = 0; k < g->n; k++)
    if (!add_inst(b, g, k, &space)) return 0;
  for (uint32_t k = 0; k < g->n; k++) {
    uint32_t at = g->loop.n_loads + g->loop.n_stores;
    if (!is_read_outside(b, g, k)) continue;
    g->tensors[at] = bc_value(b, member(b, g, k)->result_begin)->t;
    g->accesses[at].dtype = g->tensors[at].dtype;
    g->accesses[at].inst = k;
    g->loop.n_stores++;
    g->loop.in_place |= b->goes_home && 0 != b->goes_home[member(b, g, k)->result_begin - b->value_begin];
  }
  return 1;
}

typedef struct loop_step {
  bc_loop_fn function;
  bc_ref_t *refs;
  char **pointers;
  int64_t *strides;
  uint32_t n;
  int64_t sizes[AOT_MAX_RANK];
  int64_t grain; /* indices of dimension 0 that are worth a thread */
} loop_step_t;

static void run_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const loop_step_t *p = payload;
  (void)part;
  p->function(p->pointers, p->sizes, p->strides, begin, end);
}

static aot_status_t run_loop(const bc_frame_t *f, void *payload) {
  loop_step_t *p = payload;
  for (uint32_t k = 0; k < p->n; k++)
    if (p->refs[k].storage != BC_NONE) p->pointers[k] = bc_at(f, p->refs[k]); /* a draw's pointer stays */
  bc_parallel(f->workers, p->sizes[0], p->grain, run_part, p);
  return AOT_OK;
}

/* The function for this loop: its name is the hash of its text. NULL: there is none, or none yet. */
static aot_status_t find_function(bc_build_t *b, const lp_loop_t *loop, bc_loop_fn *out) {
  lp_text_t body = {0}, text = {0};
  char name[32];
  lp_gen_c(loop, "F", &body);
  if (!body.failed) {
    snprintf(name, sizeof name, "lp_%016llx", (unsigned long long)XXH3_64bits(body.data, (size_t)body.size));
    *out = b->machine->find(b->machine->self, name);
    if (!*out) lp_gen_c(loop, name, &text);
  }
  aot_status_t status = body.failed || text.failed ? no_memory(b) : AOT_OK;
  if (status == AOT_OK && !*out && b->machine->missing(b->machine->self, name, text.data, text.size) != AOT_OK)
    status = no_memory(b);
  lp_text_deinit(&body);
  lp_text_deinit(&text);
  return status;
}

/* The input that an output is to lie on: the store and the load go over it element by element. */
static int is_in_place(const bc_build_t *b, const group_t *g, uint32_t load, uint32_t store) {
  const lp_access_t *l = &g->accesses[load], *s = &g->accesses[store];
  const uint32_t home = b->goes_home[member(b, g, s->inst)->result_begin - b->value_begin];
  if (!home || b->out->inputs[home - 1].type.storage != g->tensors[load].storage ||
      aot_dtype_size(l->dtype) != aot_dtype_size(s->dtype))
    return 0;
  for (int32_t d = 0; d < g->loop.rank; d++)
    if (g->loop.sizes[d] != 1 && l->strides[d] != s->strides[d]) return 0;
  return 1;
}

static bc_ref_t use_load(bc_build_t *b, const group_t *g, uint32_t load) {
  int in_place = 0;
  for (uint32_t s = g->loop.n_loads; b->goes_home && s < g->loop.n_loads + g->loop.n_stores; s++)
    in_place |= is_in_place(b, g, load, s);
  return in_place ? bc_use_in_place(b, &g->tensors[load]) : bc_use(b, &g->tensors[load]);
}

static aot_status_t add_loop(bc_build_t *b, const group_t *g, bc_loop_fn function) {
  uint32_t n = g->loop.n_loads + g->loop.n_stores, rank = (uint32_t)g->loop.rank;
  int64_t inner = 1;
  loop_step_t *p;
  BC_STEP(b, run_loop, p);
  p->function = function;
  p->n = n;
  p->refs = bc_pool_alloc(b->pool, n * sizeof *p->refs);
  p->pointers = bc_pool_alloc(b->pool, n * sizeof *p->pointers);
  p->strides = bc_pool_alloc(b->pool, n * rank * sizeof *p->strides);
  if (!p->refs || !p->pointers || !p->strides) return no_memory(b);
  memcpy(p->sizes, g->loop.sizes, sizeof p->sizes);
  for (uint32_t d = 1; d < rank; d++) inner *= p->sizes[d];
  p->grain = (WORTH_A_THREAD + inner - 1) / inner;
  for (uint32_t k = 0; k < n; k++) {
    p->refs[k] = g->draws[k] ? bc_use(b, NULL) : k < g->loop.n_loads ? use_load(b, g, k) : bc_use(b, &g->tensors[k]);
    p->pointers[k] = (char *)g->draws[k];
    memcpy(p->strides + k * rank, g->accesses[k].strides, rank * sizeof *p->strides);
  }
  b->out->n_groups++;
  return AOT_OK;
}

static aot_status_t store_results(bc_build_t *b, group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    b->node = member(b, g, g->accesses[s].inst);
    AOT_TRY(bc_result(b, 0, &g->tensors[s]));
  }
  return AOT_OK;
}

/* Geometry of the stores before memory is given: as bc_result will choose it. */
static void set_store_strides(group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    bc_result_geometry(&g->tensors[s]);
    memcpy(g->accesses[s].strides, g->tensors[s].strides, sizeof g->accesses[s].strides);
  }
}

static aot_status_t lower(bc_build_t *b, group_t *g) {
  bc_loop_fn function = NULL;
  if (!describe(b, g)) return BC_DECLINED;
  if (g->loop.n_stores == 0) return AOT_OK; /* nobody reads it */
  set_store_strides(g);
  if (bc_numel(&g->tensors[g->loop.n_loads]) == 0) return store_results(b, g);
  lp_simplify(&g->loop);
  AOT_TRY(find_function(b, &g->loop, &function));
  if (!function) return BC_DECLINED;
  AOT_TRY(store_results(b, g));
  return add_loop(b, g, function);
}

aot_status_t bc_lower_group(bc_build_t *b, const uint32_t *members, uint32_t n_members) {
  const size_t n = n_members, n_reached = n * (LP_ARGS + 1);
  group_t g = {.members = members, .n = n_members, .insts = calloc(n + 1, sizeof *g.insts)};
  g.accesses = calloc(n_reached + 1, sizeof *g.accesses);
  g.tensors = calloc(n_reached + 1, sizeof *g.tensors);
  g.rows = calloc(n_reached + 1, sizeof *g.rows);
  g.draws = calloc(n_reached + 1, sizeof *g.draws);
  aot_status_t status = g.insts && g.accesses && g.tensors && g.rows && g.draws ? lower(b, &g) : no_memory(b);
  free(g.draws);
  free(g.rows);
  free(g.tensors);
  free(g.accesses);
  free(g.insts);
  return status;
}
