#include <step/overlap.h>

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

typedef struct member { /* an input with elements */
  const aoth_call_input_t *in;
  uint32_t input;  /* its number */
  uint32_t traits; /* of all its duplicates */
  int in_base;
  uintptr_t begin, end; /* bytes */
} member_t;

typedef struct duplicate {
  uint32_t input, of; /* of: a member */
} duplicate_t;

typedef struct finder {
  kit_arena_t *arena;
  aoth_sink_t *sink;
  aoth_aliasing_t *out;
  member_t *m; /* ordered by begin, then geometry, then number */
  uint32_t n;
  uint32_t *joined; /* by member: another of its group, itself at the root */
  duplicate_t *duplicates;
  uint32_t n_duplicates;
} finder_t;

/* ---- the members, in order ---- */

static int compare_dims(const aoth_tensor_t *a, const aoth_tensor_t *b) {
  if (a->dtype != b->dtype) return a->dtype < b->dtype ? -1 : 1;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d]) return a->sizes[d] < b->sizes[d] ? -1 : 1;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] > 1 && a->strides[d] != b->strides[d]) return a->strides[d] < b->strides[d] ? -1 : 1;
  return 0;
}

static int compare_tensors(const member_t *x, const member_t *y) {
  uint32_t rx = x->in->traits & AOTH_INPUT_REQUIRES, ry = y->in->traits & AOTH_INPUT_REQUIRES;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (rx != ry) return rx > ry ? -1 : 1;
  return compare_dims(x->in->given, y->in->given);
}

static int compare_members(const void *a, const void *b) {
  const member_t *x = a, *y = b;
  int order = compare_tensors(x, y);
  return order ? order : x->input < y->input ? -1 : x->input > y->input;
}

static void place(member_t *m) {
  const aoth_tensor_t *t = m->in->given;
  uint64_t size = aot_dtype_size(t->dtype);
  int64_t last = 0;
  for (int32_t d = 0; d < t->rank; d++) last += (t->sizes[d] - 1) * t->strides[d];
  m->begin = (uintptr_t)t->data + (uint64_t)t->offset * size;
  m->end = m->begin + ((uint64_t)last + 1) * size;
}

static int collect(finder_t *f, const aoth_call_input_t *inputs, uint32_t n) {
  f->m = kit_arena_alloc(f->arena, 16, ((size_t)n + 1) * sizeof *f->m);
  f->joined = kit_arena_alloc(f->arena, 4, ((size_t)n + 1) * sizeof *f->joined);
  if (!f->m || !f->joined) return 0;
  for (uint32_t k = 0; k < n; k++) {
    if (!inputs[k].given->data || aoth_tensor_numel(inputs[k].given) <= 0) continue;
    f->m[f->n] = (member_t){.in = &inputs[k], .input = k, .traits = inputs[k].traits};
    place(&f->m[f->n++]);
  }
  qsort(f->m, f->n, sizeof *f->m, compare_members);
  for (uint32_t i = 0; i < f->n; i++) f->joined[i] = i;
  return 1;
}

/* Equal neighbours become one; f->m keeps the first of each, with the traits of all. */
static int merge_duplicates(finder_t *f) {
  uint32_t kept = 0;
  f->duplicates = kit_arena_alloc(f->arena, 4, ((size_t)f->n + 1) * sizeof *f->duplicates);
  if (!f->duplicates) return 0;
  for (uint32_t i = 0; i < f->n; i++) {
    member_t m = f->m[i];
    if (kept > 0 && compare_tensors(&f->m[kept - 1], &m) == 0) {
      f->m[kept - 1].traits |= m.traits;
      f->duplicates[f->n_duplicates++] = (duplicate_t){m.input, kept - 1};
    } else {
      f->m[kept++] = m;
    }
  }
  f->n = kept;
  return 1;
}

/* ---- which members have an element in common ---- */

static uint32_t root_of(uint32_t *joined, uint32_t i) {
  while (joined[i] != i) i = joined[i] = joined[joined[i]];
  return i;
}

/* Members [first, last) of one run of bytes: paint element by element, and join who meets another's paint. unit: bytes
 * of what is painted. */
static int paint(finder_t *f, uint32_t first, uint32_t last, uintptr_t begin, uintptr_t end, uint64_t unit) {
  uint32_t *owner = calloc((size_t)((end - begin) / unit) + 1, sizeof *owner); /* member + 1 */
  if (!owner) return 0;
  for (uint32_t i = first; i < last; i++) {
    const aoth_tensor_t *t = f->m[i].in->given;
    uint64_t width = aot_dtype_size(t->dtype) / unit;
    aoth_walk_t w;
    for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w))
      for (uint64_t k = 0; k < width; k++) {
        uint32_t *at = &owner[((uintptr_t)w.at[0] - begin) / unit + k];
        if (*at && *at != i + 1) f->joined[root_of(f->joined, i)] = root_of(f->joined, *at - 1);
        *at = i + 1;
      }
  }
  free(owner);
  return 1;
}

/* The size that all elements of a run are, and are at multiples of; else 1. */
static uint64_t kit_unit(const finder_t *f, uint32_t first, uint32_t last) {
  uint64_t size = aot_dtype_size(f->m[first].in->given->dtype);
  for (uint32_t i = first; i < last; i++)
    if (aot_dtype_size(f->m[i].in->given->dtype) != size || (f->m[i].begin - f->m[first].begin) % size) return 1;
  return size;
}

static aot_status_t join_overlapping(finder_t *f) {
  for (uint32_t first = 0, last; first < f->n; first = last) {
    uintptr_t end = f->m[first].end;
    uint32_t written = f->m[first].traits & AOTH_INPUT_WRITTEN;
    for (last = first + 1; last < f->n && f->m[last].begin < end; last++) {
      if (f->m[last].end > end) end = f->m[last].end;
      written |= f->m[last].traits & AOTH_INPUT_WRITTEN;
    }
    if (last == first + 1 || !written) continue;
    if (!paint(f, first, last, f->m[first].begin, end, kit_unit(f, first, last)))
      return aoth_sink_no_memory(f->sink, NULL, "run.memory", "to compare the places of %u inputs", f->n);
  }
  return AOT_OK;
}

/* ---- groups with a writer become bases ---- */

typedef struct group {       /* by root member */
  uint32_t n, written, base; /* base: NONE until it has a number */
  uint32_t first;            /* member that begins first */
  uintptr_t end;
} group_t;

static aot_status_t refuse(const finder_t *f, const member_t *a, const member_t *b, const char *why) {
  aoth_sink_report(
      f->sink, AOT_SEVERITY_ERROR, NULL, "input.overlap",
      "inputs %u and %u alias memory that the program writes, but %s; pass copies or non-overlapping tensors",
      a->input < b->input ? a->input : b->input, a->input < b->input ? b->input : a->input, why);
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t measure_groups(finder_t *f, group_t *groups) {
  for (uint32_t i = 0; i < f->n; i++) groups[i] = (group_t){.base = NONE};
  for (uint32_t i = 0; i < f->n; i++) {
    group_t *g = &groups[root_of(f->joined, i)];
    if (g->n++ == 0) g->first = i;
    g->written |= f->m[i].traits & AOTH_INPUT_WRITTEN;
    if (f->m[i].end > g->end) g->end = f->m[i].end;
  }
  for (uint32_t i = 0; i < f->n; i++) {
    const group_t *g = &groups[root_of(f->joined, i)];
    const member_t *a = &f->m[g->first], *b = &f->m[i];
    if (g->n < 2 || !g->written) continue;
    if (a->in->given->dtype != b->in->given->dtype) return refuse(f, a, b, "they have different dtypes");
    if ((b->begin - a->begin) % aot_dtype_size(a->in->given->dtype))
      return refuse(f, a, b, "they are not a whole number of elements apart");
  }
  return AOT_OK;
}

static int same_strides(const aoth_tensor_t *a, const aoth_tensor_t *b) {
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] > 1 && a->strides[d] != b->strides[d]) return 0;
  return a->rank == b->rank;
}

static void add_view(finder_t *f, const group_t *g, const member_t *m) {
  const aoth_tensor_t *t = m->in->given;
  aoth_alias_row_t *r = &f->out->rows[f->out->n_rows++];
  *r = (aoth_alias_row_t){
      .input = m->input,
      .of = g->base,
      .is_view = 1,
      .rank = t->rank,
      .as_declared = same_strides(t, m->in->declared),
      .offset = (int64_t)((m->begin - f->m[g->first].begin) / aot_dtype_size(t->dtype)),
  };
  memcpy(r->sizes, t->sizes, sizeof r->sizes);
  memcpy(r->strides, r->as_declared ? m->in->declared->strides : t->strides, sizeof r->strides);
}

static aot_status_t add_bases(finder_t *f) {
  group_t *groups = kit_arena_alloc(f->arena, 16, ((size_t)f->n + 1) * sizeof *groups);
  f->out->bases = kit_arena_alloc(f->arena, 16, ((size_t)f->n + 1) * sizeof *f->out->bases);
  if (!groups || !f->out->bases)
    return aoth_sink_no_memory(f->sink, NULL, "run.memory", "to compare the places of %u inputs", f->n);
  AOT_TRY(measure_groups(f, groups));
  for (uint32_t i = 0; i < f->n; i++) {
    group_t *g = &groups[root_of(f->joined, i)];
    if (g->n < 2 || !g->written) continue;
    if (g->base == NONE) {
      int32_t dtype = f->m[i].in->given->dtype;
      g->base = f->out->n_bases++;
      f->out->bases[g->base] = (aoth_alias_base_t){(int64_t)((g->end - f->m[i].begin) / aot_dtype_size(dtype)), dtype};
    }
    add_view(f, g, &f->m[i]);
    f->m[i].in_base = 1;
  }
  return AOT_OK;
}

/* ---- the pattern ---- */

/* Bases are numbered by their first input: the pattern does not depend on where the caller's memory lies. rows:
 * sorted. */
static int number_bases(finder_t *f) {
  aoth_aliasing_t *a = f->out;
  aoth_alias_base_t *bases = kit_arena_alloc(f->arena, 16, ((size_t)a->n_bases + 1) * sizeof *bases);
  uint32_t *number = kit_arena_alloc(f->arena, 4, ((size_t)a->n_bases + 1) * sizeof *number), next = 0;
  if (!bases || !number) return 0;
  memset(number, 0xff, a->n_bases * sizeof *number);
  for (uint32_t i = 0; i < a->n_rows && a->rows[i].is_view; i++) {
    uint32_t *at = &number[a->rows[i].of];
    if (*at == NONE) {
      *at = next++;
      bases[*at] = a->bases[a->rows[i].of];
    }
    a->rows[i].of = *at;
  }
  a->bases = bases;
  return 1;
}

static int by_input(const void *a, const void *b) {
  const aoth_alias_row_t *x = a, *y = b;
  if (x->is_view != y->is_view) return x->is_view ? -1 : 1;
  return x->input < y->input ? -1 : x->input > y->input;
}

static int by_base(const void *a, const void *b) {
  const aoth_alias_row_t *x = a, *y = b;
  if (x->is_view && y->is_view && x->of != y->of) return x->of < y->of ? -1 : 1;
  return by_input(a, b);
}

static void add_duplicates(finder_t *f) {
  for (uint32_t i = 0; i < f->n_duplicates; i++) {
    const duplicate_t *d = &f->duplicates[i];
    const member_t *m = &f->m[d->of];
    if (m->in_base || (m->traits & (AOTH_INPUT_WRITTEN | AOTH_INPUT_RESHAPED | AOTH_INPUT_GRADIENT)))
      f->out->rows[f->out->n_rows++] = (aoth_alias_row_t){.input = d->input, .of = m->input};
  }
}

aot_status_t aoth_overlap_find(const aoth_call_input_t *inputs, uint32_t n, kit_arena_t *arena, aoth_sink_t *sink,
                               aoth_aliasing_t *out) {
  finder_t f = {.arena = arena, .sink = sink, .out = out};
  memset(out, 0, sizeof *out);
  out->rows = kit_arena_alloc(arena, 16, ((size_t)n + 1) * sizeof *out->rows);
  if (!out->rows || !collect(&f, inputs, n) || !merge_duplicates(&f))
    return aoth_sink_no_memory(f.sink, NULL, "run.memory", "to compare the places of %u inputs", f.n);
  AOT_TRY(join_overlapping(&f));
  AOT_TRY(add_bases(&f));
  add_duplicates(&f);
  if (out->n_rows > 1) qsort(out->rows, out->n_rows, sizeof *out->rows, by_input);
  if (!number_bases(&f))
    return aoth_sink_no_memory(f.sink, NULL, "run.memory", "to compare the places of %u inputs", f.n);
  if (out->n_rows > 1) qsort(out->rows, out->n_rows, sizeof *out->rows, by_base);
  return AOT_OK;
}
