#include "gpu_dnn.h"

#include "plan_cache.h"
#include <aot/inline.h>

typedef struct dnn_step {
  const gc_cudnn_t *cudnn;
  const gc_dnn_plan_t *plan;
  gc_dnn_graph_t *graph;
  lw_ref_t refs[GC_DNN_MAX_TENSORS], workspace;
} dnn_step_t;

static gc_lowering_t *lowering(const lw_build_t *b) { return b->machine->self; }

static gc_address_t address(const lw_frame_t *f, lw_ref_t r) {
  return r.storage == LW_NONE ? 0 : (gc_address_t)(uintptr_t)lw_at(f, r);
}

static aot_status_t run_dnn(const lw_frame_t *f, void *payload) {
  const dnn_step_t *p = payload;
  const gc_run_t *run = f->self;
  gc_address_t addresses[GC_DNN_MAX_TENSORS];
  for (uint32_t k = 0; k < p->graph->n_tensors; k++) addresses[k] = address(f, p->refs[k]);
  const gc_address_t workspace = gc_workspace_at(address(f, p->workspace));
  *run->dnn = gc_dnn_run(p->cudnn, p->plan, p->graph, addresses, workspace, run->stream);
  return *run->dnn ? AOT_E_INTERNAL : AOT_OK;
}

/* For a graph that is not to run, when memory is planned: as if cuDNN took it. */
static const gc_dnn_plan_t *stand_in(lw_build_t *b, const gc_dnn_graph_t *g) {
  gc_dnn_plan_t *p = lw_pool_alloc(b->pool, sizeof *p);
  if (p) p->workspace_nbytes = gc_dnn_usual_workspace(g);
  return p;
}

const gc_dnn_plan_t *gc_dnn_plan_of(lw_build_t *b, const gc_dnn_graph_t *g) {
  gc_cudnn_t *c = lowering(b)->cudnn;
  if (!c) return stand_in(b, g);
  const gc_dnn_plan_t *p = gc_cudnn_ready(c) ? gc_dnn_plan(c, g) : NULL;
  return p && (p->desc || p->graph) ? p : NULL;
}

aot_status_t gc_add_dnn(lw_build_t *b, const gc_dnn_plan_t *plan, const gc_dnn_graph_t *g, const lw_tensor_t *tensors,
                        uint32_t n) {
  lw_tensor_t workspace = {.storage = LW_NONE};
  dnn_step_t *p;
  if (plan->workspace_nbytes) AOT_TRY(gc_workspace(b, plan->workspace_nbytes, &workspace));
  LW_STEP(b, run_dnn, p);
  p->cudnn = lowering(b)->cudnn;
  p->plan = plan;
  p->graph = lw_pool_alloc(b->pool, sizeof *g);
  if (!p->graph) return lw_no_memory(b->error, "for a step");
  *p->graph = *g;
  for (uint32_t k = 0; k < g->n_tensors; k++) {
    const int lies = k < n && g->tensors[k].kind == GC_DNN_MEMORY && gc_dnn_is_used(g, k);
    const lw_tensor_t *t = lies ? &tensors[k] : NULL;
    p->refs[k] = gc_dnn_is_written(g, k) ? lw_use(b, t) : lw_use_read(b, t);
  }
  p->workspace = lw_use_scratch(b, &workspace);
  lw_count_flops(b, gc_dnn_flops(g), tensors[0].dtype);
  lowering(b)->n_dnn++;
  return AOT_OK;
}

int gc_is_aligned_for_dnn(const lw_build_t *b, const lw_tensor_t *t) {
  return gc_alignment_of(b, t) % GC_DNN_ALIGN == 0;
}
