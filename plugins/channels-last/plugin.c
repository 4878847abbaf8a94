/* channels-last: the unit of that name. The only file here that sees the plugin boundary. */
#include "channels_last.h"

#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdio.h>

#define HELP "converts convolution networks to channels-last layout where that moves fewer bytes"

typedef struct channels_last_unit {
  aot_pass_t table;
  aot_host_t host;
  int is_off;
} channels_last_unit_t;

static const aot_str_t places[] = {AOT_STR_INIT("convolutions"), AOT_STR_INIT("off")};

static aot_status_t report(const channels_last_unit_t *u, aot_ctx_t *ctx, const nhwc_counts_t *n) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("convolutions"), (double)n->n_convolutions, aot_str("nodes")));
  AOT_TRY(r->number(r, ctx, aot_str("copies"), (double)n->n_copies, aot_str("nodes")));
  AOT_TRY(r->number(r, ctx, aot_str("copied"), (double)n->copied_nbytes, aot_str("bytes")));
  return r->number(r, ctx, aot_str("saved"), (double)n->saved_nbytes, aot_str("bytes"));
}

/* Why the program stays as it is. */
static void tell_unchanged(const channels_last_unit_t *u, aot_ctx_t *ctx, const nhwc_counts_t *n) {
  char text[240];
  if (!n->n_others) snprintf(text, sizeof text, "there are no convolutions of images or volumes");
  else
    snprintf(text, sizeof text,
             "%u convolutions stay as they lie, %u of them of patches: copies would move %llu bytes to save %llu",
             n->n_others, n->n_patches, (unsigned long long)n->copied_nbytes, (unsigned long long)n->saved_nbytes);
  const aot_diag_t d = kit_diag(AOT_SEVERITY_NOTE, "channels-last.unchanged", text);
  u->host.diag(&u->host, ctx, &d);
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const channels_last_unit_t *u = p->head.self;
  nhwc_counts_t n = {0};
  if (u->is_off) return AOT_OK;
  AOT_TRY(nhwc_run(&u->host, ctx, prog, &n));
  if (n.n_convolutions) return report(u, ctx, &n);
  tell_unchanged(u, ctx, &n);
  return report(u, ctx, &(nhwc_counts_t){0});
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  channels_last_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->is_off = aot_str_eq(opts->values[0].s, places[1]);
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t),
     .kind = AOT_OPT_ENUM,
     .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("where"),
     .help = AOT_STR_INIT("what is brought into that order"),
     .n_choices = 2,
     .choices = places,
     .preset = {.s = AOT_STR_INIT("convolutions")}},
};
static const aot_contract_t contract = {.struct_size = sizeof(aot_contract_t),
                                        .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
                                        .refuses = AOT_NAMES(AOT_PROP_JOINT, AOT_PROP_PARTITIONED)};

AOT_PLUGIN_ONE("pass/1", "channels-last", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
