/* overlap: the unit of that name. The only file here that sees the plugin boundary. */
#include "overlap_step.h"

#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/ext/ranks.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdio.h>

#define HELP "overlaps collectives with computation: prefetches all-gathers and delays waits until the first use"

enum {
  OPT_BUCKET,
  OPT_AHEAD,
  OPT_MARGIN,
  OPT_KEEP,
  OPT_EXCHANGE,
  OPT_LATENCY,
  OPT_BANDWIDTH,
  OPT_LINKS,
  OPT_FLOPS,
  OPT_MEMORY,
  OPT_RANKS
};

typedef struct overlap_unit {
  aot_pass_t table;
  aot_host_t host;
  ov_options_t options;
} overlap_unit_t;

/* "gathers/world", "gather-bytes/rows": only what there is. */
static aot_status_t report_traffic(const aot_ext_report_t *r, aot_ctx_t *ctx, const ov_traffic_t *t) {
  static const char *const kinds[] = {
      [OV_GATHER] = "gather", [OV_SCATTER] = "scatter", [OV_REDUCE] = "reduce", [OV_EXCHANGE] = "exchange"};
  static const char *const dimensions[] = {[OV_ALL_RANKS] = "world", [OV_ROW] = "rows", [OV_COLUMN] = "columns"};
  for (int kind = 0; kind < OV_N_KINDS; kind++)
    for (int d = 0; d < OV_N_DIMENSIONS; d++) {
      char name[40];
      if (!t->n[kind][d]) continue;
      snprintf(name, sizeof name, "%ss/%s", kinds[kind], dimensions[d]);
      AOT_TRY(r->number(r, ctx, aot_str(name), t->n[kind][d], aot_str("")));
      snprintf(name, sizeof name, "%s-bytes/%s", kinds[kind], dimensions[d]);
      AOT_TRY(r->number(r, ctx, aot_str(name), (double)t->nbytes[kind][d], aot_str("bytes")));
    }
  return AOT_OK;
}

static aot_status_t report_memory(const aot_ext_report_t *r, aot_ctx_t *ctx, const ov_memory_t *m) {
  static const char *const parts[] = {[OV_GATHERED] = "gathered-at-once",
                                      [OV_GRADIENTS] = "gradients-at-once",
                                      [OV_ACTIVATIONS] = "activations-at-once"};
  for (int part = 0; part < OV_N_PARTS; part++)
    AOT_TRY(r->number(r, ctx, aot_str(parts[part]), (double)m->most[part], aot_str("bytes")));
  return r->number(r, ctx, aot_str("predicted-arena"), (double)m->arena_nbytes, aot_str("bytes"));
}

static aot_status_t report(const overlap_unit_t *u, aot_ctx_t *ctx, const ov_counts_t *n) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  if (!r) return AOT_OK;
  const double exposed = n->step_ns - n->compute_ns;
  AOT_TRY(r->number(r, ctx, aot_str("kept-gathers"), n->n_kept, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("exchanged-sums"), n->n_exchanged, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("collectives"), n->n_collectives, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("started-together"), n->n_started, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("predicted-step"), n->step_ns / 1e9, aot_str("seconds")));
  AOT_TRY(r->number(r, ctx, aot_str("predicted-communication"), n->collective_ns / 1e9, aot_str("seconds")));
  AOT_TRY(r->number(r, ctx, aot_str("exposed-communication"), exposed > 0 ? exposed / 1e9 : 0, aot_str("seconds")));
  AOT_TRY(report_traffic(r, ctx, &n->traffic));
  return report_memory(r, ctx, &n->memory);
}

static aot_status_t AOT_CALL run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const overlap_unit_t *u = p->head.self;
  const aot_ext_ranks_t *x = aot_ext(&u->host.head, AOT_EXT_RANKS);
  aot_run_ranks_t ranks = {.struct_size = sizeof ranks, .n_ranks = 1};
  ov_options_t options = u->options;
  ov_counts_t counts = {0};
  if (!options.n_ranks && x) x->get(x, ctx, &ranks);
  if (!options.n_ranks) options.n_ranks = ranks.n_ranks;
  AOT_TRY(ov_run(&u->host, ctx, prog, &options, &counts));
  return report(u, ctx, &counts);
}

static aot_status_t refuse(const overlap_unit_t *u, aot_ctx_t *ctx, const char *wrong) {
  return kit_fail(&u->host, ctx, AOT_E_OPTION, "overlap.links",
                  "the option 'links' does not say how long messages take: %s", wrong);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_opt_value_t *o = opts->values;
  overlap_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  const double flops = o[OPT_FLOPS].f;
  u->options = (ov_options_t){
      .bucket = (uint64_t)o[OPT_BUCKET].i,
      .ahead = (uint64_t)o[OPT_AHEAD].i,
      .margin = o[OPT_MARGIN].f,
      .keeps = o[OPT_KEEP].i != 0,
      .exchange = (uint64_t)o[OPT_EXCHANGE].i,
      .n_ranks = (uint32_t)o[OPT_RANKS].i,
      .link = ov_link_of(o[OPT_LATENCY].f * 1e3, o[OPT_BANDWIDTH].f),
      .rates = {.bytes = o[OPT_MEMORY].f, .halves = flops, .singles = flops, .doubles = flops / 2, .node_ns = 0},
  };
  const aot_str_t links = o[OPT_LINKS].s;
  const char *wrong = links.size ? ov_link_read(links.data, links.size, &u->options.link) : NULL;
  if (wrong) return refuse(u, ctx, wrong);
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    [OPT_BUCKET] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
                    .name = AOT_STR_INIT("bucket"), .unit = AOT_STR_INIT("bytes"), .preset = {.i = 25 << 20},
                    .help = AOT_STR_INIT("bucket size for coalescing neighbouring collectives; 0: no coalescing")},
    [OPT_AHEAD] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
                   .name = AOT_STR_INIT("ahead"), .unit = AOT_STR_INIT("bytes"), .preset = {.i = 64 << 20},
                   .help = AOT_STR_INIT("of parameters that are gathered before they are read, at most so many; 0: the "
                                        "next ones while the last are read")},
    [OPT_MARGIN] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                    .name = AOT_STR_INIT("margin"), .preset = {.f = 6}, .min = 1, .max = 1e6,
                    .help = AOT_STR_INIT("a collective may take so many times what links say: so much earlier gathers begin, "
                                         "and so much later gradients are waited for")},
    [OPT_KEEP] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .flags = AOT_OPT_AFFECTS_OUTPUT,
                  .name = AOT_STR_INIT("keep"), .preset = {.i = 1},
                  .help = AOT_STR_INIT("the parameter with which the forward ends and the backward begins is gathered once")},
    [OPT_EXCHANGE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
                      .name = AOT_STR_INIT("exchange"), .unit = AOT_STR_INIT("bytes"), .preset = {.i = 1 << 20},
                      .help = AOT_STR_INIT("gradients of so many bytes that are cast for their sum over ranks are exchanged as they "
                                           "were, and each rank adds up its part; 0: the communicator adds up")},
    [OPT_LATENCY] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                     .name = AOT_STR_INIT("latency"), .unit = AOT_STR_INIT("us"), .preset = {.f = 20}, .min = 0, .max = 1e6,
                     .help = AOT_STR_INIT("latency of one message between two ranks")},
    [OPT_BANDWIDTH] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                       .name = AOT_STR_INIT("bandwidth"), .unit = AOT_STR_INIT("GB/s"), .preset = {.f = 2}, .min = 1e-6, .max = 1e6,
                       .help = AOT_STR_INIT("of a rank's link")},
    [OPT_LINKS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT,
                   .name = AOT_STR_INIT("links"),
                   .help = AOT_STR_INIT("in their place a table: '8: 0=6 1MiB=9.5; 10000: 0=14 1MiB=40': among up to 8 ranks a "
                                        "message takes 6 us, one of a MiB 9.5 us")},
    [OPT_FLOPS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                   .name = AOT_STR_INIT("flops"), .unit = AOT_STR_INIT("GFLOP/s"), .preset = {.f = 50}, .min = 1e-3, .max = 1e9,
                   .help = AOT_STR_INIT("of a rank, where the backend does not tell how long nodes take")},
    [OPT_MEMORY] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                    .name = AOT_STR_INIT("memory-bandwidth"), .unit = AOT_STR_INIT("GB/s"), .preset = {.f = 8}, .min = 1e-3, .max = 1e6,
                    .help = AOT_STR_INIT("of a rank, where the backend does not tell how long nodes take")},
    [OPT_RANKS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                   .name = AOT_STR_INIT("ranks"), .max = 65536,
                   .help = AOT_STR_INIT("0: as many as run the pipeline; else, for looking at programs, so many")},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_STITCHED),
    .refuses = AOT_NAMES(AOT_PROP_LOWERED),
};

AOT_PLUGIN_ONE("pass/1", "overlap", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
