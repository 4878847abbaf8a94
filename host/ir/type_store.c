/* Interned dimension arrays and value types.
 *
 * Most values of a model share a few hundred types; a value row holds a type number, and equal types one copy of their
 * sizes and strides. Interned rows are a cache, not content: undo leaves them. A row may therefore name shape
 * expressions and encodings that undo has undone; it is never reached from a value then, and rows are compared by
 * their numbers alone, so that nothing derived from an expression's meaning may be stored in them. */
#include <aot/assert.h>
#include <ir/program_store.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct ints_key {
  const int64_t *at;
  uint32_t n;
} ints_key_t;

static uint32_t ints_hash(const int64_t *at, uint32_t n) {
  return (uint32_t)XXH3_64bits_withSeed(at, n * sizeof *at, n);
}

static int ints_same(const void *prog, uint32_t row, const void *key) {
  const aot_prog_t *p = prog;
  const ints_key_t *k = key;
  const aoth_ints_row_t *r = &p->ints.at[row];
  return r->n == k->n && memcmp(r->at, k->at, k->n * sizeof *k->at) == 0;
}

static const int64_t no_ints[1] = {0};

const int64_t *aoth_ints_intern(aot_prog_t *p, const int64_t *at, uint32_t n) {
  ints_key_t key = {at, n};
  if (n == 0) return no_ints;
  uint32_t hash = ints_hash(at, n);
  uint32_t row = aoth_row_find(&p->ints_index, hash, ints_same, p, &key);
  if (row != NONE) return p->ints.at[row].at;
  if (!ROWS_ROOM(p->ints, 1) || !kit_map_reserve(&p->ints_index, p->ints_index.n + 1)) return NULL;
  const int64_t *copy = kit_arena_copy(p->store, 8, at, n * sizeof *at);
  if (!copy) return NULL;
  aoth_ints_row_t fresh = {copy, n};
  p->ints.at[p->ints.n] = fresh;
  kit_map_add(&p->ints_index, hash, p->ints.n++);
  return copy;
}

static aot_status_t check_dims(aot_prog_t *p, const int64_t *dims, int32_t rank, const char *which, const char *what) {
  for (int32_t i = 0; i < rank; i++) {
    if (!aoth_dim_is_valid(p, dims[i]))
      return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: %s %d names expression %u, there are %u", what, which, i,
                           AOT_DIM_EXPR(dims[i]), p->exprs.n - 1);
    if (dims[i] < 0)
      return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: %s %d is %lld", what, which, i, (long long)dims[i]);
  }
  return AOT_OK;
}

/* Every element has an address: offset + the sum of (size - 1) * stride, in bytes, is a number. What symbols are in is
 * known when it runs. Without strides it is dense. */
static aot_status_t check_extent(aot_prog_t *p, const aot_type_t *t, const char *what) {
  int64_t last = AOT_DIM_IS_SYM(t->offset) ? 0 : t->offset, dense = 1, step, nbytes;
  int too_large = 0;
  for (int32_t i = 0; i < t->rank; i++)
    if (t->sizes[i] == 0) return AOT_OK;
  for (int32_t i = t->rank; i-- > 0 && !too_large;) {
    const int64_t size = AOT_DIM_IS_SYM(t->sizes[i]) ? 1 : t->sizes[i], stride = t->strides ? t->strides[i] : dense;
    if (size > 1 && !AOT_DIM_IS_SYM(stride))
      too_large = __builtin_mul_overflow(size - 1, stride, &step) || __builtin_add_overflow(last, step, &last);
    if (!t->strides) too_large |= __builtin_mul_overflow(dense, size, &dense);
  }
  too_large |= __builtin_mul_overflow(last, 16, &nbytes); /* the largest element */
  for (int32_t i = 0; t->strides && i < t->rank; i++)
    too_large |= !AOT_DIM_IS_SYM(t->strides[i]) && t->strides[i] > INT64_MAX / 16;
  if (!too_large) return AOT_OK;
  return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: by its sizes and strides it is larger than memory can be",
                       what);
}

static aot_status_t check_tensor(aot_prog_t *p, const aot_type_t *t, const char *what) {
  switch (t->dtype) {
#define DTYPE_CASE(c, n, text, bytes) case n:
    AOT_DTYPE_MAP(DTYPE_CASE)
#undef DTYPE_CASE
    break;
    default: return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-type", "%s: there is no dtype %d", what, (int)t->dtype);
  }
  if (t->rank < 0 || t->rank > AOT_MAX_RANK)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: rank %d is not between 0 and %d", what, (int)t->rank,
                         AOT_MAX_RANK);
  if (t->device < 0 || t->device > AOT_DEVICE_META)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-type", "%s: there is no device kind %d", what, (int)t->device);
  if (t->device_index < 0)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: device index %d", what, (int)t->device_index);
  if (t->encoding.id >= p->encodings.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: there is no encoding %u; %u were made", what,
                         t->encoding.id, p->encodings.n - 1);
  if (t->rank && !t->sizes)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-type", "%s: rank %d without sizes", what, (int)t->rank);
  AOT_TRY(check_dims(p, t->sizes, t->rank, "size", what));
  if (t->strides) AOT_TRY(check_dims(p, t->strides, t->rank, "stride", what));
  AOT_TRY(check_dims(p, &t->offset, 1, "offset", what));
  return check_extent(p, t, what);
}

aot_status_t aoth_type_check(aot_prog_t *p, const aot_type_t *t, const char *what) {
  if (!t) return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-type", "%s: no type given", what);
  if (t->reserved[0] || t->reserved[1])
    return aoth_diagnose(p, AOT_E_TOO_NEW, "ir.too-new", "%s: a reserved member is not 0", what);
  switch (t->kind) {
    case AOT_TYPE_TENSOR: return check_tensor(p, t, what);
    case AOT_TYPE_SYMINT:
    case AOT_TYPE_SYMBOOL:
      if (!aoth_dim_is_valid(p, t->expr))
        return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "%s: expression %u does not exist", what,
                             AOT_DIM_EXPR(t->expr));
      return AOT_OK;
    case AOT_TYPE_NONE:
    case AOT_TYPE_SYMFLOAT:
    case AOT_TYPE_TOKEN: return AOT_OK;
    default: return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-type", "%s: there is no type kind %d", what, (int)t->kind);
  }
}

/* Strides of a dense row-major array of these sizes: the product of the sizes to the right, where 0 counts as 1. */
static aot_status_t contiguous_strides(aot_prog_t *p, int32_t rank, const int64_t *sizes, int64_t *out) {
  int64_t stride = 1;
  AOT_ASSERT(rank >= 0 && rank <= AOT_MAX_RANK);
  for (int32_t i = rank - 1; i >= 0; i--) {
    out[i] = stride;
    if (i > 0 && sizes[i] != 0) AOT_TRY(aoth_edit_dim_make(p, AOT_EXPR_MUL, stride, sizes[i], 0, &stride));
  }
  return AOT_OK;
}

int aoth_is_contiguous(aot_prog_t *p, int32_t rank, const int64_t *sizes, const int64_t *strides) {
  int64_t stride = 1;
  for (int32_t i = rank - 1; i >= 0; i--) {
    if (strides[i] != stride) return 0;
    if (i > 0 && sizes[i] != 0 && !aoth_dim_find(p, AOT_EXPR_MUL, stride, sizes[i], 0, &stride)) return 0;
  }
  return 1;
}

static uint32_t type_hash(const aot_type_t *t) {
  uint64_t words[7] = {((uint64_t)(uint32_t)t->kind << 32) | (uint32_t)t->dtype,
                       ((uint64_t)(uint32_t)t->rank << 32) | t->flags,
                       ((uint64_t)(uint32_t)t->device << 32) | (uint32_t)t->device_index,
                       (uint64_t)t->offset,
                       (uint64_t)t->expr,
                       ((uint64_t)t->memory << 32) | t->encoding.id,
                       0};
  XXH64_hash_t h = XXH3_64bits(words, sizeof words);
  if (t->kind == AOT_TYPE_TENSOR && t->rank) { /* interned: equal arrays have equal addresses */
    h = XXH3_64bits_withSeed(&t->sizes, sizeof t->sizes, h);
    h = XXH3_64bits_withSeed(&t->strides, sizeof t->strides, h);
  }
  return (uint32_t)h;
}

static int type_same(const void *prog, uint32_t row, const void *key) {
  const aot_prog_t *p = prog;
  const aot_type_t *a = &p->types.at[row], *b = key;
  return a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank && a->flags == b->flags &&
         a->device == b->device && a->device_index == b->device_index && a->offset == b->offset &&
         a->sizes == b->sizes && a->strides == b->strides && a->expr == b->expr && aoth_same_encoding(a, b);
}

int aoth_same_encoding(const aot_type_t *a, const aot_type_t *b) {
  return a->encoding.id == b->encoding.id && a->memory == b->memory;
}

/* The one form of a type: members that its kind does not use are zero, arrays are interned. */
static aot_status_t canonical(aot_prog_t *p, const aot_type_t *t, aot_type_t *out) {
  memset(out, 0, sizeof *out);
  out->kind = t->kind;
  out->flags = t->flags;
  out->sizes = out->strides = no_ints;
  if (t->kind == AOT_TYPE_SYMINT || t->kind == AOT_TYPE_SYMBOOL) out->expr = t->expr;
  if (t->kind != AOT_TYPE_TENSOR) return AOT_OK;
  out->dtype = t->dtype;
  out->rank = t->rank;
  out->device = t->device ? t->device : AOT_DEVICE_CPU;
  out->device_index = out->device == AOT_DEVICE_CPU ? 0 : t->device_index;
  out->memory = t->memory;
  out->encoding = t->encoding;
  out->offset = t->offset;
  int64_t dense[AOT_MAX_RANK];
  const int64_t *strides = t->strides;
  if (!strides) {
    AOT_TRY(contiguous_strides(p, t->rank, t->sizes, dense));
    strides = dense;
  }
  out->sizes = aoth_ints_intern(p, t->sizes, (uint32_t)t->rank);
  out->strides = aoth_ints_intern(p, strides, (uint32_t)t->rank);
  if (!out->sizes || !out->strides) return aoth_no_memory(p, "a type", sizeof *out);
  return AOT_OK;
}

int aoth_type_is_live(const aot_prog_t *p, const aot_type_t *t) {
  for (int32_t i = 0; i < t->rank; i++)
    if (!aoth_dim_is_valid(p, t->sizes[i]) || !aoth_dim_is_valid(p, t->strides[i])) return 0;
  return aoth_dim_is_valid(p, t->offset) && aoth_dim_is_valid(p, t->expr) && t->encoding.id < p->encodings.n;
}

aot_status_t aoth_type_intern(aot_prog_t *p, const aot_type_t *t, uint32_t *out) {
  aot_type_t type;
  AOT_TRY(aoth_type_check(p, t, "type"));
  AOT_TRY(canonical(p, t, &type));
  uint32_t hash = type_hash(&type);
  AOT_ASSERT(aoth_type_is_live(p, &type));
  *out = aoth_row_find(&p->type_index, hash, type_same, p, &type);
  if (*out != NONE) return AOT_OK;
  if (!ROWS_ROOM(p->types, 1) || !kit_map_reserve(&p->type_index, p->type_index.n + 1))
    return aoth_no_memory(p, "a type", sizeof type);
  p->types.at[p->types.n] = type;
  kit_map_add(&p->type_index, hash, p->types.n);
  *out = p->types.n++;
  AOT_ASSERT(!(*out & VALUE_DEAD));
  return AOT_OK;
}
