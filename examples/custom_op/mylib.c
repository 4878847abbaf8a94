/* mylib: kernels of four operators, as a plugin built with the installed headers alone. The operators themselves are
 * declared in pipeline.yaml; a plugin can also bring the declarations (the table of an opset has room for both).
 *
 *     cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -I PREFIX/include mylib.c -o mylib.so
 *
 * Read it from the bottom: the entry, the descriptor, the unit, its table of kernels, the kernels. */
#include <aot/describe.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdio.h>
#include <string.h>

#define ID "mylib"
#define HELP "kernels of mylib::add_one_out, mylib::split_copy, mylib::scale and mylib::clip"

/* ---- tensors of any strides ---- */

/* The next index in row-major order; 0 after the last. */
static int advance(int64_t *index, const aot_tensor_t *t) {
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    if (++index[d] < t->sizes[d]) return 1;
    index[d] = 0;
  }
  return 0;
}

static float *at(const aot_tensor_t *t, const int64_t *index) {
  int64_t place = t->offset;
  for (int32_t d = 0; d < t->rank; d++) place += index[d] * t->strides[d];
  return (float *)t->data + place;
}

static int is_empty(const aot_tensor_t *t) {
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] == 0) return 1;
  return 0;
}

static aot_status_t bad(const aot_kernel_call_t *c, const char *text) {
  snprintf(c->message, c->message_size, "%s", text);
  return AOT_E_INVALID;
}

static int same_shape(const aot_tensor_t *a, const aot_tensor_t *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0);
}

/* to = scale * from + shift, element by element. */
static aot_status_t map(const aot_kernel_call_t *c, const aot_tensor_t *from, const aot_tensor_t *to, float scale,
                        float shift) {
  int64_t index[AOT_MAX_RANK] = {0};
  if (from->dtype != AOT_F32 || to->dtype != AOT_F32) return bad(c, "takes f32 tensors");
  if (!same_shape(from, to)) return bad(c, "takes tensors of one shape");
  if (is_empty(to)) return AOT_OK;
  do *at(to, index) = scale * *at(from, index) + shift;
  while (advance(index, to));
  return AOT_OK;
}

/* ---- kernels ---- */

/* add_one_out(Tensor x, Tensor(a!) out) -> (): out = x + 1 */
static aot_status_t add_one_out(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  return map(c, c->args[0].u.tensor, c->args[1].u.tensor, 1, 1);
}

/* split_copy(Tensor x, SymInt[] sizes, Tensor(a!)[] outs) -> (): the rows of x, sizes[i] of them into outs[i] */
static aot_status_t split_copy(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor;
  const aot_kernel_arg_t *sizes = &c->args[1], *outs = &c->args[2];
  int64_t row = 0;
  (void)k;
  if (sizes->n != outs->n || x->rank == 0) return bad(c, "takes one size a tensor of `outs`, and x with dimensions");
  for (uint32_t i = 0; i < outs->n; i++) {
    const aot_tensor_t *out = outs->u.tensors[i];
    aot_tensor_t piece = *x;
    int64_t shape[AOT_MAX_RANK];
    if (sizes->u.ints[i] < 0 || row + sizes->u.ints[i] > x->sizes[0])
      return bad(c, "the sizes ask for more rows than x has");
    memcpy(shape, x->sizes, (size_t)x->rank * sizeof shape[0]);
    shape[0] = sizes->u.ints[i];
    piece.sizes = shape;
    piece.offset += row * x->strides[0];
    row += sizes->u.ints[i];
    AOT_TRY(map(c, &piece, out, 1, 0));
  }
  return AOT_OK;
}

/* scale(Tensor x, float by=2.0) -> Tensor */
static aot_status_t scale(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  return map(c, c->args[0].u.tensor, &c->results[0], (float)c->args[1].u.f, 0);
}

/* clip(Tensor x, float most, Tensor(a!)? clipped=None) -> Tensor: min(x, most); clipped counts one up where that
 * changed x */
static aot_status_t clip(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor, *y = &c->results[0];
  const aot_tensor_t *clipped = c->args[2].kind == AOT_ARG_VALUE ? c->args[2].u.tensor : NULL;
  const float most = (float)c->args[1].u.f;
  int64_t index[AOT_MAX_RANK] = {0};
  (void)k;
  AOT_TRY(map(c, x, y, 1, 0));
  if (clipped && (clipped->dtype != AOT_F32 || !same_shape(clipped, x)))
    return bad(c, "takes f32 tensors of one shape");
  if (is_empty(y)) return AOT_OK;
  do {
    float *to = at(y, index);
    if (*to > most && clipped) *at(clipped, index) += 1;
    if (*to > most) *to = most;
  } while (advance(index, y));
  return AOT_OK;
}

#define KERNEL(name, function)                                                                                         \
  { .head = {.struct_size = sizeof(aot_kernel_t)}, .op = AOT_STR_INIT(name), .run = function }
static const aot_kernel_t rows[] = {KERNEL("mylib.add_one_out.default", add_one_out),
                                    KERNEL("mylib.split_copy.default", split_copy),
                                    KERNEL("mylib.scale.default", scale), KERNEL("mylib.clip.default", clip)};
static const aot_kernel_t *const kernels[] = {&rows[0], &rows[1], &rows[2], &rows[3]};

/* ---- the unit: an opset without operators of its own ---- */

static const void *get_ext(const aot_table_t *o, const char *id) {
  static const aot_ext_kernels_t ext = {
      .struct_size = sizeof ext, .kernels = kernels, .n_kernels = sizeof rows / sizeof rows[0]};
  (void)o;
  return strcmp(id, AOT_EXT_KERNELS) == 0 ? &ext : NULL;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  static const aot_opset_t table = {.head = {.struct_size = sizeof table, .get_ext = get_ext}};
  (void)host, (void)ctx, (void)opts;
  *out_table = &table.head;
  return AOT_OK;
}

AOT_PLUGIN_OPSET(ID, "1.0", "example", "Apache-2.0", HELP, "mylib", create);
