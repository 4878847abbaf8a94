#include <compiler/run_ranks.h>

#include <aot/ext/waited.h>
#include <aot/inline.h>
#include <device/host_device.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>
#include <string.h>

uint32_t aoth_session_rank(const aoth_session_t *s) { return s->ranks.rank; }
uint32_t aoth_session_n_ranks(const aoth_session_t *s) { return s->ranks.n ? s->ranks.n : 1; }

aot_status_t aoth_ranks_get(const aot_ctx_t *ctx, aot_run_ranks_t *out) {
  const aoth_session_t *s = ctx->ranks;
  const aot_run_ranks_t all = {.struct_size = sizeof all,
                               .rank = s ? s->ranks.rank : 0,
                               .n_ranks = s ? s->ranks.n : 1,
                               .communicator = s ? s->ranks.unit.self : NULL,
                               .group = s ? s->ranks.group : NULL,
                               .device = aoth_host_device()};
  aot_export(out, &all, sizeof all);
  return AOT_OK;
}

void aoth_ranks_draws(aot_ctx_t *ctx, uint64_t n) {
  aoth_session_t *s = ctx->ranks;
  if (s) s->ranks.n_draws = n;
}

void aoth_ranks_parts(aot_ctx_t *ctx, uint32_t n) {
  aoth_session_t *s = ctx->ranks;
  if (s) s->ranks.n_parts = n;
}

uint32_t aoth_session_n_parts(const aoth_session_t *s) {
  return s->ranks.n_parts ? s->ranks.n_parts : aoth_session_n_ranks(s);
}

int64_t aoth_session_first_draw(const aoth_session_t *s) { return (int64_t)(s->ranks.rank * s->ranks.n_draws); }

/* ---- calls of the communicator ---- */

typedef struct query {
  aoth_session_t *s;
  const aot_collective_t *what;
} query_t;

static aoth_stage_t stage_of(const aoth_session_t *s) {
  const aoth_unit_t *unit = s->ranks.unit.unit;
  return (aoth_stage_t){.use = unit->id, .name = unit->id, .unit = unit};
}

static aot_status_t do_join(void *arg) {
  aoth_session_t *s = ((const query_t *)arg)->s;
  const aot_communicator_t *c = s->ranks.unit.self;
  const aot_join_t how = {.struct_size = sizeof how};
  aot_group_info_t info = {.struct_size = sizeof info};
  AOT_TRY(s->ranks.unit.table.communicator.join(c, &s->ctx, &how, &s->ranks.group));
  AOT_TRY(s->ranks.unit.table.communicator.info(c, s->ranks.group, &info));
  s->ranks.rank = info.rank;
  s->ranks.n = info.n_ranks;
  return AOT_OK;
}

static aot_status_t do_collect(void *arg) {
  const query_t *a = arg;
  const aoth_ranks_t *r = &a->s->ranks;
  return r->unit.table.communicator.collect(r->unit.self, &a->s->ctx, r->group, a->what);
}

static aot_status_t do_abort(void *arg) {
  const aoth_session_t *s = ((const query_t *)arg)->s;
  char why[256];
  aoth_sink_first_error(s->config.sink, why, sizeof why);
  s->ranks.unit.table.communicator.abort(s->ranks.unit.self, s->ranks.group, aot_str(why));
  return AOT_OK;
}

static aot_status_t do_leave(void *arg) {
  const aoth_ranks_t *r = &((const query_t *)arg)->s->ranks;
  r->unit.table.communicator.leave(r->unit.self, r->group);
  return AOT_OK;
}

static aot_status_t ask(aoth_session_t *s, const char *doing, aoth_call_fn fn, const aot_collective_t *what) {
  const aoth_stage_t stage = stage_of(s);
  query_t a = {s, what};
  const aot_status_t status = aoth_call(s, &stage, doing, fn, &a);
  /* a rank that is gone is no fault of the unit's */
  return status == AOT_OK || s->outcome == AOTH_CALL_TOLD ? status : aoth_session_fail(s, &stage);
}

aot_status_t aoth_session_join(aoth_session_t *s, const aoth_pipeline_t *p) {
  if (!p->run.ranks.unit || s->ranks.n) return AOT_OK;
  AOT_TRY(aoth_instance_create(s, &p->run.ranks, &s->ranks.unit));
  AOT_TRY(ask(s, "join", do_join, NULL));
  s->ctx.ranks = s;
  return AOT_OK;
}

void aoth_session_give_up(aoth_session_t *s) { s->ranks.gives_up = 1; }

void aoth_session_leave(aoth_session_t *s) {
  s->ctx.ranks = NULL;
  if (s->ranks.n > 1 && s->ranks.gives_up) ask(s, "abort", do_abort, NULL);
  if (s->ranks.n) ask(s, "leave", do_leave, NULL);
  s->ranks.n = 0;
  aoth_instance_destroy(s, NULL, &s->ranks.unit);
}

aot_status_t aoth_session_gather(aoth_session_t *s, const void *row, uint64_t nbytes, void *out, const char *what) {
  if (aoth_session_n_ranks(s) == 1) {
    memcpy(out, row, (size_t)nbytes);
    return AOT_OK;
  }
  const aot_collective_t gather = {.struct_size = sizeof gather,
                                   .kind = AOT_COLLECTIVE_ALL_GATHER,
                                   .to = {(uintptr_t)out, nbytes * s->ranks.n},
                                   .from = {(uintptr_t)row, nbytes},
                                   .what = aot_str(what)};
  return ask(s, "gather", do_collect, &gather);
}

aot_status_t aoth_session_ranks_well(aoth_session_t *s) {
  aot_str_t why = {"", 0};
  const aot_status_t status =
      s && s->ranks.n ? s->ranks.unit.table.communicator.failure(s->ranks.unit.self, s->ranks.group, &why) : AOT_OK;
  if (status != AOT_OK)
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "ranks.failed", "%.*s", (int)why.size, why.data);
  return status;
}

aot_group_info_t aoth_session_traffic_of_ranks(const aoth_session_t *s) {
  aot_group_info_t info = {.struct_size = sizeof info};
  if (s->ranks.n) s->ranks.unit.table.communicator.info(s->ranks.unit.self, s->ranks.group, &info);
  return info;
}

uint64_t aoth_session_waited_for_ranks(const aoth_session_t *s) {
  uint64_t ns = 0;
  for (uint32_t i = 0; i < s->n_opsets; i++) {
    aot_ext_waited_t x;
    if (aoth_instance_extension(&s->opsets[i], AOT_EXT_WAITED, &x, sizeof x) == AOT_OK && x.ns) ns += x.ns(&x);
  }
  return ns;
}
