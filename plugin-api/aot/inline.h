/* aot/inline.h - conveniences for plugin authors; never part of the ABI. */
#ifndef AOT_INLINE_H
#define AOT_INLINE_H

#include <aot/base.h>
#include <aot/opset.h>
#include <aot/plugin.h>
#include <aot/snapshot.h>
#include <string.h>

static inline aot_str_t aot_str(const char *s) {
  aot_str_t r;
  r.data = s;
  r.size = s ? strlen(s) : 0;
  return r;
}
static inline int aot_str_eq(aot_str_t a, aot_str_t b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

/* No position, in tables of one's own whose positions count from 0. Nothing that crosses the boundary says it. */
#define AOT_NO_INDEX UINT32_MAX

static inline aot_node_t aot_no_node(void) {
  aot_node_t n;
  n.id = AOT_NO_ID;
  return n;
}
static inline aot_value_t aot_no_value(void) {
  aot_value_t v;
  v.id = AOT_NO_ID;
  return v;
}
static inline aot_origin_t aot_no_origin(void) {
  aot_origin_t o;
  o.id = AOT_NO_ID;
  return o;
}

/* Arguments of a node. */
static inline aot_arg_t aot_arg_none(void) {
  aot_arg_t a;
  memset(&a, 0, sizeof a);
  return a;
}
static inline aot_arg_t aot_arg_int_kind(int32_t kind, int64_t i) {
  aot_arg_t a = aot_arg_none();
  a.kind = kind;
  a.u.i = i;
  return a;
}
static inline aot_arg_t aot_arg_value(aot_value_t v) {
  return v.id == AOT_NO_ID ? aot_arg_none() : aot_arg_int_kind(AOT_ARG_VALUE, (int64_t)v.id);
}
static inline aot_arg_t aot_arg_int(int64_t i) { return aot_arg_int_kind(AOT_ARG_INT, i); }
static inline aot_arg_t aot_arg_bool(int b) { return aot_arg_int_kind(AOT_ARG_BOOL, b != 0); }
static inline aot_arg_t aot_arg_dtype(int32_t d) { return aot_arg_int_kind(AOT_ARG_DTYPE, d); }
static inline aot_arg_t aot_arg_device(int32_t device, int32_t index) {
  return aot_arg_int_kind(AOT_ARG_DEVICE, device + INT64_C(256) * index);
}
static inline int32_t aot_device_of(int64_t arg) { return (int32_t)(arg % 256); }
static inline int32_t aot_device_index_of(int64_t arg) { return (int32_t)(arg / 256); }
static inline aot_arg_t aot_arg_float(double f) {
  aot_arg_t a = aot_arg_none();
  a.kind = AOT_ARG_FLOAT;
  a.u.f = f;
  return a;
}
static inline aot_arg_t aot_arg_ints(const int64_t *ints, uint32_t n) {
  aot_arg_t a = aot_arg_none();
  a.kind = AOT_ARG_INTS;
  a.n = n;
  a.u.ints = ints;
  return a;
}
static inline aot_arg_t aot_arg_values(const uint32_t *ids, uint32_t n) {
  aot_arg_t a = aot_arg_none();
  a.kind = AOT_ARG_VALUES;
  a.n = n;
  a.u.ids = ids;
  return a;
}
static inline aot_arg_t aot_arg_str(aot_str_t s) {
  aot_arg_t a = aot_arg_none();
  a.kind = AOT_ARG_STR;
  a.n = (uint32_t)s.size;
  a.u.chars = s.data;
  return a;
}

/* ---- what a schema says about one call ---- */

/* The schema's argument for argument i of a node: variadic operators repeat their last one. */
static inline const aot_schema_arg_t *aot_schema_of(const aot_op_desc_t *d, uint32_t i) {
  return &d->args[i < d->n_args ? i : d->n_args - 1];
}
static inline uint32_t aot_n_operands(const aot_arg_t *a) {
  return a->kind == AOT_ARG_VALUE ? 1 : a->kind == AOT_ARG_VALUES ? a->n : 0;
}
/* The schema's result that stands for result i of n: a list result stands for several. */
static inline const aot_schema_arg_t *aot_schema_result(const aot_op_desc_t *d, uint32_t n, uint32_t i) {
  uint32_t extra = n > d->n_results ? n - d->n_results : 0, k, width;
  for (k = 0; k < d->n_results; k++, i -= width) {
    width = d->results[k].flags & AOT_SARG_LIST ? extra + 1 : 1;
    if (i < width) return &d->results[k];
  }
  return NULL;
}
/* The operand with the alias mark of result i of n, counted from 1 (in argument order, list elements one by one); 0:
 * none. */
static inline uint32_t aot_marked_operand(const aot_op_desc_t *d, const aot_arg_t *args, uint32_t n_args, uint32_t n,
                                          uint32_t i) {
  const aot_schema_arg_t *result = aot_schema_result(d, n, i);
  uint32_t operand = 1, a, width;
  for (a = 0; result && result->alias_set != 0 && a < n_args; a++, operand += width) {
    width = aot_n_operands(&args[a]);
    if (width > 0 && aot_schema_of(d, a)->alias_set == result->alias_set) return operand + (i < width ? i : 0);
  }
  return 0;
}

/* Is the index of such a port a leaf that it takes? PARAMETER BUFFER CONSTANT USER_INPUT STATE */
static inline int aot_role_is_leaf(int32_t role) { return role >= AOT_ROLE_PARAMETER && role <= AOT_ROLE_STATE; }

static inline uint64_t aot_dtype_size(int32_t dtype) {
  switch (dtype) {
#define AOT_DTYPE_SIZE_CASE(c, n, t, bytes)                                                                            \
  case n: return bytes;
    AOT_DTYPE_MAP(AOT_DTYPE_SIZE_CASE)
#undef AOT_DTYPE_SIZE_CASE
    default: return 0;
  }
}
static inline const char *aot_dtype_name(int32_t dtype) {
  switch (dtype) {
#define AOT_DTYPE_NAME_CASE(c, n, t, bytes)                                                                            \
  case n: return t;
    AOT_DTYPE_MAP(AOT_DTYPE_NAME_CASE)
#undef AOT_DTYPE_NAME_CASE
    default: return "?";
  }
}
/* Toward zero, as C has it. What does not fit, which C leaves open and PyTorch with it, is the nearest number; NaN
 * is the least. */
static inline int64_t aot_float_to_int(double x) {
  if (x >= 9223372036854775808.0) return INT64_MAX;
  return x >= -9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
static inline int aot_dtype_is_float(int32_t d) {
  return d == AOT_F16 || d == AOT_F32 || d == AOT_F64 || d == AOT_BF16;
}
static inline int aot_dtype_is_complex(int32_t d) { return d == AOT_C64 || d == AOT_C128; }
/* That of a complex dtype's parts; another is its own. */
static inline int32_t aot_dtype_part(int32_t d) { return d == AOT_C64 ? AOT_F32 : d == AOT_C128 ? AOT_F64 : d; }

/* Import by copy (plugin.h). Each struct starts with its size. Returns AOT_OK or AOT_E_TOO_NEW; dst is zeroed first. */
static inline aot_status_t aot_import(void *dst, uint32_t dst_size, const void *src) {
  uint32_t n, i;
  memcpy(&n, src, sizeof n);
  memset(dst, 0, dst_size);
  memcpy(dst, src, n < dst_size ? n : dst_size);
  for (i = dst_size; i < n; i++)
    if (((const unsigned char *)src)[i] != 0) return AOT_E_TOO_NEW;
  return AOT_OK;
}

/* The other way: an answer of full_size bytes into a struct that its reader has made and given its struct_size. As much
 * of it as the reader knows is written, and struct_size stays. */
static inline void aot_export(void *out, const void *full, uint32_t full_size) {
  uint32_t n;
  memcpy(&n, out, sizeof n);
  if (n > sizeof n)
    memcpy((char *)out + sizeof n, (const char *)full + sizeof n, (n < full_size ? n : full_size) - sizeof n);
}

/* Rows of another's making, `stride` bytes each: dst has n of them, each imported by its own size alone (rows are no
 * structs with a struct_size): what the maker did not know is zero. */
static inline void aot_import_rows(void *dst, uint64_t dst_size, const void *rows, uint64_t stride, uint64_t n) {
  uint64_t i;
  for (i = 0; i < n; i++) {
    char *to = (char *)dst + i * dst_size;
    memset(to, 0, (size_t)dst_size);
    memcpy(to, (const char *)rows + i * stride, (size_t)(stride < dst_size ? stride : dst_size));
  }
}

/* What a table offers under this id, NULL: nothing. For aot_host_t: aot_ext(&host->head, AOT_EXT_REPORT). */
static inline const void *aot_ext(const aot_table_t *t, const char *id) {
  return t->get_ext ? t->get_ext(t, id) : NULL;
}

/* Rows of a snapshot: const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes). */
#define AOT_SNAP_ROWS(s, type, array) ((const type *)(const void *)((const char *)(s) + (s)->array.at))
static inline aot_str_t aot_snap_text(const aot_snapshot_t *s, aot_snap_str_t r) {
  aot_str_t t;
  t.data = (const char *)s + s->chars.at + r.begin;
  t.size = r.size;
  return t;
}

#endif
