/* build_types.c - symbols, dimensions and value types.
 *
 * A symbol is created where it is first met; its range comes from range_constraints, its value from build_hints.c. */
#include "builder.h"
#include "sympy_text.h"
#include <aot/ext/compare_dims.h>
#include <aot/inline.h>
#include <string.h>

/* ---- symbols ---- */

aot_status_t p2_symbols_prepare(p2_builder_t *b) {
  for (uint32_t i = 0; i < b->program->n_ranges; i++)
    AOT_TRY(p2_names_add(b->env, &b->range_index, b->program->ranges[i].symbol, i, NULL));
  return p2_hints_prepare(b);
}

/* Sizes are not negative; the range may say more. A number read from a tensor (item) may be negative. */
static void range_of(const p2_builder_t *b, aot_str_t name, int64_t *min, int64_t *max) {
  uint32_t i = p2_names_find(&b->range_index, name);
  *min = p2_str_starts(name, "u") ? 1 - AOT_DIM_SYM : 0;
  *max = INT64_MAX;
  if (i == P2_NO_ENTRY) return;
  if (b->program->ranges[i].min > 1 - AOT_DIM_SYM) *min = b->program->ranges[i].min;
  *max = b->program->ranges[i].max;
}

/* A symbol that was never traced: inside its range, and neither 0 nor 1 where that is possible, since those sizes
 * mean more. */
static int64_t guess(int64_t min, int64_t max) {
  int64_t hint = max < (INT64_C(1) << 40) ? max - (max - (min > 0 ? min : 0)) / 2 : 64;
  if (hint < 2) hint = 2;
  return hint;
}

static aot_status_t make_symbol(void *self, aot_str_t name, int64_t *out) {
  p2_builder_t *b = self;
  uint32_t known = p2_names_find(&b->symbol_index, name), hint = p2_names_find(&b->hint_index, name);
  aot_symbol_info_t info;
  if (known != P2_NO_ENTRY) {
    *out = b->symbols[known].dim;
    return AOT_OK;
  }
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.name = name;
  range_of(b, name, &info.min, &info.max);
  if (info.min > info.max)
    return p2_fail(b->env, "import-pt2.bad-range", "symbol '%.*s' has the empty range %lld..%lld", P2_SHOW(name),
                   (long long)info.min, (long long)info.max);
  info.hint = hint == P2_NO_ENTRY ? guess(info.min, info.max) : b->hints[hint];
  if (info.hint < info.min) info.hint = info.min;
  if (info.hint > info.max) info.hint = info.max;
  AOT_TRY(p2_grow(b->env, (void **)&b->symbols, b->n_symbols, &b->symbol_capacity, sizeof *b->symbols));
  AOT_TRY(b->host->edit->symbol_create(b->prog, &info, out));
  b->symbols[b->n_symbols].name = name;
  b->symbols[b->n_symbols].dim = *out;
  return p2_names_add(b->env, &b->symbol_index, name, b->n_symbols++, NULL);
}

static aot_status_t make_dim(void *self, int32_t op, int64_t a, int64_t x, int64_t y, int64_t *out) {
  p2_builder_t *b = self;
  return b->host->edit->dim_make(b->prog, op, a, x, y, out);
}

/* A dimension of a user input, by where it is in the arguments. */
static aot_status_t of_source(void *self, aot_str_t path, int32_t what, uint32_t index, int64_t *out) {
  p2_builder_t *b = self;
  const p2_program_t *p = b->program;
  const p2_graph_t *top = &p->graphs[0];
  uint32_t n = 0, i = 0, wanted = p2_names_find(&p->path_index, path);
  if (wanted == P2_NO_ENTRY) return AOT_E_NOT_FOUND;
  for (; i < p->n_input_specs && i < top->n_inputs; i++)
    if ((p->input_specs[i].kind == P2_IN_USER || p->input_specs[i].kind == P2_IN_PYTHON) && n++ == wanted) break;
  if (i >= p->n_input_specs || i >= top->n_inputs || top->inputs[i].kind != P2_ARG_TENSOR) return AOT_E_NOT_FOUND;
  const uint32_t meta = p2_names_find(&top->meta_index, top->inputs[i].u.s);
  if (meta == P2_NO_ENTRY || (what != P2_SOURCE_OFFSET && index >= top->metas[meta].rank)) return AOT_E_NOT_FOUND;
  const p2_meta_t *m = &top->metas[meta];
  return p2_dim(b,
                what == P2_SOURCE_SIZE     ? &m->sizes[index]
                : what == P2_SOURCE_STRIDE ? &m->strides[index]
                                           : &m->offset,
                out);
}

aot_status_t p2_dim_of_text(p2_builder_t *b, aot_str_t text, int64_t *out) {
  const p2_expr_sink_t sink = {b, make_symbol, make_dim, of_source};
  return p2_expr_read(b->env, text, &sink, out);
}

aot_status_t p2_dim(p2_builder_t *b, const p2_dim_t *d, int64_t *out) {
  if (!d->text.size) {
    if (AOT_DIM_IS_SYM(d->value))
      return p2_fail(b->env, "import-pt2.bad-size", "%lld is too large for a size", (long long)d->value);
    *out = d->value;
    return AOT_OK;
  }
  const p2_expr_sink_t sink = {b, make_symbol, make_dim, NULL};
  return p2_expr_read(b->env, d->text, &sink, out);
}

/* What depends on data is as the archive declares it, until a run finds otherwise. */
int p2_dims_agree(p2_builder_t *b, int64_t x, int64_t y) {
  const aot_ext_compare_dims_t *dims = aot_ext(&b->host->head, AOT_EXT_COMPARE_DIMS);
  if (x == y) return 1;
  if (!AOT_DIM_IS_SYM(x) && !AOT_DIM_IS_SYM(y)) return 0;
  if (dims) return dims->compare(dims, b->prog, AOT_EXPR_EQ, x, y) != 0;
  return b->host->graph->dim_hint(b->prog, x) == b->host->graph->dim_hint(b->prog, y);
}

/* ---- types ---- */

aot_status_t p2_device(p2_builder_t *b, const p2_device_t *d, int32_t *out_device, int32_t *out_index) {
  /* clang-format off */
  static const struct { const char *name; int32_t number; } rows[] = {
      {"cpu", AOT_DEVICE_CPU}, {"cuda", AOT_DEVICE_CUDA}, {"meta", AOT_DEVICE_META}};
  /* clang-format on */
  size_t i;
  for (i = 0; i < sizeof rows / sizeof *rows; i++)
    if (p2_str_is(d->type, rows[i].name)) {
      if (d->index < -1 || d->index > INT32_MAX / 512)
        return p2_node_bad(b, b->node, "import-pt2.device", "device index %lld is out of range", (long long)d->index);
      *out_device = rows[i].number;
      *out_index = (int32_t)d->index + 1;
      return AOT_OK;
    }
  p2_node_bad(b, b->node, "import-pt2.device", "the device '%.*s' is not supported", P2_SHOW(d->type));
  p2_hint(b->env, "export the model on the CPU or on a CUDA device");
  return AOT_E_INVALID;
}

static aot_status_t non_negative(p2_builder_t *b, aot_str_t name, const char *what, int64_t d) {
  if (d >= 0) return AOT_OK;
  return p2_node_bad(b, b->node, "import-pt2.bad-size", "tensor '%.*s' has the %s %lld", P2_SHOW(name), what,
                     (long long)d);
}

aot_status_t p2_type_of_meta(p2_builder_t *b, aot_str_t name, const p2_meta_t *m, aot_type_t *out) {
  int64_t *dims;
  int32_t index = 0;
  uint32_t i;
  memset(out, 0, sizeof *out);
  out->kind = AOT_TYPE_TENSOR;
  out->dtype = m->dtype > 0 && m->dtype < 256 ? (int32_t)m->dtype : 0;
  if (!aot_dtype_size(out->dtype))
    return p2_node_bad(b, b->node, "import-pt2.dtype", "tensor '%.*s' has the dtype %s (%lld), which is not supported",
                       P2_SHOW(name), p2_dtype_name(m->dtype), (long long)m->dtype);
  if (m->layout != AOT_LAYOUT_STRIDED)
    return p2_node_bad(b, b->node, "import-pt2.layout",
                       "tensor '%.*s' has layout %lld; only strided tensors are supported", P2_SHOW(name),
                       (long long)m->layout);
  out->rank = (int32_t)m->rank;
  AOT_TRY(p2_device(b, &m->device, &out->device, &index));
  out->device_index = index ? index : 1;
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, 2 * m->rank, &dims));
  for (i = 0; i < m->rank; i++) {
    AOT_TRY(p2_dim(b, &m->sizes[i], &dims[i]));
    AOT_TRY(p2_dim(b, &m->strides[i], &dims[m->rank + i]));
    AOT_TRY(non_negative(b, name, "size", dims[i]));
    AOT_TRY(non_negative(b, name, "stride", dims[m->rank + i]));
  }
  AOT_TRY(p2_dim(b, &m->offset, &out->offset));
  AOT_TRY(non_negative(b, name, "offset", out->offset));
  out->sizes = dims;
  out->strides = dims + m->rank;
  return AOT_OK;
}

aot_status_t p2_type_of_name(p2_builder_t *b, const p2_graph_t *g, aot_str_t name, aot_type_t *out) {
  uint32_t i = p2_names_find(&g->meta_index, name);
  if (i != P2_NO_ENTRY) return p2_type_of_meta(b, name, &g->metas[i], out);
  return p2_node_bad(b, b->node, "import-pt2.no-meta", "tensor '%.*s' has no entry in tensor_values", P2_SHOW(name));
}
