#include "saved_states.h"

#include "draws.h"

enum { SAVE, WITH, GRAPHSAFE };

typedef struct rg_saved_state {
  /* of the forward, of the backward: a generator continues from use to use on either side alike */
  rg_stream_t stream[2];
  uint8_t is_open[2];
} rg_saved_state_t;

#define STATE_NBYTES 16 /* seed and offset */

void rg_states_init(rg_states_t *s, const aot_host_t *host, aot_prog_t *prog) {
  static const char *const names[RG_N_STATE_OPS] = {"higher_order.run_and_save_rng_state",
                                                    "higher_order.run_with_rng_state",
                                                    "higher_order.graphsafe_run_with_rng_state"};
  *s = (rg_states_t){.n_values = host->graph->n_values(prog)};
  for (int i = 0; i < RG_N_STATE_OPS; i++) s->ops[i] = host->graph->op_find(prog, aot_str(names[i]));
}

static int which(const rg_states_t *s, const em_t *e) {
  for (int i = 0; i < RG_N_STATE_OPS; i++)
    if (s->ops[i].id != AOT_NO_ID && s->ops[i].id == e->info.op.id) return i;
  return -1;
}

int rg_is_state_node(const rg_states_t *s, const em_t *e) { return which(s, e) >= 0; }

static aot_status_t make_tables(rg_states_t *s, em_t *e) {
  if (s->by_value) return AOT_OK;
  s->by_value =
      e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)s->n_values + 1) * sizeof *s->by_value);
  s->saved = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 4,
                            ((uint64_t)e->host->graph->n_nodes(e->prog) + 1) * sizeof *s->saved);
  return s->by_value && s->saved ? AOT_OK : AOT_E_EXHAUSTED;
}

/* ---- states as bytes ---- */

static em_x_t eight_bytes(em_t *e, em_x_t both, int64_t which_one) {
  return EM(e, "select.int", both, em_i(0), em_i(which_one));
}

static int is_state(const aot_type_t *t) {
  return t->kind == AOT_TYPE_TENSOR && t->rank == 1 && (t->dtype == AOT_U8 || t->dtype == AOT_I8) &&
         !AOT_DIM_IS_SYM(t->sizes[0]) && t->sizes[0] >= STATE_NBYTES;
}

static void refuse_type(em_t *e) {
  em_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: a random state must be a vector of at least %d bytes",
          (int)e->desc->name.size, e->desc->name.data, STATE_NBYTES);
}

static void unpack(em_t *e, em_x_t state, rg_stream_t *out) {
  const aot_type_t t = em_type(e, state);
  const aot_value_t none = aot_no_value();
  *out = (rg_stream_t){.seed = none, .offset = none, .there_seed = none, .there_offset = none};
  if (e->status == AOT_OK && !is_state(&t)) refuse_type(e);
  const em_x_t bytes = EM(e, "slice.Tensor", state, em_i(0), em_i(0), em_i(STATE_NBYTES));
  const em_x_t both = EM(e, "view.dtype", bytes, em_dtype(AOT_I64));
  const em_x_t seed = eight_bytes(e, both, 0), offset = eight_bytes(e, both, 1);
  if (e->status != AOT_OK) return;
  out->seed = em_value(e, seed);
  out->offset = em_value(e, offset);
}

static em_x_t pack(em_t *e, const rg_stream_t *s, const aot_type_t *t) {
  const em_x_t offset = s->next ? EM(e, "add.Scalar", em_v(s->offset), em_i(s->next)) : em_v(s->offset);
  if (e->status == AOT_OK && !is_state(t)) refuse_type(e);
  if (e->status != AOT_OK) return em_none();
  const uint32_t ids[2] = {s->seed.id, em_value(e, offset).id};
  const int64_t pad[2] = {0, t->sizes[0] - STATE_NBYTES};
  const em_x_t bytes = EM(e, "view.dtype", EM(e, "stack", aot_arg_values(ids, 2)), em_dtype(t->dtype));
  return pad[1] ? EM(e, "constant_pad_nd", bytes, aot_arg_ints(pad, 2)) : bytes;
}

/* ---- the operator itself ---- */

/* The operator with its own arguments; its results take the place of the last results of e->node. */
static aot_status_t put_inner(em_t *e, uint32_t first_arg, uint32_t first_result, aot_node_t *out) {
  const uint32_t n = e->info.n_results - first_result;
  const aot_value_t results = {e->info.first_result.id + first_result};
  const aot_op_t op = {(uint32_t)e->info.args[first_arg - 1].u.i};
  aot_type_t *types = em_scratch(e, n, sizeof *types);
  aot_node_info_t made;
  if (!types) return AOT_E_EXHAUSTED;
  em_types(e, results, n, types);
  *out = em_put(e, op, e->info.n_args - first_arg, e->info.args + first_arg, n, types, &made);
  if (e->status == AOT_OK) em_take_over(e, results, made.first_result, n);
  return e->status;
}

/* The state becomes what the stream is now; the operator draws from the stream. */
static aot_status_t enter_save(rg_states_t *s, em_t *e, rg_state_use_t *out) {
  rg_saved_state_t *state = &s->by_value[e->info.first_result.id];
  AOT_TRY(rg_stream_open(e));
  state->stream[0] = state->stream[1] = *rg_of(e)->stream;
  state->is_open[0] = 1;
  s->saved[s->n_saved++] = e->node.id;
  out->stream = rg_of(e)->stream;
  out->stop = e->node;
  return put_inner(e, 1, 1, &out->inner);
}

/* A state from a node of this graph is known; another one is read out of its bytes. */
static aot_status_t enter_with(rg_states_t *s, em_t *e, int is_generator, rg_state_use_t *out) {
  const em_x_t given = e->info.args[0];
  const uint32_t v = (uint32_t)given.u.i;
  const int side = is_generator && (e->info.flags & AOT_NODE_BACKWARD);
  if (given.kind != AOT_ARG_VALUE || v >= s->n_values) {
    out->stream = rg_of(e)->stream;
  } else {
    rg_saved_state_t *state = &s->by_value[v];
    if (!state->is_open[side]) unpack(e, given, &state->stream[side]);
    if (e->status != AOT_OK) return e->status;
    if (is_generator) {
      state->is_open[side] = 1;
      out->stream = &state->stream[side];
    } else { /* each use begins again, and the nodes that read the bytes precedes this one */
      rg_stream_t *copy = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, sizeof *copy);
      if (!copy) return AOT_E_EXHAUSTED;
      *copy = state->stream[side];
      state->is_open[side] = 1;
      out->stream = copy;
    }
  }
  out->stop = e->host->graph->next(e->prog, e->node);
  AOT_TRY(put_inner(e, 2, 0, &out->inner));
  return e->host->edit->node_erase(e->prog, e->node);
}

aot_status_t rg_states_enter(rg_states_t *s, em_t *e, rg_state_use_t *out) {
  const int kind = which(s, e);
  const uint32_t at = kind == SAVE ? 0 : 1;
  AOT_TRY(make_tables(s, e));
  if (e->info.n_args <= at || e->info.args[at].kind != AOT_ARG_OP || (kind == SAVE && e->info.n_results == 0))
    em_fail(e, AOT_E_INVALID, "", "%.*s: an operator and its arguments are expected", (int)e->desc->name.size,
            e->desc->name.data);
  if (e->status != AOT_OK) return e->status;
  for (int i = 0; i < RG_N_STATE_OPS; i++)
    if ((uint32_t)e->info.args[at].u.i == s->ops[i].id)
      em_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s around another saved random state is not supported",
              (int)e->desc->name.size, e->desc->name.data);
  if (e->status != AOT_OK) return e->status;
  return kind == SAVE ? enter_save(s, e, out) : enter_with(s, e, kind == GRAPHSAFE, out);
}

aot_status_t rg_states_finish(rg_states_t *s, em_t *e) {
  for (uint32_t i = 0; i < s->n_saved; i++) {
    AOT_TRY(em_rewrite(e, (aot_node_t){s->saved[i]}));
    const aot_value_t state = e->info.first_result;
    if (e->host->graph->n_uses(e->prog, state)) {
      const aot_type_t t = em_type(e, em_v(state));
      const aot_value_t bytes = em_value(e, pack(e, &s->by_value[state.id].stream[0], &t));
      if (e->status != AOT_OK) return e->status;
      AOT_TRY(e->host->edit->uses_replace(e->prog, state, bytes));
    }
    AOT_TRY(e->host->edit->node_erase(e->prog, e->node));
  }
  s->n_saved = 0;
  return AOT_OK;
}
