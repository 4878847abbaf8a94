#include "region_steps.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>

enum { MAX_DEPTH = 16, MAX_REGIONS = 1 << 16 /* a damaged artifact may name itself over and over */ };

/* ---- jumps ---- */

static int is_true(const rk_tensor_t *t) {
  uint8_t bit = 0;
  rk_tensor_t one = *t; /* its shape, as a bool */
  one.data = &bit;
  one.nbytes = 1;
  one.dtype = AOT_BOOL;
  one.offset = 0;
  for (int32_t d = 0; d < one.rank; d++) one.strides[d] = 0;
  rk_copy(&one, t);
  return bit != 0;
}

aot_status_t lw_take_jump(const lw_frame_t *f, lw_jump_t *p) {
  AOT_ASSERT(!p->rounds || (*p->rounds >= 0 && *p->rounds < p->most));
  if (p->pred.storage != LW_NONE && is_true(&p->value)) return AOT_OK;
  if (p->rounds && ++*p->rounds >= p->most) return AOT_OK;
  *f->next = p->target;
  return AOT_OK;
}

aot_status_t lw_add_jump(lw_build_t *b, const lw_tensor_t *pred, lw_jump_t **out) {
  lw_jump_t *p;
  AOT_ASSERT(b->machine->target->jump); /* a target with regions has one */
  AOT_TRY(lw_add_step(b, b->machine->target->jump, "run_jump", sizeof *p, &p));
  lw_depends_on_run(b);
  p->pred = lw_use_read(b, pred);
  if (pred) p->value = lw_rk_tensor(b, pred);
  *out = p;
  return AOT_OK;
}

/* ---- a graph ---- */

static aot_status_t misfit(lw_build_t *b, const char *what, uint32_t i) {
  return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "%s %u of a region is not what its node has", what, i);
}

aot_status_t lw_region_operands(lw_build_t *b, uint32_t first, lw_value_t **out, uint32_t *out_n) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints);
  uint32_t n = 0;
  for (uint32_t a = first; a < b->node->n_args; a++)
    n += lw_arg(b, a)->kind == AOT_ARG_VALUES || lw_arg(b, a)->kind == AOT_ARG_INTS ? lw_arg(b, a)->n : 0;
  *out_n = n;
  *out = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof **out);
  if (!*out) return lw_no_memory(b->error, "for the operands of a region");
  n = 0;
  for (uint32_t a = first; a < b->node->n_args; a++) {
    const aot_snap_arg_t *list = lw_arg(b, a);
    for (uint32_t i = 0; list->kind == AOT_ARG_VALUES && i < list->n; i++, n++) {
      const uint32_t row = rows[(uint64_t)list->i + i];
      if (row != AOT_NO_ID) (*out)[n] = *lw_value(b, row);
    }
    for (uint32_t i = 0; list->kind == AOT_ARG_INTS && i < list->n; i++, n++)
      (*out)[n] =
          (lw_value_t){.kind = AOT_TYPE_SYMINT, .t.storage = LW_NONE, .number = lw_dim(b, ints[(uint64_t)list->i + i])};
  }
  AOT_ASSERT(n == *out_n); /* as many as were counted */
  return AOT_OK;
}

/* Inputs of the graph are operands of the node, in its layout. */
static aot_status_t bind_operands(lw_build_t *b, const lw_value_t *operands, uint32_t n) {
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  if (b->graph->n_inputs != n) return misfit(b, "the number of inputs,", b->graph->n_inputs);
  for (uint32_t i = 0; i < n; i++) {
    if (inputs[i].value == AOT_NO_ID) continue;
    lw_value_t *v = lw_value(b, inputs[i].value);
    if (operands[i].kind == AOT_TYPE_NONE && v->kind == AOT_TYPE_SYMINT) continue; /* its value is known by its type */
    if (v->kind != operands[i].kind) return misfit(b, "input", i);
    if (v->t.dtype && (v->t.dtype != operands[i].t.dtype || !lw_same_sizes(&v->t, &operands[i].t)))
      return misfit(b, "input", i);
    *v = operands[i];
  }
  return AOT_OK;
}

static aot_status_t read_outputs(lw_build_t *b, lw_tensor_t *outputs, uint32_t n) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  if (b->graph->n_outputs != n) return misfit(b, "the number of outputs,", b->graph->n_outputs);
  for (uint32_t i = 0; i < n; i++) {
    const lw_value_t *v = ports[i].value == AOT_NO_ID ? NULL : lw_value(b, ports[i].value);
    outputs[i] = v && v->kind == AOT_TYPE_TENSOR ? v->t : (lw_tensor_t){.storage = LW_NONE};
  }
  return AOT_OK;
}

aot_status_t lw_lower_region(lw_build_t *b, uint32_t graph, const lw_value_t *operands, uint32_t n_operands,
                             lw_tensor_t *outputs, uint32_t n_outputs) {
  const lw_build_t outer = *b;
  if (b->depth == MAX_DEPTH || ++b->n_regions > MAX_REGIONS)
    return lw_fail(b->error, AOT_E_RANGE, "too-deep", "regions nest more than %d deep, or there are more than %d",
                   MAX_DEPTH, MAX_REGIONS);
  b->graph = AOT_SNAP_ROWS(b->s, aot_snap_graph_t, graphs) + graph;
  b->depth++;
  b->values = NULL;
  b->donated_input = NULL; /* these are about the graph outside */
  b->class_numbers = NULL;
  aot_status_t status = lw_open_graph(b);
  if (status == AOT_OK) status = bind_operands(b, operands, n_operands);
  if (status == AOT_OK) status = lw_lower_nodes(b);
  if (status == AOT_OK) status = read_outputs(b, outputs, n_outputs);
  free(b->values);
  const uint32_t n_regions = b->n_regions;
  const aot_snap_node_t *at = status == AOT_OK ? outer.node : b->node; /* of a failure: the innermost */
  *b = outer;
  b->n_regions = n_regions;
  b->node = at ? at : outer.node;
  return status;
}

aot_status_t lw_copy_result(lw_build_t *b, uint32_t i, const lw_tensor_t *dst, const lw_tensor_t *src) {
  if (!dst->dtype) return AOT_OK;
  if (src->dtype != dst->dtype || !lw_same_sizes(src, dst) || (lw_numel(src) > 0 && src->storage == LW_NONE))
    return misfit(b, "output", i);
  return lw_copy(b, dst, src);
}
