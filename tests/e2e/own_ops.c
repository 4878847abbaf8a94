/* An operator of a plugin's own, declaration and kernel in one table: mylib::add_one_out(Tensor x, Tensor(a!) out) ->
 * (). Built by custom_op.sh with the headers alone; nothing in the pipeline speaks of it. Tensors without dimensions
 * are not needed here. */
#include <aot/describe.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <string.h>

#define ID "own-ops"
#define HELP "mylib::add_one_out, declared and computed"
#define NAME "mylib.add_one_out.default"

static const aot_schema_arg_t args[] = {
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR},
    {.name = AOT_STR_INIT("out"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1}};
static const aot_op_desc_t desc = {
    .struct_size = sizeof desc,
    .flags = AOT_OP_WRITES | AOT_OP_NO_GRAD,
    .name = AOT_STR_INIT(NAME),
    .schema = AOT_STR_INIT("(Tensor x, Tensor(a!) out) -> ()"),
    .group = AOT_STR_INIT("custom"),
    .doc = AOT_STR_INIT("out = x + 1"),
    .args = args,
    .n_args = 2,
};
static const aot_op_desc_t *const ops[] = {&desc};

static int64_t place(const aot_tensor_t *t, int64_t flat) {
  int64_t at = t->offset;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    at += flat % t->sizes[d] * t->strides[d];
    flat /= t->sizes[d];
  }
  return at;
}

static aot_status_t add_one(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor, *out = c->args[1].u.tensor;
  int64_t n = 1;
  (void)k;
  for (int32_t d = 0; d < x->rank; d++) n *= x->sizes[d];
  for (int64_t i = 0; i < n; i++) ((float *)out->data)[place(out, i)] = ((const float *)x->data)[place(x, i)] + 1;
  return AOT_OK;
}

static const aot_kernel_t kernel = {.head = {.struct_size = sizeof kernel}, .op = AOT_STR_INIT(NAME), .run = add_one};
static const aot_kernel_t *const kernels[] = {&kernel};

static const void *get_ext(const aot_table_t *o, const char *id) {
  static const aot_ext_kernels_t ext = {.struct_size = sizeof ext, .kernels = kernels, .n_kernels = 1};
  (void)o;
  return strcmp(id, AOT_EXT_KERNELS) == 0 ? &ext : NULL;
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  static const aot_opset_t table = {.head = {.struct_size = sizeof table, .get_ext = get_ext}, .ops = ops, .n_ops = 1};
  (void)self, (void)host, (void)ctx, (void)opts;
  *out_table = &table.head;
  return AOT_OK;
}

static const aot_unit_t unit = AOT_UNIT("opset/1", ID, "1.0", HELP, .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN(ID, "1.0", "test", "Apache-2.0", units, AOT_NOTE_UNIT("opset/1", ID, HELP));
