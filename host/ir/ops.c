/* The operators of a session: the union of its opsets, found by full name.
 *
 * Operator id = position of registration, from 1; it never changes. Each id leads to the opset that owns it and the
 * operator's number there, which is how questions about a node reach the plugin that can answer. Descriptors are
 * imported by copy, so that an older or newer plugin's struct reads the same. */
#include "kit/base/map.h"
#include "kit/base/vector.h"
#include <aot/assert.h>
#include <aot/ext/derivative.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <ir/ops_store.h>
#include <ir/text/schema_text.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct op_entry {
  aot_op_desc_t desc;
  uint32_t opset, local;
} op_entry_t;

struct aoth_ops {
  kit_arena_t *arena; /* descriptors: they must not move */
  op_entry_t **entries;
  uint32_t n, capacity; /* n: highest id + 1; entry 0 is NULL */
  kit_map_t by_name;
  aoth_opset_ref_t *opsets;
  uint32_t n_opsets, opsets_capacity;
};

aoth_ops_t *aoth_ops_create(void) {
  aoth_ops_t *ops = calloc(1, sizeof *ops);
  if (!ops) return NULL;
  ops->arena = kit_arena_create();
  ops->entries = calloc(1, sizeof *ops->entries);
  ops->n = ops->capacity = 1;
  if (ops->arena && ops->entries) return ops;
  aoth_ops_destroy(ops);
  return NULL;
}

void aoth_ops_destroy(aoth_ops_t *ops) {
  if (!ops) return;
  kit_arena_destroy(ops->arena);
  free(ops->entries);
  kit_map_deinit(&ops->by_name);
  free(ops->opsets);
  free(ops);
}

static uint32_t name_hash(aot_str_t name) { return (uint32_t)XXH3_64bits(name.data, (size_t)name.size); }

static int has_name(const void *ops, uint32_t id, const void *name) {
  return aot_str_eq(((const aoth_ops_t *)ops)->entries[id]->desc.name, *(const aot_str_t *)name);
}

aot_op_t aoth_ops_find(const aoth_ops_t *ops, aot_str_t name) {
  const uint32_t id = ops ? kit_map_find(&ops->by_name, name_hash(name), has_name, ops, &name) : KIT_MAP_NONE;
  return (aot_op_t){id == KIT_MAP_NONE ? AOT_NO_ID : id};
}

/* Room for n operators. */
static int make_room(aoth_ops_t *ops, uint64_t n) {
  op_entry_t **entries = kit_grow(ops->entries, &ops->capacity, n, sizeof *entries);
  if (!entries) return 0;
  ops->entries = entries;
  return kit_map_reserve(&ops->by_name, (uint32_t)n);
}

static aot_status_t bad_desc(aoth_sink_t *sink, const aot_op_desc_t *d, const char *why) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "ops.bad-descriptor", "operator %.*s: %s", (int)d->name.size,
                   d->name.data ? d->name.data : "", why);
  return AOT_E_INVALID;
}

static aot_status_t check_desc(aoth_sink_t *sink, const aot_op_desc_t *d) {
  if (!d->name.size || !d->name.data) return bad_desc(sink, d, "its descriptor has no name");
  if ((d->n_args && !d->args) || (d->n_results && !d->results))
    return bad_desc(sink, d, "its descriptor has no schema");
  for (uint32_t i = 0; i < d->n_args; i++) {
    if ((d->args[i].flags & AOT_SARG_VARIADIC) && i + 1 < d->n_args)
      return bad_desc(sink, d, "a variadic argument must be the last");
    if (d->args[i].write_if < 0 || d->args[i].write_if > (int32_t)d->n_args)
      return bad_desc(sink, d, "write_if names no argument");
  }
  return AOT_OK;
}

/* No more than a warning: what a plugin was once loaded with it is loaded with for good. */
static void warn_of_text(const aoth_ops_t *ops, const aot_op_desc_t *d, aoth_sink_t *sink) {
  kit_text_t why = {0};
  if (!aoth_schema_agrees(d, &why))
    aoth_sink_report(sink, AOT_SEVERITY_WARNING, NULL, "ops.schema", "opset %s, operator %.*s: %s; the row counts",
                     ops->opsets[ops->n_opsets - 1].name, (int)d->name.size, d->name.data, why.data ? why.data : "");
  kit_text_deinit(&why);
}

static aot_status_t add_one(aoth_ops_t *ops, const aot_op_desc_t *source, uint32_t local, aoth_sink_t *sink) {
  op_entry_t *e = kit_arena_alloc(ops->arena, 8, sizeof *e);
  if (!e) return AOT_E_EXHAUSTED;
  if (aot_import(&e->desc, sizeof e->desc, source) != AOT_OK) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "ops.too-new", "operator descriptor %u is made for a newer host",
                     local);
    return AOT_E_TOO_NEW;
  }
  AOT_TRY(check_desc(sink, &e->desc));
  const aot_op_t there = aoth_ops_find(ops, e->desc.name);
  if (there.id != AOT_NO_ID) {
    const uint32_t other = ops->entries[there.id]->opset;
    const char *name = ops->opsets[ops->n_opsets - 1].name;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "ops.exists", "operator %.*s is defined twice, by opset %s%s%s",
                     (int)e->desc.name.size, e->desc.name.data, ops->opsets[other].name,
                     other == ops->n_opsets - 1 ? " both times" : " and by opset ",
                     other == ops->n_opsets - 1 ? "" : name);
    return AOT_E_EXISTS;
  }
  warn_of_text(ops, &e->desc, sink);
  AOT_ASSERT(ops->n_opsets > 0 && ops->n < ops->capacity);
  e->opset = ops->n_opsets - 1;
  e->local = local;
  ops->entries[ops->n] = e;
  return kit_map_add(&ops->by_name, name_hash(e->desc.name), ops->n++) ? AOT_OK : AOT_E_EXHAUSTED;
}

/* Two sets of marks say the same when equal marks are in the same places: which letter it is does not matter. */
static int32_t first_of_set(const aot_op_desc_t *d, int32_t set) {
  int32_t i = 0;
  if (set == 0 || set == AOT_ALIAS_ANY) return set;
  while ((uint32_t)i < d->n_args && d->args[i].alias_set != set) i++;
  return i + 1;
}

static int same_slots(const aot_op_desc_t *a, const aot_schema_arg_t *x, const aot_op_desc_t *b,
                      const aot_schema_arg_t *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (x[i].type != y[i].type || x[i].flags != y[i].flags || x[i].list_size != y[i].list_size) return 0;
    if (!aot_str_eq(x[i].name, y[i].name) || first_of_set(a, x[i].alias_set) != first_of_set(b, y[i].alias_set))
      return 0;
  }
  return 1;
}

static int same_schema(const aot_op_desc_t *a, const aot_op_desc_t *b) {
  return a->n_args == b->n_args && a->n_results == b->n_results && same_slots(a, a->args, b, b->args, a->n_args) &&
         same_slots(a, a->results, b, b->results, a->n_results);
}

aot_status_t aoth_ops_declare(aoth_ops_t *ops, const aot_opset_t *opset, const aot_op_desc_t *op, uint32_t local,
                              const aoth_where_t *where, aoth_sink_t *sink) {
  const aot_op_t there = aoth_ops_find(ops, op->name);
  if (there.id != AOT_NO_ID) {
    const aot_op_desc_t *known = &ops->entries[there.id]->desc;
    if (same_schema(known, op)) return AOT_OK;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, where, "ops.contradicts",
                     "operator %.*s is there already, with another schema", (int)op->name.size, op->name.data);
    aoth_sink_line(sink, "declared here: %.*s", (int)op->schema.size, op->schema.data);
    aoth_sink_line(sink, "known as:      %.*s", (int)known->schema.size, known->schema.data);
    return AOT_E_EXISTS;
  }
  if (ops->n == ops->capacity && !make_room(ops, 2 * (uint64_t)ops->n + 16)) return AOT_E_EXHAUSTED;
  AOT_TRY(add_one(ops, op, local, sink));
  uint32_t owner = 0;
  for (; ops->opsets[owner].self != opset; owner++) AOT_ASSERT(owner + 1 < ops->n_opsets);
  ops->entries[ops->n - 1]->opset = owner;
  return AOT_OK;
}

/* ---- what opsets bring next to operators ---- */

/* An extension of the opset's, imported by copy; empty when it has none. */
static void get_extension(const aoth_opset_ref_t *o, const char *id, void *out, uint32_t size) {
  const void *given = aot_ext(&o->self->head, id);
  if (!given || aot_import(out, size, given) != AOT_OK) memset(out, 0, size);
}

const aot_kernel_t *aoth_ops_kernel(const aoth_ops_t *ops, aot_str_t name, const aot_opset_t **out_opset) {
  for (uint32_t i = 0; ops && i < ops->n_opsets; i++) {
    aot_ext_kernels_t ext;
    get_extension(&ops->opsets[i], AOT_EXT_KERNELS, &ext, sizeof ext);
    for (uint64_t k = 0; k < ext.n_kernels; k++) {
      if (!aot_str_eq(ext.kernels[k]->op, name)) continue;
      if (out_opset) *out_opset = ops->opsets[i].self;
      return ext.kernels[k];
    }
  }
  return NULL;
}

aot_str_t aoth_ops_kernel_at(const aoth_ops_t *ops, uint64_t begin, uint64_t address) {
  aot_str_t op = {NULL, 0};
  for (uint32_t i = 0; ops && i < ops->n_opsets; i++) {
    aot_ext_kernels_t ext;
    get_extension(&ops->opsets[i], AOT_EXT_KERNELS, &ext, sizeof ext);
    for (uint64_t k = 0; k < ext.n_kernels; k++) {
      uintptr_t entry;
      memcpy(&entry, &ext.kernels[k]->run, sizeof entry); /* a function's address, as POSIX has it */
      if (entry < begin || entry > address) continue;
      begin = entry;
      op = ext.kernels[k]->op;
    }
  }
  return op;
}

aot_status_t aoth_ops_derivatives(const aoth_ops_t *ops, kit_arena_t *arena, const aot_derivative_t *const **out,
                                  uint64_t *out_n) {
  const uint32_t n_opsets = ops ? ops->n_opsets : 0;
  aot_ext_derivatives_t *brought = kit_arena_alloc(arena, sizeof(void *), (n_opsets + (size_t)1) * sizeof *brought);
  if (!brought) return AOT_E_EXHAUSTED;
  uint64_t n = 0, at = 0;
  for (uint32_t i = 0; i < n_opsets; i++) {
    get_extension(&ops->opsets[i], AOT_EXT_DERIVATIVE, &brought[i], sizeof *brought);
    n += brought[i].n_derivatives;
  }
  const aot_derivative_t **all = kit_arena_alloc(arena, sizeof(void *), (size_t)(n + 1) * sizeof *all);
  if (!all) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n_opsets; i++)
    for (uint64_t k = 0; k < brought[i].n_derivatives; k++) all[at++] = brought[i].derivatives[k];
  AOT_ASSERT(at == n);
  *out = all;
  *out_n = n;
  return AOT_OK;
}

aot_status_t aoth_ops_add(aoth_ops_t *ops, const aot_opset_t *opset, const char *name, aoth_sink_t *sink) {
  aoth_opset_ref_t ref = {.self = opset, .name = name};
  if (aot_import(&ref.table, sizeof ref.table, opset) != AOT_OK) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "ops.too-new", "the opset's table is made for a newer host");
    return AOT_E_TOO_NEW;
  }
  aoth_opset_ref_t *opsets = kit_grow(ops->opsets, &ops->opsets_capacity, (uint64_t)ops->n_opsets + 1, sizeof *opsets);
  if (!opsets) return AOT_E_EXHAUSTED;
  ops->opsets = opsets;
  if (!make_room(ops, ops->n + ref.table.n_ops)) return AOT_E_EXHAUSTED;
  ops->opsets[ops->n_opsets++] = ref;
  const uint32_t before = ops->n;
  aot_status_t status = AOT_OK;
  for (uint64_t i = 0; status == AOT_OK && i < ref.table.n_ops; i++)
    status = add_one(ops, ref.table.ops[i], (uint32_t)i, sink);
  if (status == AOT_OK) return AOT_OK;
  ops->n = before; /* all of it or nothing */
  ops->n_opsets--;
  kit_map_clear(&ops->by_name);
  for (uint32_t id = 1; id < ops->n; id++) kit_map_add(&ops->by_name, name_hash(ops->entries[id]->desc.name), id);
  return status;
}

uint32_t aoth_ops_count(const aoth_ops_t *ops) { return ops ? ops->n : 1; }

const aot_op_desc_t *aoth_ops_desc(const aoth_ops_t *ops, aot_op_t op) {
  return ops && op.id && op.id < ops->n ? &ops->entries[op.id]->desc : NULL;
}

const aoth_opset_ref_t *aoth_ops_owner(const aoth_ops_t *ops, uint32_t op, uint32_t *out_local) {
  AOT_ASSERT(op != AOT_NO_ID && op < ops->n && ops->entries[op]->opset < ops->n_opsets);
  *out_local = ops->entries[op]->local;
  return &ops->opsets[ops->entries[op]->opset];
}

/* ---- what a name was meant to be ---- */

/* "aten.add.Tensor": space "aten", base "aten.add", word "add", overload "Tensor". */
typedef struct op_name {
  aot_str_t space, base, word, overload;
} op_name_t;

static op_name_t split_name(aot_str_t name) {
  const char *first = memchr(name.data, '.', (size_t)name.size), *last = first;
  for (const char *c = first; c && c < name.data + name.size; c++)
    if (*c == '.') last = c;
  const char *word = first ? first + 1 : name.data, *end = last != first ? last : name.data + name.size;
  op_name_t n = {{name.data, (uint64_t)(word - name.data)},
                 {name.data, (uint64_t)(end - name.data)},
                 {word, (uint64_t)(end - word)},
                 {NULL, 0}};
  if (last != first) n.overload = (aot_str_t){last + 1, (uint64_t)(name.data + name.size - last - 1)};
  return n;
}

/* Among the overloads of one base: the overload requested, else default, else the first. */
static aot_str_t best_overload(const op_name_t *names, const aoth_ops_t *ops, aot_str_t base, aot_str_t overload) {
  aot_str_t best = {NULL, 0};
  int rank = 0;
  for (uint32_t i = 1; i < ops->n; i++) {
    if (!aot_str_eq(names[i].base, base)) continue;
    const int r = aot_str_eq(names[i].overload, overload)             ? 3
                  : aot_str_eq(names[i].overload, aot_str("default")) ? 2
                                                                      : 1;
    if (r > rank) {
      rank = r;
      best = ops->entries[i]->desc.name;
    }
  }
  return best;
}

/* The similar word among the operators of its namespace, or of all when it has none. Whole names are not compared: what
 * all of them share ("aten.", ".default") would make everything near. Returns the operator or 0. */
static uint32_t similar_word(const op_name_t *names, uint32_t n, const op_name_t *wanted) {
  aot_str_t *words = malloc(n * sizeof *words);
  uint32_t *ids = malloc(n * sizeof *ids), n_words = 0, found = 0;
  for (uint32_t i = 1; words && ids && i < n; i++) {
    if (wanted->space.size && !aot_str_eq(wanted->space, names[i].space)) continue;
    ids[n_words] = i;
    words[n_words++] = names[i].word;
  }
  const int near = n_words ? kit_nearest(wanted->word, words, n_words) : -1;
  if (near >= 0) found = ids[near];
  free(words);
  free(ids);
  return found;
}

/* Another overload of it, then the same word in another namespace, then a similar word. */
int aoth_ops_nearest(const aoth_ops_t *ops, aot_str_t name, aot_str_t *out) {
  if (!ops || ops->n == 1 || !name.size) return 0;
  op_name_t *names = malloc(ops->n * sizeof *names);
  const op_name_t wanted = split_name(name);
  uint32_t found = 0, same_word = 0;
  if (!names) return 0;
  for (uint32_t i = 1; i < ops->n; i++) {
    names[i] = split_name(ops->entries[i]->desc.name);
    if (!found && aot_str_eq(names[i].base, wanted.base)) found = i;
    if (!same_word && aot_str_eq(names[i].word, wanted.word)) same_word = i;
  }
  if (!found) found = same_word;
  if (!found) found = similar_word(names, ops->n, &wanted);
  if (found) *out = best_overload(names, ops, names[found].base, wanted.overload);
  AOT_ASSERT(!found || out->size);
  free(names);
  return found != 0;
}
