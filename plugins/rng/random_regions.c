#include "random_regions.h"

#include "draws.h"

#include <string.h>

/* ---- order ---- */

/* Where the walk over one graph is. */
typedef struct frame {
  uint32_t graph, arg;
  aot_node_t node;
} frame_t;

/* The next region that is named from the frame's place on and not met yet; AOT_NO_ID: none. */
static uint32_t next_named(const aot_graph_api_t *g, aot_prog_t *prog, frame_t *f, const uint8_t *met) {
  for (; f->node.id != AOT_NO_ID; f->node = g->next(prog, f->node), f->arg = 0) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (g->node_info(prog, f->node, &info) != AOT_OK) return AOT_NO_ID;
    for (; f->arg < info.n_args; f->arg++)
      if (info.args[f->arg].kind == AOT_ARG_GRAPH && !met[info.args[f->arg].u.i])
        return (uint32_t)info.args[f->arg].u.i;
  }
  return AOT_NO_ID;
}

/* Depth first from one graph, with a stack of its own. */
static void walk(const aot_graph_api_t *g, aot_prog_t *prog, uint32_t root, frame_t *stack, uint8_t *met,
                 uint32_t *order, uint32_t *n) {
  uint32_t depth = 0, enter = root;
  do {
    if (enter != AOT_NO_ID) {
      met[enter] = 1;
      stack[depth++] = (frame_t){enter, 0, g->first(prog, (aot_graph_t){enter})};
    } else {
      order[(*n)++] = stack[--depth].graph;
      if (depth == 0) return;
    }
    enter = next_named(g, prog, &stack[depth - 1], met);
  } while (1);
}

uint32_t *rg_call_order(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *out_n) {
  const uint32_t n = host->graph->n_graphs(prog);
  uint32_t *order = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)n + 1) * 4);
  frame_t *stack = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)n + 1) * sizeof *stack);
  uint8_t *met = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)n + 1);
  *out_n = 0;
  if (!order || !stack || !met) return NULL;
  for (uint32_t i = 0; i < n; i++) {
    int32_t kind;
    aot_str_t name;
    if (!met[i] && host->graph->graph_info(prog, (aot_graph_t){i}, &kind, &name) == AOT_OK)
      walk(host->graph, prog, i, stack, met, order, out_n);
  }
  return order;
}

/* ---- calls ---- */

int rg_calls_random(const em_t *e, const rg_graph_t *graphs) {
  for (uint32_t a = 0; a < e->info.n_args; a++)
    if (e->info.args[a].kind == AOT_ARG_GRAPH && graphs[e->info.args[a].u.i].draws) return 1;
  return 0;
}

/* The region's offset from its start on is `shift` further. */
static aot_status_t shift_region(em_t *e, rg_graph_t *region, aot_graph_t graph, int64_t shift) {
  const aot_edit_api_t *edit = e->host->edit;
  const aot_value_t offset = region->stream.offset;
  em_t inner = em_make(e->host, e->ctx, e->prog, graph);
  inner.before = e->host->graph->first(e->prog, graph);
  const aot_value_t later = em_value(&inner, EM(&inner, "add.Scalar", em_v(offset), em_i(shift)));
  AOT_TRY(inner.status);
  AOT_TRY(edit->uses_replace(e->prog, offset, later));
  AOT_TRY(edit->operand_set(e->prog, e->host->graph->value_def(e->prog, later), 0, offset));
  region->shift = shift;
  return AOT_OK;
}

/* How many numbers the call may draw. A region that only this call names begins after the regions named before it. */
static aot_status_t resolve_regions(em_t *e, rg_graph_t *graphs, int64_t *out_span) {
  *out_span = 0;
  for (uint32_t a = 0; a < e->info.n_args; a++) {
    if (e->info.args[a].kind != AOT_ARG_GRAPH) continue;
    const aot_graph_t graph = {(uint32_t)e->info.args[a].u.i};
    rg_graph_t *region = &graphs[graph.id];
    if (!region->draws) continue;
    if (!region->is_called && *out_span > 0 && region->stream.next > 0)
      AOT_TRY(shift_region(e, region, graph, *out_span));
    region->is_called = 1;
    if (region->shift + region->stream.next > *out_span) *out_span = region->shift + region->stream.next;
  }
  return AOT_OK;
}

/* Regions of one call take the same operands: those that have no seed and offset of their own get inputs for them. */
static aot_status_t give_inputs(em_t *e, rg_graph_t *graphs) {
  for (uint32_t a = 0; a < e->info.n_args; a++) {
    if (e->info.args[a].kind != AOT_ARG_GRAPH) continue;
    rg_graph_t *region = &graphs[e->info.args[a].u.i];
    rg_draw_state_t draws = {.stream = &region->stream};
    em_t inner = *e;
    inner.graph.id = (uint32_t)e->info.args[a].u.i;
    inner.self = &draws;
    region->draws = 1;
    AOT_TRY(rg_stream_open(&inner));
  }
  return AOT_OK;
}

/* The arguments with two more operands: at the end, or in the list that the last argument is. */
static aot_arg_t *longer_args(em_t *e, const aot_value_t *more, uint32_t *out_n) {
  const uint32_t n = e->info.n_args, n_list = n ? e->info.args[n - 1].n : 0;
  const int is_list = n && e->info.args[n - 1].kind == AOT_ARG_VALUES;
  aot_arg_t *args = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)n + 2) * sizeof *args);
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)n_list + 2) * sizeof *ids);
  if (!args || !ids) return NULL;
  memcpy(args, e->info.args, n * sizeof *args);
  *out_n = is_list ? n : n + 2;
  if (is_list) {
    if (n_list) memcpy(ids, e->info.args[n - 1].u.ids, n_list * sizeof *ids);
    ids[n_list] = more[0].id;
    ids[n_list + 1] = more[1].id;
    args[n - 1] = aot_arg_values(ids, n_list + 2);
  } else {
    args[n] = aot_arg_value(more[0]);
    args[n + 1] = aot_arg_value(more[1]);
  }
  return args;
}

/* The operator that takes the regions: with_effects stands around it. */
static const aot_op_desc_t *called(const em_t *e) {
  for (uint32_t a = 0; a < e->info.n_args; a++)
    if (e->info.args[a].kind == AOT_ARG_OP)
      return e->host->graph->op_desc(e->prog, (aot_op_t){(uint32_t)e->info.args[a].u.i});
  return e->desc;
}

static aot_status_t replace_call(em_t *e, const aot_value_t *more) {
  const uint32_t n = e->info.n_results;
  uint32_t n_args;
  aot_node_info_t made;
  aot_type_t *types = em_scratch(e, n, sizeof *types);
  aot_arg_t *args = longer_args(e, more, &n_args);
  if (!types || !args) return AOT_E_EXHAUSTED;
  em_types(e, e->info.first_result, n, types);
  em_put(e, e->info.op, n_args, args, n, types, &made);
  if (e->status == AOT_OK) em_take_over(e, e->info.first_result, made.first_result, n);
  return e->status == AOT_OK ? e->host->edit->node_erase(e->prog, e->node) : e->status;
}

aot_status_t rg_extend_call(em_t *e, rg_graph_t *graphs) {
  const aot_op_desc_t *d = called(e);
  const uint32_t flags = d->n_args ? d->args[d->n_args - 1].flags : 0;
  int64_t span = 0;
  if (d->flags & AOT_OP_LOOP) /* every step would draw the same numbers */
    em_fail(e, AOT_E_UNIMPLEMENTED, "draw the numbers of all steps before the loop, and loop over them",
            "the body of a %.*s draws random numbers, which is not supported", (int)d->name.size, d->name.data);
  else if (!(flags & (AOT_SARG_VARIADIC | AOT_SARG_LIST)))
    em_fail(e, AOT_E_UNIMPLEMENTED, "draw the numbers outside the region and pass them in",
            "a region of %.*s draws random numbers, and its operands cannot be told", (int)d->name.size, d->name.data);
  if (e->status == AOT_OK) e->status = give_inputs(e, graphs);
  if (e->status == AOT_OK) e->status = resolve_regions(e, graphs, &span);
  if (e->status != AOT_OK || rg_stream_open(e) != AOT_OK) return e->status;
  const int64_t base = rg_of(e)->stream->next;
  const em_x_t offset =
      base == 0 ? em_v(rg_of(e)->stream->offset) : EM(e, "add.Scalar", em_v(rg_of(e)->stream->offset), em_i(base));
  rg_of(e)->stream->next += span;
  const aot_value_t more[2] = {rg_of(e)->stream->seed, em_value(e, offset)};
  return e->status == AOT_OK ? replace_call(e, more) : e->status;
}
