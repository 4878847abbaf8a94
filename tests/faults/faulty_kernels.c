/* Kernels with the faults of kernel_faults.def. faulty::copy(Tensor x, str fault) -> Tensor copies, and
 * faulty::fill(Tensor x, Tensor(a!) out, str fault) -> () writes; `fault` says what each does in addition. */
#include <aot/describe.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <fenv.h>
#include <string.h>

#define ID "faulty-kernels"
#define HELP "kernels that do to memory what they should not"

static int is_fault(const aot_kernel_arg_t *a, const char *name) {
  return a->n == strlen(name) && memcmp(a->u.chars, name, a->n) == 0;
}

/* The element that has the number in the order of sizes. */
static float *element(const aot_tensor_t *t, int64_t number) {
  int64_t place = t->offset;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    place += number % t->sizes[d] * t->strides[d];
    number /= t->sizes[d];
  }
  return (float *)t->data + place;
}

static int64_t numel(const aot_tensor_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

static void copy(const aot_tensor_t *from, const aot_tensor_t *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) *element(to, i) = *element(from, i);
}

/* What is written to, at a distance of so many elements from its first one. */
static void write_at(const aot_tensor_t *t, int64_t at) { *((volatile float *)t->data + t->offset + at) = 1; }

static aot_status_t commit(const aot_tensor_t *x, const aot_tensor_t *to, const aot_kernel_arg_t *fault) {
  const int64_t n = numel(to);
  copy(x, to, is_fault(fault, "part") ? n - 3 : is_fault(fault, "nothing") ? 0 : n);
  if (is_fault(fault, "past")) write_at(to, (int64_t)(to->nbytes / sizeof(float)) - to->offset);
  if (is_fault(fault, "before")) write_at(to, -to->offset - 2);
  if (is_fault(fault, "far")) write_at(to, 1024);
  if (is_fault(fault, "far-before")) write_at(to, -2048);
  if (is_fault(fault, "input")) write_at(x, 1);
  if (is_fault(fault, "input-past")) write_at(x, n);
  if (is_fault(fault, "reads-far")) write_at(to, *((volatile const float *)x->data + 2048) > 0);
  if (is_fault(fault, "rounding")) fesetround(FE_UPWARD);
  return AOT_OK;
}

static aot_status_t run_copy(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  return commit(c->args[0].u.tensor, &c->results[0], &c->args[1]);
}

static aot_status_t run_fill(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  return commit(c->args[0].u.tensor, c->args[1].u.tensor, &c->args[2]);
}

static const aot_kernel_t copies = {
    .head = {.struct_size = sizeof copies}, .op = AOT_STR_INIT("faulty.copy.default"), .run = run_copy};
static const aot_kernel_t fills = {
    .head = {.struct_size = sizeof fills}, .op = AOT_STR_INIT("faulty.fill.default"), .run = run_fill};
static const aot_kernel_t *const kernels[] = {&copies, &fills};

static const void *get_ext(const aot_table_t *o, const char *id) {
  static const aot_ext_kernels_t ext = {.struct_size = sizeof ext, .kernels = kernels, .n_kernels = 2};
  (void)o;
  return strcmp(id, AOT_EXT_KERNELS) == 0 ? &ext : NULL;
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  static const aot_opset_t table = {.head = {.struct_size = sizeof table, .get_ext = get_ext}};
  (void)self, (void)host, (void)ctx, (void)opts;
  *out_table = &table.head;
  return AOT_OK;
}

static const aot_unit_t unit = AOT_UNIT("opset/1", ID, "0.2", HELP, .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN(ID, "0.2", "test", "Apache-2.0", units, AOT_NOTE_OPSET(ID, HELP, "faulty"));
