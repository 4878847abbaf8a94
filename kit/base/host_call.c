#include "host_call.h"

#include <aot/host_backend.h>

#include <stdlib.h>
#include <string.h>

struct aot_bound {
  const hc_exe_t *exe;
  hc_run_t what;          /* but for the symbols, which a run may learn: each submission has its own */
  const int64_t *symbols; /* as bound */
};

/* A call can be on the queue several times: each submission has an item of its own. */
typedef struct item {
  aot_bound_t *call;
  hc_run_t what;
  int64_t symbols[]; /* where the submission brings none */
} item_t;

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t **out) {
  aot_bound_t *c = malloc(sizeof *c);
  (void)ctx;
  if (!c) return AOT_E_EXHAUSTED;
  *c = (aot_bound_t){
      .exe = (const hc_exe_t *)(const void *)e,
      .what =
          {
              .kind = b->graph.kind,
              .number = b->graph.number,
              .inputs = b->inputs,
              .n_inputs = b->n_inputs,
              .outputs = b->outputs,
              .n_outputs = b->n_outputs,
              .arena = (char *)(uintptr_t)b->arena.address,
              .arena_nbytes = b->arena.nbytes,
              .n_symbols = b->graph.n_symbols,
          },
      .symbols = b->graph.symbols,
  };
  *out = c;
  return AOT_OK;
}

static void unbind(const aot_exe_t *e, aot_bound_t *c) {
  (void)e;
  free(c);
}

static aot_status_t do_run(void *self, aot_status_t before) {
  item_t *i = self;
  const aot_status_t status = before == AOT_OK ? i->call->exe->run(i->call->exe->table.head.self, &i->what) : before;
  free(i);
  return status;
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *s) {
  const size_t n_symbols = (size_t)c->what.n_symbols;
  (void)e;
  item_t *i = malloc(sizeof *i + n_symbols * sizeof *i->symbols);
  if (!i) return AOT_E_EXHAUSTED;
  i->call = c;
  i->what = c->what;
  i->what.ctx = ctx;
  i->what.open = s->open;
  i->what.symbols = s->symbols ? s->symbols : i->symbols;
  if (n_symbols) memcpy(i->what.symbols, c->symbols, n_symbols * sizeof *i->symbols);
  return aot_submit_work(c->exe->device, c->exe->work, ctx, s, do_run, i);
}

static aot_status_t plan_nothing(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  const aot_exe_plan_t none = {.struct_size = sizeof none};
  (void)e, (void)ctx, (void)graph;
  aot_export(out, &none, sizeof none);
  return AOT_OK;
}

int hc_exe_init(hc_exe_t *e, const aot_device_t *device, hc_run_fn run, void *self) {
  const aot_ext_host_work_t *work = aot_host_work(device);
  if (!work) return 0;
  *e = (hc_exe_t){
      .table =
          {
              .head = {.struct_size = sizeof e->table, .self = self},
              .plan = plan_nothing,
              .bind = bind,
              .submit = submit,
              .unbind = unbind,
          },
      .device = device,
      .work = work,
      .run = run,
  };
  return 1;
}
