/* rng: the only file here that sees the plugin boundary. */
#include "rng_stage.h"

#include <aot/describe.h>
#include <aot/ext/ranks.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define ID "rng"
#define HELP "replaces random operators by explicit Philox draws from a seed and an offset"

typedef struct rng_unit {
  aot_pass_t table;
  aot_host_t host;
} rng_unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const rng_unit_t *u = p->head.self;
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  const aot_ext_ranks_t *x = aot_ext(&u->host.head, AOT_EXT_RANKS);
  aot_run_ranks_t ranks = {.struct_size = sizeof ranks, .n_ranks = 1};
  rg_counts_t n = {0};
  if (x) AOT_TRY(x->get(x, ctx, &ranks));
  AOT_TRY(rg_make_explicit(&u->host, ctx, prog, ranks.n_ranks, &n));
  if (x && ranks.n_ranks > 1) AOT_TRY(x->draws(x, ctx, (uint64_t)n.draws));
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("random-operators"), n.nodes, aot_str("nodes")));
  return r->number(r, ctx, aot_str("draws"), (double)n.draws, aot_str(""));
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  rng_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_RNG_EXPLICIT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED, AOT_PROP_LOWERED),
};

AOT_PLUGIN_ONE("pass/1", ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract);
