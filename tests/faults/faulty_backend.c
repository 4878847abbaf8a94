/* examples/backend as three units: one that is right, and two that also write to the last byte of their first, and of
 * their last input. */
#include <aot/describe.h>
#undef AOT_PLUGIN_ONE
#define AOT_PLUGIN_ONE(...) struct described_below
#include "../../examples/backend/few_ops.c"

static aot_status_t run_and_write(const aot_bound_t *c, aot_status_t before, uint32_t input) {
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(c->exe->s, aot_snap_port_t, ports) + c->graph->input_begin;
  aot_bound_t *own = (aot_bound_t *)(uintptr_t)c;
  const aot_status_t status = run(own, before);
  if (status != AOT_OK || !c->graph->n_inputs) return status;
  const aot_tensor_t *t = &c->values[inputs[input < c->graph->n_inputs ? input : c->graph->n_inputs - 1].value];
  ((volatile char *)t->data)[t->nbytes - 1] ^= 1;
  return AOT_OK;
}

static aot_status_t run_first(void *self, aot_status_t before) { return run_and_write(self, before, 0); }
static aot_status_t run_last(void *self, aot_status_t before) { return run_and_write(self, before, UINT32_MAX); }

static aot_status_t submit_first(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *what) {
  const exe_t *x = e->head.self;
  return aot_submit_work(x->device, x->work, ctx, what, run_first, c);
}

static aot_status_t submit_last(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *what) {
  const exe_t *x = e->head.self;
  return aot_submit_work(x->device, x->work, ctx, what, run_last, c);
}

static aot_status_t load_first(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                               const aot_device_t *device, const aot_exe_t **out) {
  AOT_TRY(load(b, ctx, bytes, nbytes, device, out));
  ((exe_t *)(*out)->head.self)->table.submit = submit_first;
  return AOT_OK;
}

static aot_status_t load_last(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                              const aot_device_t *device, const aot_exe_t **out) {
  AOT_TRY(load(b, ctx, bytes, nbytes, device, out));
  ((exe_t *)(*out)->head.self)->table.submit = submit_last;
  return AOT_OK;
}

static aot_status_t create_one(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                               const aot_table_t **out) {
  AOT_TRY(create(ctx, host, opts, out));
  unit_t *u = (*out)->self;
  if (aot_str_eq(self->id, aot_str("writes-first"))) u->table.load = load_first;
  if (aot_str_eq(self->id, aot_str("writes-last"))) u->table.load = load_last;
  return AOT_OK;
}

#define BACKEND(id_) AOT_UNIT("backend/2", id_, "0.3", "writes its inputs", .create = create_one, .contract = &contract)
static const aot_unit_t unit_rows[] = {BACKEND("writes-none"), BACKEND("writes-first"), BACKEND("writes-last")};
static const aot_unit_t *const units[] = {&unit_rows[0], &unit_rows[1], &unit_rows[2]};
AOT_PLUGIN("faulty-backend", "0.3", "test", "Apache-2.0", units,
           AOT_NOTE_UNIT("backend/2", "writes-none", "writes its inputs") "," AOT_NOTE_UNIT(
               "backend/2", "writes-first", "writes its inputs") "," AOT_NOTE_UNIT("backend/2", "writes-last",
                                                                                   "writes its inputs"));
