/* Opsets that ordinary programs do not need, one a define: STRAY_EXIT and STRAY_CRASH end the process when they are
 * created, STRAY_LOADING when it is loaded, STRAY_FAIL fails, STRAY_LIAR brings another's operator, STRAY_TWICE an
 * operator that aten has, STRAY_TEXT one whose schema reads otherwise than its rows, STRAY_FORM one that writes, whose
 * functional form is nothing. CLAIMS: its note's, none when undefined. */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <signal.h>
#include <stdlib.h>

#define HELP "an opset that nobody needs"

#if defined(STRAY_FORM)
#define SCHEMA "(Tensor(a!) x) -> Tensor(a!)"
static const aot_schema_arg_t args[] = {
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1}};
static const aot_schema_arg_t results[] = {{.type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1}};
#else
#if defined(STRAY_TEXT)
#define SCHEMA STRAY_TEXT
#else
#define SCHEMA "(Tensor x) -> Tensor"
#endif
static const aot_schema_arg_t args[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t results[] = {{.type = AOT_STYPE_TENSOR}};
#endif
#if defined(STRAY_LIAR)
#define OPERATOR "elsewhere.f.default"
#elif defined(STRAY_TWICE)
#define OPERATOR "aten.relu.default"
#else
#define OPERATOR "stray.f.default"
#endif
static const aot_op_desc_t op = {
    .struct_size = sizeof op,
    .name = AOT_STR_INIT(OPERATOR),
    .schema = AOT_STR_INIT(SCHEMA),
#ifdef STRAY_FORM
    .flags = AOT_OP_WRITES,
#endif
    .args = args,
    .results = results,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t *const ops[] = {&op};

#if defined(STRAY_LOADING)
static void __attribute__((constructor)) too_early(void) { raise(SIGSEGV); }
#endif

#if defined(STRAY_FORM)
static aot_status_t fill_nothing(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                 aot_node_t node, aot_value_t *out_results, aot_value_t *out_written) {
  (void)o, (void)ctx, (void)prog, (void)local, (void)node, (void)out_results, (void)out_written;
  return AOT_OK;
}
#else
#define fill_nothing NULL
#endif

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  static const aot_opset_t table = {
      .head = {.struct_size = sizeof table}, .ops = ops, .n_ops = 1, .functional_form = fill_nothing};
  (void)host, (void)ctx, (void)opts;
#if defined(STRAY_EXIT)
  exit(0);
#elif defined(STRAY_CRASH)
  raise(SIGSEGV);
#elif defined(STRAY_FAIL)
  return AOT_E_INTERNAL;
#endif
  *out_table = &table.head;
  return AOT_OK;
}

#ifdef CLAIMS
AOT_PLUGIN_OPSET(ID, "1.0", "tests", "Apache-2.0", HELP, CLAIMS, create);
#else
static aot_status_t create_unit(const aot_unit_t *unit, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                const aot_table_t **out_table) {
  (void)unit;
  return create(ctx, host, opts, out_table);
}

static const aot_unit_t silent = AOT_UNIT("opset/1", ID, "1.0", HELP, .create = create_unit);
static const aot_unit_t *const units[] = {&silent};

AOT_PLUGIN(ID, "1.0", "tests", "Apache-2.0", units, AOT_NOTE_UNIT("opset/1", ID, HELP));
#endif
