/* hooks: the only file here that sees the plugin boundary. */
#include "apply_hooks.h"
#include "codecs.h"
#include "hook_file.h"

#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdlib.h>
#include <string.h>

#define ID "hooks"
#define HELP                                                                                                           \
  "packs saved values after the forward and unpacks them in the backward: casts, 8-bit codecs, host offload, custom "  \
  "graphs"

typedef struct hooks_unit {
  aot_pass_t table;
  aot_host_t host;
  hk_plan_t plan;
  int codec;         /* -1: the file */
  aot_str_t program; /* path */
} hooks_unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const hooks_unit_t *u = p->head.self;
  em_t e = em_make(&u->host, ctx, prog, (aot_graph_t){AOT_NO_ID});
  e.code = "hooks.operator";
  e.what = "the hook";
  hk_file_t file = {0};
  if (u->codec < 0) hk_file_open(&file, &e, u->program);
  const hk_hook_t hook = u->codec < 0 ? hk_file_hook(&file) : hk_codec((uint32_t)u->codec);
  if (e.status == AOT_OK) hk_apply(&e, &u->plan, &hook);
  hk_file_close(&file, &e);
  return e.status;
}

static void destroy(const aot_table_t *p) { free(p->self); }

/* ---- options: create reads them by position ---- */

static const aot_str_t filters[] = {AOT_STR_INIT("donated"), AOT_STR_INIT("no_static"), AOT_STR_INIT("all")};

static aot_status_t bad_option(const aot_host_t *host, aot_ctx_t *ctx, const char *message, const char *hint) {
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, ID ".option", message);
  d.hint = aot_str(hint);
  return kit_report(host, ctx, AOT_E_OPTION, &d);
}

/* The dtype of a word, 0: none. */
static int32_t dtype_of(aot_str_t word) {
#define DTYPE_ROW(constant, number, text, nbytes) {text, number},
  static const struct {
    const char *text;
    int32_t number;
  } words[] = {AOT_DTYPE_MAP(DTYPE_ROW)};
#undef DTYPE_ROW
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (aot_str_eq(word, aot_str(words[i].text))) return words[i].number;
  return 0;
}

/* "f32, bf16" as bits. 0: a word that is no dtype. */
static int read_dtypes(aot_str_t text, uint64_t *out) {
  for (uint64_t i = 0; i < text.size;) {
    uint64_t end = i;
    while (end < text.size && !strchr(", ", text.data[end])) end++;
    const aot_str_t word = {text.data + i, end - i};
    const int32_t dtype = dtype_of(word);
    if (word.size && !dtype) return 0;
    if (dtype) *out |= UINT64_C(1) << dtype;
    i = end + 1;
  }
  return 1;
}

static int choice_of(aot_str_t text, const aot_str_t *choices, int n) {
  for (int i = 0; i < n; i++)
    if (aot_str_eq(text, choices[i])) return i;
  return -1;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_opt_value_t *v = opts->values;
  hooks_unit_t u = {.codec = choice_of(v[0].s, hk_codec_names + 1, HK_N_CODECS), .program = v[1].s};
  if ((u.codec >= 0) == (u.program.size > 0))
    return bad_option(host, ctx,
                      u.codec < 0 ? "it is not said how values are packed" : "both a codec and a program are named",
                      "set codec to one that is built in, or program to a file with @pack and @unpack");
  u.plan = (hk_plan_t){
      .filter = choice_of(v[2].s, filters, 3), .min_nbytes = v[3].i, .is_offload = u.codec == HK_N_CODECS - 1};
  if (!read_dtypes(v[4].s, &u.plan.dtypes))
    return bad_option(host, ctx, "dtypes holds a word that is no dtype", "write for instance dtypes: f32, bf16");
  AOT_TRY(aot_import(&u.host, sizeof u.host, host));
  hooks_unit_t *kept = malloc(sizeof *kept);
  if (!kept) return bad_option(host, ctx, "no memory for the unit", ""), AOT_E_EXHAUSTED;
  *kept = u;
  kept->table = (aot_pass_t){.head = {.struct_size = sizeof kept->table, .self = kept, .destroy = destroy}, .run = run};
  *out_table = &kept->table.head;
  return AOT_OK;
}

static const aot_option_t options[] = {
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_ENUM,
        .flags = AOT_OPT_AFFECTS_OUTPUT,
        .name = AOT_STR_INIT("codec"),
        .help = AOT_STR_INIT("how values are packed, built in"),
        .choices = hk_codec_names,
        .n_choices = HK_N_CODECS + 1,
        .preset = {.s = AOT_STR_INIT("none")},
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_PATH,
        .flags = AOT_OPT_AFFECTS_OUTPUT,
        .name = AOT_STR_INIT("program"),
        .help = AOT_STR_INIT("a file in text form with graphs @pack and @unpack, instead of a codec"),
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_ENUM,
        .flags = AOT_OPT_AFFECTS_OUTPUT,
        .name = AOT_STR_INIT("filter"),
        .help = AOT_STR_INIT(
            "saved values to pack: donated (no other owner), no_static (all but parameters, buffers, constants), all"),
        .choices = filters,
        .n_choices = 3,
        .preset = {.s = AOT_STR_INIT("donated")},
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_BYTES,
        .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
        .name = AOT_STR_INIT("min-bytes"),
        .help = AOT_STR_INIT("smaller values stay as they are"),
        .unit = AOT_STR_INIT("bytes"),
        .min = 0,
        .max = 9e18,
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_STRING,
        .flags = AOT_OPT_AFFECTS_OUTPUT,
        .name = AOT_STR_INIT("dtypes"),
        .help = AOT_STR_INIT(
            "only values of these dtypes (\"f32, bf16\"); empty: those that the codec or the program takes"),
    },
};
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_PARTITIONED),
    .gives = AOT_NAMES(AOT_PROP_HOOKED),
    .refuses = AOT_NAMES(AOT_PROP_HOOKED, AOT_PROP_LOWERED),
};

AOT_PLUGIN_ONE("pass/1", ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
