#include "outline.h"

#include "convex.h"
#include "kit/graph/copy_nodes.h"
#include <aot/inline.h>
#include <stdio.h>

enum { N_NAMES = 3 }; /* arguments of a call before its operands: the part's graph, backend and device */

/* A result of the part that is being made: a value of the divided graph, as this output of it or (AS_NONE) for other
 * parts. */
typedef struct result {
  uint32_t value, output;
} result_t;

typedef struct outliner {
  jg_copier_t copier; /* into the part; map: by value id of the divided graph */
  const as_stage_t *s;
  const aot_graph_api_t *graph;
  const aot_edit_api_t *edit;
  aot_graph_t of;
  int32_t kind;
  const uint32_t *part, *backend; /* as_outline */
  const uint8_t *in_place;
  uint32_t n_values;                    /* value ids are below; of the divided graph */
  uint32_t *now;                        /* by value: what represents it in the divided graph */
  uint32_t *taken;                      /* by value: the last part + 1 that took it as an input */
  uint8_t *is_crossing;                 /* by value: another part reads it */
  uint32_t *of_input;                   /* by value: the input + 1 that it is */
  uint32_t *first_output, *next_output; /* by value, by output: outputs + 1 that give it, in a list */
  uint32_t *given;                      /* by output: its value, when its part has been made */
  uint32_t *nodes;                      /* ids, by part */
  uint32_t *begin;                      /* by part, into nodes */
  uint32_t n_parts;
  aot_arg_t *args; /* of the call that is being made */
  uint32_t n_args;
  result_t *results;
  aot_type_t *types;
  uint32_t n_results;
} outliner_t;

static const aot_port_t *output_port(const outliner_t *o, uint32_t i) {
  return &o->graph->outputs(o->s->prog, o->of)[i];
}

static int lies_in_an_input(const outliner_t *o, int32_t role) {
  return o->kind == AOT_GRAPH_STEP && (role == AOT_ROLE_UPDATE || role == AOT_ROLE_OFFSET);
}

static uint32_t part_of(const outliner_t *o, uint32_t value) {
  const aot_node_t def = o->graph->value_def(o->s->prog, (aot_value_t){value});
  return def.id == AOT_NO_ID ? AS_NONE : o->part[def.id];
}

/* ---- what there is ---- */

static aot_status_t read_nodes(outliner_t *o) {
  aot_prog_t *p = o->s->prog;
  uint32_t n = 0;
  for (aot_node_t k = o->graph->first(p, o->of); k.id != AOT_NO_ID; k = o->graph->next(p, k), n++)
    o->begin[o->part[k.id] + 2]++;
  for (uint32_t i = 2; i < o->n_parts + 2; i++) o->begin[i] += o->begin[i - 1];
  o->nodes = as_alloc(o->s, n + 1u, sizeof *o->nodes);
  if (!o->nodes) return AOT_E_EXHAUSTED;
  for (aot_node_t k = o->graph->first(p, o->of); k.id != AOT_NO_ID; k = o->graph->next(p, k)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(o->graph->node_info(p, k, &info));
    o->nodes[o->begin[o->part[k.id] + 1]++] = k.id;
    for (uint32_t i = 0; i < info.n_operands; i++) {
      const uint32_t v = info.operands[i];
      if (v != AOT_NO_ID && part_of(o, v) != AS_NONE && part_of(o, v) != o->part[k.id]) o->is_crossing[v] = 1;
    }
  }
  return AOT_OK;
}

/* Every output's place in the list of its value; those that are handed over last are values that cross. */
static void read_ports(outliner_t *o) {
  aot_prog_t *p = o->s->prog;
  for (uint32_t i = 0, n = o->graph->n_inputs(p, o->of); i < n; i++) {
    const uint32_t v = o->graph->inputs(p, o->of)[i].value.id;
    o->of_input[v] = i + 1;
    o->now[v] = v;
  }
  for (uint32_t i = o->graph->n_outputs(p, o->of); i-- > 0;) {
    const uint32_t v = output_port(o, i)->value.id;
    if (v == AOT_NO_ID) continue;
    if (!o->in_place[i]) {
      o->is_crossing[v] = part_of(o, v) != AS_NONE;
      continue;
    }
    o->next_output[i] = o->first_output[v];
    o->first_output[v] = i + 1;
  }
}

static aot_status_t prepare(outliner_t *o) {
  aot_prog_t *p = o->s->prog;
  const uint32_t n_outputs = o->graph->n_outputs(p, o->of);
  aot_str_t name;
  AOT_TRY(o->graph->graph_info(p, o->of, &o->kind, &name));
  o->n_values = o->graph->n_values(p);
  o->now = as_alloc(o->s, o->n_values, sizeof *o->now);
  o->taken = as_alloc(o->s, o->n_values, sizeof *o->taken);
  o->is_crossing = as_alloc(o->s, o->n_values, 1);
  o->of_input = as_alloc(o->s, o->n_values, sizeof *o->of_input);
  o->first_output = as_alloc(o->s, o->n_values, sizeof *o->first_output);
  o->next_output = as_alloc(o->s, n_outputs + 1u, sizeof *o->next_output);
  o->given = as_alloc(o->s, n_outputs + 1u, sizeof *o->given);
  o->begin = as_alloc(o->s, o->n_parts + 2u, sizeof *o->begin);
  o->copier.map = as_alloc(o->s, o->n_values, sizeof *o->copier.map);
  o->args = as_alloc(o->s, (uint64_t)o->n_values + N_NAMES + 1, sizeof *o->args);
  o->results = as_alloc(o->s, (uint64_t)o->n_values + n_outputs + 1, sizeof *o->results);
  o->types = as_alloc(o->s, (uint64_t)o->n_values + n_outputs + 1, sizeof *o->types);
  if (!o->now || !o->taken || !o->is_crossing || !o->of_input || !o->first_output || !o->next_output || !o->given ||
      !o->begin || !o->copier.map || !o->args || !o->results || !o->types)
    return AOT_E_EXHAUSTED;
  AOT_TRY(read_nodes(o));
  read_ports(o);
  return AOT_OK;
}

/* ---- one part ---- */

static aot_status_t begin_part(outliner_t *o, uint32_t number, uint32_t backend) {
  char text[96];
  int32_t kind;
  aot_str_t of;
  AOT_TRY(o->graph->graph_info(o->s->prog, o->of, &kind, &of));
  const int n = snprintf(text, sizeof text, "%.*s_part%u", (int)(of.size < 64 ? of.size : 64), of.data, number + 1);
  AOT_TRY(o->edit->graph_create(o->s->prog, AOT_GRAPH_PART, (aot_str_t){text, (uint64_t)n}, &o->copier.graph));
  o->args[0] = aot_arg_int_kind(AOT_ARG_GRAPH, o->copier.graph.id);
  o->args[1] = aot_arg_str(o->s->backends->name(o->s->backends, o->s->ctx, backend));
  o->args[2] = o->s->device[backend - 1].size ? aot_arg_str(o->s->device[backend - 1]) : aot_arg_none();
  o->n_args = N_NAMES;
  o->n_results = 0;
  return AOT_OK;
}

static int keeps_role(int32_t role) {
  return (role >= AOT_ROLE_PARAMETER && role <= AOT_ROLE_STATE) || role == AOT_ROLE_HYPER || role == AOT_ROLE_SEED ||
         role == AOT_ROLE_OFFSET;
}

/* The value as an input of the part, unless it is one already. */
static aot_status_t take(outliner_t *o, uint32_t number, uint32_t value) {
  aot_prog_t *p = o->s->prog;
  if (o->taken[value] == number + 1) return AOT_OK;
  o->taken[value] = number + 1;
  const uint32_t position = o->n_args - N_NAMES;
  aot_port_t port = {.role = AOT_ROLE_REGION, .index = position};
  if (o->of_input[value]) port = o->graph->inputs(p, o->of)[o->of_input[value] - 1];
  if (!keeps_role(port.role)) port.role = AOT_ROLE_REGION, port.index = position;
  aot_type_t type;
  aot_value_t made;
  AOT_TRY(o->graph->value_type(p, (aot_value_t){o->now[value]}, &type));
  AOT_TRY(o->edit->input_add(p, o->copier.graph, port.role, port.index, &type, port.name, &made));
  o->copier.map[value] = made.id;
  o->args[o->n_args++] = aot_arg_value((aot_value_t){o->now[value]});
  return AOT_OK;
}

/* output AS_NONE: for other parts. */
static aot_status_t give(outliner_t *o, uint32_t value, uint32_t output) {
  aot_port_t port = {.role = AOT_ROLE_REGION, .index = o->n_results};
  if (output != AS_NONE && lies_in_an_input(o, output_port(o, output)->role)) port = *output_port(o, output);
  AOT_TRY(o->edit->output_add(o->s->prog, o->copier.graph, port.role, port.index, (aot_value_t){o->copier.map[value]},
                              port.name));
  o->results[o->n_results++] = (result_t){value, output};
  return AOT_OK;
}

static aot_status_t give_result(outliner_t *o, uint32_t value) {
  if (!o->first_output[value] && o->is_crossing[value]) return give(o, value, AS_NONE);
  for (uint32_t i = o->first_output[value]; i; i = o->next_output[i - 1]) AOT_TRY(give(o, value, i - 1));
  return AOT_OK;
}

/* The call, at the end of the divided graph; its results represent what the part computes. */
static aot_status_t finish_part(outliner_t *o) {
  aot_prog_t *p = o->s->prog;
  const aot_op_t op = o->graph->op_find(p, aot_str("aot.part.default"));
  const aot_node_spec_t spec = {.struct_size = sizeof spec,
                                .op = op,
                                .n_args = o->n_args,
                                .args = o->args,
                                .n_types = o->n_results,
                                .types = o->types};
  aot_node_info_t call = {.struct_size = sizeof call};
  aot_node_t made;
  for (uint32_t r = 0; r < o->n_results; r++) /* in its layout in the part: offsets, too */
    AOT_TRY(o->graph->value_type(p, (aot_value_t){o->results[r].value}, &o->types[r]));
  if (op.id == AOT_NO_ID)
    return as_fail(o->s, AOT_NO_ID, "assign.operator", NULL, "no opset has the operator aot.part.default");
  AOT_TRY(o->edit->node_create(p, o->of, &spec, aot_no_node(), &made));
  AOT_TRY(o->graph->node_info(p, made, &call));
  for (uint32_t r = 0; r < o->n_results; r++) {
    const result_t *result = &o->results[r];
    if (!o->now[result->value]) o->now[result->value] = call.first_result.id + r;
    if (result->output != AS_NONE) o->given[result->output] = call.first_result.id + r;
  }
  return AOT_OK;
}

static aot_status_t make_part(outliner_t *o, uint32_t number) {
  aot_prog_t *p = o->s->prog;
  AOT_TRY(begin_part(o, number, o->backend[number]));
  for (uint32_t i = o->begin[number]; i < o->begin[number + 1]; i++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(o->graph->node_info(p, (aot_node_t){o->nodes[i]}, &info));
    for (uint32_t k = 0; k < info.n_operands; k++) {
      const uint32_t v =
          o->graph->node_info(p, (aot_node_t){o->nodes[i]}, &info) == AOT_OK ? info.operands[k] : AOT_NO_ID;
      if (v != AOT_NO_ID && part_of(o, v) != number) AOT_TRY(take(o, number, v));
    }
    AOT_TRY(jg_copy_node(&o->copier, o->nodes[i], 0));
  }
  for (uint32_t i = o->begin[number]; i < o->begin[number + 1]; i++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(o->graph->node_info(p, (aot_node_t){o->nodes[i]}, &info));
    for (uint32_t r = 0; r < info.n_results; r++) AOT_TRY(give_result(o, info.first_result.id + r));
  }
  return finish_part(o);
}

/* Outputs that are inputs, and new values whose old ones are read after the part that makes them: a part without
 * nodes, of the backend that takes what others leave, hands them over. */
static aot_status_t hand_over(outliner_t *o) {
  const uint32_t n = o->graph->n_outputs(o->s->prog, o->of);
  uint32_t n_left = 0;
  for (uint32_t i = 0; i < n; i++) n_left += output_port(o, i)->value.id != AOT_NO_ID && !o->given[i];
  if (!n_left) return AOT_OK;
  AOT_TRY(begin_part(o, o->n_parts, o->s->n_backends));
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t v = output_port(o, i)->value.id;
    if (v == AOT_NO_ID || o->given[i]) continue;
    AOT_TRY(take(o, o->n_parts, v));
    AOT_TRY(give(o, v, i));
  }
  return finish_part(o);
}

static aot_status_t erase_nodes(outliner_t *o) {
  aot_prog_t *p = o->s->prog;
  aot_node_t prev;
  for (aot_node_t n = o->graph->last(p, o->of); n.id != AOT_NO_ID; n = prev) {
    prev = o->graph->prev(p, n);
    if (n.id < o->s->n_nodes && o->part[n.id] != AS_NONE) AOT_TRY(o->edit->node_erase(p, n));
  }
  return AOT_OK;
}

static aot_status_t outline(outliner_t *o) {
  AOT_TRY(prepare(o));
  for (uint32_t k = 0; k < o->n_parts; k++) AOT_TRY(make_part(o, k));
  AOT_TRY(hand_over(o));
  for (uint32_t i = 0; i < o->graph->n_outputs(o->s->prog, o->of); i++)
    if (o->given[i]) AOT_TRY(o->edit->output_set(o->s->prog, o->of, i, (aot_value_t){o->given[i]}));
  return erase_nodes(o);
}

aot_status_t as_outline(const as_stage_t *s, aot_graph_t graph, const uint32_t *part, const uint32_t *backend,
                        uint32_t n_parts, const uint8_t *in_place) {
  outliner_t o = {.copier = {.host = s->host, .ctx = s->ctx, .prog = s->prog},
                  .s = s,
                  .graph = s->host->graph,
                  .edit = s->host->edit,
                  .of = graph,
                  .part = part,
                  .backend = backend,
                  .n_parts = n_parts,
                  .in_place = in_place};
  const aot_status_t status = outline(&o);
  jg_copier_deinit(&o.copier);
  return status;
}
