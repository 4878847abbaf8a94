#include "run_segments.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>

typedef struct ports {
  aot_tensor_t *in, *out; /* of the part */
} ports_t;

/* The last part has the graph's own outputs; the sizes of open ones are known by then. */
static aot_status_t open_outputs(const lw_parts_run_t *r, const sn_known_t *known, uint32_t n, aot_tensor_t *out,
                                 lw_error_t *error) {
  for (uint32_t i = 0; i < n; i++) {
    out[i] = r->outputs[i];
    if (r->outputs[i].rank != AOT_RANK_OPEN) continue;
    if (!r->open) return lw_fail(error, AOT_E_INVALID, "bad-call", "output %u has no buffer", i);
    const aot_status_t status = r->open->allocate(r->open, i, known->symbols, known->n_symbols, &out[i]);
    if (status != AOT_OK) return lw_fail(error, status, "told", "output %u has no memory", i);
  }
  return AOT_OK;
}

static aot_status_t run_part(const lw_parts_run_t *r, lw_live_t *live, uint32_t number, const ports_t *ports,
                             lw_error_t *error) {
  const lw_part_t *part = &r->cut->parts[r->cut->first_part[r->graph] + number];
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(r->cut->s, aot_snap_graph_t, graphs) + part->graph;
  const lw_port_t *types;
  AOT_TRY(r->plan(r->self, number, live->known.symbols, &types, error));
  lw_live_tensors(live, g->input_begin, g->n_inputs, ports->in);
  if (part->birth == AOT_NO_ID) {
    AOT_TRY(open_outputs(r, &live->known, g->n_outputs, ports->out, error));
  } else {
    AOT_TRY(lw_live_make(live, g, types, error));
    lw_live_tensors(live, g->output_begin, g->n_outputs, ports->out);
  }
  return r->run(r->self, number, ports->in, ports->out, error);
}

static aot_status_t run_all(const lw_parts_run_t *r, lw_live_t *live, const ports_t *ports, lw_error_t *error) {
  const lw_part_t *parts = r->cut->parts + r->cut->first_part[r->graph];
  AOT_TRY(lw_live_inputs(live, r->graph, r->inputs, error));
  for (uint32_t k = 0; k < r->cut->n_parts_of[r->graph]; k++) {
    AOT_TRY(run_part(r, live, k, ports, error));
    AOT_ASSERT((parts[k].birth == AOT_NO_ID) == (k + 1 == r->cut->n_parts_of[r->graph])); /* the last has none */
    if (parts[k].birth != AOT_NO_ID) AOT_TRY(lw_live_birth(live, parts[k].birth, error));
    lw_live_forget(live, r->graph, k);
  }
  return AOT_OK;
}

/* The most ports that a part has. */
static uint32_t most_ports(const lw_parts_run_t *r) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(r->cut->s, aot_snap_graph_t, graphs);
  uint32_t most = 0;
  for (uint32_t k = 0; k < r->cut->n_parts_of[r->graph]; k++) {
    const aot_snap_graph_t *g = &graphs[r->cut->parts[r->cut->first_part[r->graph] + k].graph];
    if (g->n_inputs > most) most = g->n_inputs;
    if (g->n_outputs > most) most = g->n_outputs;
  }
  return most;
}

aot_status_t lw_run_parts(const lw_parts_run_t *r, lw_error_t *error) {
  const size_t n = (size_t)most_ports(r) + 1;
  const ports_t ports = {calloc(n, sizeof *ports.in), calloc(n, sizeof *ports.out)};
  lw_live_t live;
  aot_status_t status = lw_live_init(&live, r->cut, r->memory, r->symbols, r->n_symbols, error);
  if (status == AOT_OK && !(ports.in && ports.out)) status = lw_no_memory(error, "for a run");
  if (status == AOT_OK) status = run_all(r, &live, &ports, error);
  lw_live_deinit(&live);
  free(ports.in);
  free(ports.out);
  return status;
}
