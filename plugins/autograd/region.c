/* The gradient of a region is a region: a copy with the cotangents of its outputs as further inputs, the reverse pass,
 * and gradients as its only outputs. Unused forward nodes are erased; the others are recomputed in the backward, since
 * a region returns no saved values. For repeated regions a partition can change that: their gradient is made once and
 * keeps the region's outputs. Nested regions are handled by recursion of at most AG_MAX_DEPTH. */
#include "effect_nodes.h"

/* Numbers drawn in the forward cannot be drawn again. */
static aot_status_t refuse_random(ag_joint_t *j) {
  const aot_graph_api_t *api = j->a.host->graph;
  aot_node_t n;
  for (n = api->first(j->a.prog, j->a.graph); n.id != AOT_NO_ID; n = api->next(j->a.prog, n)) {
    AOT_TRY(ag_load(&j->a, n));
    if (j->a.desc->flags & AOT_OP_RANDOM)
      em_fail(&j->a, AOT_E_INVALID,
              "put the stage rng before autograd, or draw the numbers outside the region and pass them in",
              "%.*s draws random numbers in a region whose backward would have to draw them again",
              (int)j->a.desc->name.size, j->a.desc->name.data);
  }
  return j->a.status;
}

static aot_status_t seed(ag_joint_t *j, const uint8_t *given) {
  const aot_graph_api_t *api = j->a.host->graph;
  uint32_t k, n = api->n_outputs(j->a.prog, j->forward);
  for (k = 0; k < n; k++) {
    aot_value_t v = api->outputs(j->a.prog, j->forward)[k].value;
    if (!given[k]) continue;
    v.id = j->map[v.id];
    AOT_TRY(ag_joint_seed(j, v, AOT_ROLE_REGION, api->n_inputs(j->a.prog, j->a.graph), ""));
  }
  return AOT_OK;
}

/* A gradient for each wanted input: both branches of a cond return all of them, so that a missing path is zeros. */
static aot_status_t collect(ag_joint_t *j, const uint8_t *needs) {
  const aot_graph_api_t *api = j->a.host->graph;
  uint32_t i, n = api->n_inputs(j->a.prog, j->forward), n_out = 0;
  for (i = 0; i < n; i++) {
    aot_value_t input = api->inputs(j->a.prog, j->a.graph)[i].value, gradient;
    em_x_t v;
    if (!needs[i]) continue;
    v = ag_joint_gradient(j, input);
    if (v.kind == AOT_ARG_NONE) v = ag_zeros_like(&j->a, ag_v(input.id));
    v = ag_contiguous(&j->a, v);
    if (j->a.status != AOT_OK) return j->a.status;
    gradient.id = (uint32_t)v.u.i;
    AOT_TRY(j->a.host->edit->output_add(j->a.prog, j->a.graph, AOT_ROLE_REGION, n_out++, gradient, aot_str("")));
  }
  return AOT_OK;
}

/* Outputs may be replaced while the copy is expanded: uses_replace does not know j->map, outputs do. */
static aot_status_t follow_outputs(ag_joint_t *j) {
  const aot_host_t *h = j->a.host;
  uint32_t k, n = h->graph->n_outputs(j->a.prog, j->forward);
  for (k = 0; k < n; k++) {
    aot_value_t v = h->graph->outputs(j->a.prog, j->forward)[k].value;
    if (v.id == AOT_NO_ID) continue;
    v.id = j->map[v.id];
    AOT_TRY(h->edit->output_add(j->a.prog, j->a.graph, AOT_ROLE_REGION, k, v, aot_str("")));
  }
  AOT_TRY(ag_joint_expand(j));
  for (k = 0, n = h->graph->n_outputs(j->a.prog, j->a.graph); k < n; k++) {
    aot_port_t port = h->graph->outputs(j->a.prog, j->a.graph)[k];
    j->map[h->graph->outputs(j->a.prog, j->forward)[port.index].value.id] = port.value.id;
  }
  return h->edit->outputs_clear(j->a.prog, j->a.graph);
}

/* The region's own outputs, after the gradients. */
static aot_status_t collect_forward(ag_joint_t *j) {
  const aot_host_t *h = j->a.host;
  uint32_t k, n = h->graph->n_outputs(j->a.prog, j->forward), at = h->graph->n_outputs(j->a.prog, j->a.graph);
  for (k = 0; k < n; k++) {
    aot_value_t v = h->graph->outputs(j->a.prog, j->forward)[k].value;
    v.id = j->map[v.id];
    AOT_TRY(h->edit->output_add(j->a.prog, j->a.graph, AOT_ROLE_REGION, at + k, v, aot_str("")));
  }
  return AOT_OK;
}

static aot_status_t differentiate(const em_t *outer, aot_graph_t region, const uint8_t *needs, const uint8_t *given,
                                  int with_forward, aot_graph_t *out) {
  ag_joint_t j;
  uint32_t i, n;
  AOT_TRY(ag_joint_nest(&j, outer, region));
  AOT_TRY(ag_joint_copy(&j, AOT_GRAPH_REGION, aot_str("")));
  AOT_TRY(refuse_random(&j));
  AOT_TRY(ag_joint_grow(&j));
  n = j.a.host->graph->n_inputs(j.a.prog, region);
  for (i = 0; i < n; i++)
    if (needs[i]) j.needs[j.a.host->graph->inputs(j.a.prog, j.a.graph)[i].value.id] = 1;
  AOT_TRY(follow_outputs(&j));
  AOT_TRY(ag_joint_read(&j));
  AOT_TRY(seed(&j, given));
  AOT_TRY(ag_joint_reverse(&j));
  AOT_TRY(collect(&j, needs));
  if (with_forward) AOT_TRY(collect_forward(&j));
  *out = j.a.graph;
  AOT_TRY(ag_joint_sweep(&j, 0));
  AOT_TRY(ag_drop_effects(&j));
  return ag_joint_sweep(&j, 0);
}

aot_status_t ag_region_vjp(const em_t *outer, aot_graph_t region, const uint8_t *needs, const uint8_t *given,
                           aot_graph_t *out) {
  return differentiate(outer, region, needs, given, 0, out);
}

/* A row with these needs and given, or NULL. Rows are few: one a body, or a few where calls differ in what has a
 * gradient. */
static const ag_shared_region_t *find_shared(const ag_shared_t *s, aot_graph_t region, const uint8_t *marks,
                                             uint32_t n) {
  uint32_t i;
  for (i = 0; i < s->n; i++)
    if (s->rows[i].region.id == region.id && memcmp(s->rows[i].marks, marks, n) == 0) return &s->rows[i];
  return NULL;
}

static aot_status_t add_shared(em_t *a, ag_shared_region_t row) {
  ag_shared_t *s = ag_of(a)->shared;
  if (s->n == s->capacity) {
    ag_shared_region_t *more = em_scratch(a, 2 * (uint64_t)s->capacity + 8, sizeof *more);
    if (!more) return AOT_E_EXHAUSTED;
    if (s->n) memcpy(more, s->rows, s->n * sizeof *more);
    s->rows = more;
    s->capacity = 2 * s->capacity + 8;
  }
  s->rows[s->n++] = row;
  return AOT_OK;
}

aot_status_t ag_region_joint(const em_t *outer, aot_graph_t region, const uint8_t *needs, const uint8_t *given,
                             aot_graph_t *out) {
  uint32_t n_in = outer->host->graph->n_inputs(outer->prog, region),
           n_out = outer->host->graph->n_outputs(outer->prog, region);
  em_t a = *outer;
  uint8_t *marks = em_scratch(&a, (uint64_t)n_in + n_out, 1);
  const ag_shared_region_t *found;
  if (!marks) return AOT_E_EXHAUSTED;
  memcpy(marks, needs, n_in);
  memcpy(marks + n_in, given, n_out);
  found = find_shared(ag_of(&a)->shared, region, marks, n_in + n_out);
  if (found) {
    *out = found->joint;
    return AOT_OK;
  }
  AOT_TRY(differentiate(outer, region, needs, given, 1, out));
  return add_shared(&a, (ag_shared_region_t){region, *out, marks});
}
