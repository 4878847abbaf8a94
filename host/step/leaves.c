#include <step/leaves.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <step/sizes.h>
#include <stdlib.h>
#include <string.h>

struct aoth_leaf_name {
  int32_t role;
  uint32_t leaf;
  aot_str_t name;
};

aot_str_t aoth_leaf_name(const aoth_leaf_t *leaf) {
  return leaf->info.n_names ? leaf->info.names[0] : aot_str("(unnamed)");
}

static int has_storage(const aoth_leaf_t *f) { return f->info.role != AOT_ROLE_USER_INPUT; }

/* Geometry of a leaf that is stored with the model: no symbols, and inside the bytes that the file has. */
static aot_status_t check_stored(const aoth_leaves_t *l, aoth_leaf_t *f) {
  aoth_sizes_t none = {0};
  aot_str_t name = aoth_leaf_name(f);
  char what[160];
  snprintf(what, sizeof what, "tensor %.*s", (int)(name.size > 120 ? 120 : name.size), name.data);
  for (int32_t d = 0; d < f->info.type.rank; d++) {
    if (!AOT_DIM_IS_SYM(f->info.type.sizes[d])) continue;
    aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, NULL, "run.symbolic-leaf", "%s has a symbolic size", what);
    return AOT_E_CONTRACT;
  }
  AOT_TRY(aoth_sizes_tensor(&none, l->prog, &f->info.type, what, l->sink, &f->tensor));
  if (!f->info.data || f->info.nbytes >= f->tensor.nbytes) {
    if (f->info.data) f->tensor.nbytes = f->info.nbytes;
    return AOT_OK;
  }
  aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, NULL, "run.short-leaf",
                   "%s needs %llu bytes of storage, but the model holds %llu", what,
                   (unsigned long long)f->tensor.nbytes, (unsigned long long)f->info.nbytes);
  return AOT_E_INVALID;
}

static aot_status_t read_leaves(aoth_leaves_t *l) {
  uint32_t n_names = 0;
  for (uint32_t i = 1; i < l->n; i++) {
    aoth_leaf_t *f = &l->leaf[i];
    f->info.struct_size = sizeof f->info;
    AOT_TRY(aoth_graph_leaf_info(l->prog, (aot_leaf_t){i}, &f->info));
    f->first = i;
    if (!has_storage(f)) {
      if (f->info.ordinal >= l->n) {
        aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, NULL, "run.ordinal", "user input number %u is out of range",
                         f->info.ordinal);
        return AOT_E_CONTRACT;
      }
      if (f->info.ordinal + 1 > l->n_inputs) l->n_inputs = f->info.ordinal + 1;
      l->input[f->info.ordinal] = i;
      continue;
    }
    AOT_TRY(check_stored(l, f));
    n_names += f->info.n_names;
  }
  for (uint32_t k = 0; k < l->n_inputs; k++) {
    if (l->input[k]) continue;
    aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, NULL, "run.ordinal",
                     "the program has no user input %u, but a later one", k);
    return AOT_E_CONTRACT;
  }
  l->n_names = n_names;
  return AOT_OK;
}

static int compare_names(const void *a, const void *b) {
  const struct aoth_leaf_name *x = a, *y = b;
  uint64_t n = x->name.size < y->name.size ? x->name.size : y->name.size;
  if (x->role != y->role) return x->role < y->role ? -1 : 1;
  int order = n ? memcmp(x->name.data, y->name.data, (size_t)n) : 0;
  if (order) return order;
  return x->name.size < y->name.size ? -1 : x->name.size > y->name.size;
}

static aot_status_t index_names(aoth_leaves_t *l) {
  uint32_t n = 0;
  l->names = malloc(((size_t)l->n_names + 1) * sizeof *l->names);
  if (!l->names)
    return aoth_sink_no_memory(l->sink, NULL, "run.memory", "for %s: %llu bytes were asked for", "the names of leaves",
                               (unsigned long long)(l->n_names * sizeof *l->names));
  for (uint32_t i = 1; i < l->n; i++) {
    const aot_leaf_info_t *f = &l->leaf[i].info;
    for (uint32_t k = 0; has_storage(&l->leaf[i]) && k < f->n_names; k++)
      l->names[n++] = (struct aoth_leaf_name){f->role, i, f->names[k]};
  }
  qsort(l->names, n, sizeof *l->names, compare_names);
  return AOT_OK;
}

struct place {
  const void *data;
  uint64_t nbytes;
  uint32_t leaf;
};
static int compare_places(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
  if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? -1 : 1;
  return x->leaf < y->leaf ? -1 : 1;
}

/* Leaves that stand over the same bytes of the model file have one storage, the first's. */
static aot_status_t share_storages(aoth_leaves_t *l) {
  struct place *places = malloc(((size_t)l->n + 1) * sizeof *places);
  uint32_t n = 0;
  if (!places)
    return aoth_sink_no_memory(l->sink, NULL, "run.memory", "for %s: %llu bytes were asked for",
                               "the storages of leaves", (unsigned long long)(l->n * sizeof *places));
  for (uint32_t i = 1; i < l->n; i++) {
    const aot_leaf_info_t *f = &l->leaf[i].info;
    if (has_storage(&l->leaf[i]) && f->data && f->nbytes) places[n++] = (struct place){f->data, f->nbytes, i};
  }
  qsort(places, n, sizeof *places, compare_places);
  for (uint32_t i = 1; i < n; i++) {
    if (places[i].data != places[i - 1].data || places[i].nbytes != places[i - 1].nbytes) continue;
    l->leaf[places[i].leaf].first = l->leaf[places[i - 1].leaf].first;
  }
  for (uint32_t i = 1; i < l->n; i++)
    if (has_storage(&l->leaf[i])) l->leaf[i].tensor.resident = &l->leaf[l->leaf[i].first].resident;
  free(places);
  return AOT_OK;
}

static aot_status_t release(aoth_leaves_t *l) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 1; i < l->n; i++) {
    const aot_status_t freed = aoth_resident_free(&l->leaf[i].resident, l->queue);
    if (status == AOT_OK) status = freed;
  }
  return status;
}

/* Contents of the model file into the memory that a leaf is to stay in. */
static aot_status_t rewrite(aoth_leaves_t *l, aoth_leaf_t *f) {
  void *to;
  AOT_TRY(aoth_resident_edit(&f->resident, l->queue, 0, &to));
  if (f->info.data) memcpy(to, f->info.data, (size_t)f->tensor.nbytes);
  else memset(to, 0, (size_t)f->tensor.nbytes);
  return AOT_OK;
}

void aoth_leaf_live(aoth_leaves_t *l, uint32_t leaf, aoth_queue_t *home) {
  if (!has_storage(&l->leaf[leaf]) || l->leaf[leaf].first != leaf) return;
  l->leaf[leaf].home = l->leaf[leaf].resident.home = home;
}

static int stays(const aoth_mirrored_buffer_t *r) { return r->is_lent || r->is_exported; }

aot_status_t aoth_leaves_reset(aoth_leaves_t *l) {
  for (uint32_t i = 1; i < l->n; i++) {
    aoth_leaf_t *f = &l->leaf[i];
    if (!has_storage(f) || f->first != i) continue;
    if (stays(&f->resident)) {
      AOT_TRY(rewrite(l, f));
      continue;
    }
    AOT_TRY(aoth_resident_free(&f->resident, l->queue));
    const uint64_t version = f->resident.version;
    f->resident =
        f->info.data ? aoth_resident_of(f->info.data, f->tensor.nbytes) : aoth_resident_zeros(f->tensor.nbytes);
    f->resident.version = version;
    f->resident.home = f->home;
  }
  return AOT_OK;
}

aot_status_t aoth_leaves_lend(aoth_leaves_t *l, uint32_t leaf, void *memory) {
  aoth_mirrored_buffer_t *r = &l->leaf[l->leaf[leaf].first].resident;
  const uint64_t nbytes = r->nbytes;
  AOT_TRY(aoth_resident_free(r, l->queue));
  const uint64_t version = r->version;
  *r = aoth_resident_lent(r->home ? r->home : l->queue, memory, nbytes);
  r->version = version;
  r->home = l->leaf[l->leaf[leaf].first].home;
  return AOT_OK;
}

aot_status_t aoth_leaves_take_back(aoth_leaves_t *l, uint32_t leaf) {
  aoth_mirrored_buffer_t *r = &l->leaf[l->leaf[leaf].first].resident, own = aoth_resident_zeros(r->nbytes);
  const void *from;
  void *to;
  if (!r->is_lent) return AOT_OK;
  own.home = r->home;
  AOT_TRY(aoth_resident_read(r, l->queue, &from));
  AOT_TRY(aoth_resident_edit(&own, l->queue, 0, &to));
  memcpy(to, from, (size_t)r->nbytes);
  own.version = r->version;
  AOT_TRY(aoth_resident_free(r, l->queue));
  *r = own;
  return AOT_OK;
}

uint64_t aoth_leaves_nbytes(const aoth_leaves_t *l) {
  uint64_t n = 0;
  for (uint32_t i = 1; i < l->n; i++)
    if (l->leaf[i].resident.owns & AOTH_ON_DEVICE) n += l->leaf[i].resident.nbytes;
  return n;
}

/* The next leaf at or after i that lives outside calls. */
static uint32_t next_stored(const aoth_leaves_t *l, uint32_t i) {
  while (i < l->n && !has_storage(&l->leaf[i])) i++;
  return i;
}

aot_status_t aoth_leaves_take(aoth_leaves_t *l, aoth_leaves_t *from) {
  uint32_t i = next_stored(l, 1), k = next_stored(from, 1);
  for (; i < l->n && k < from->n; i = next_stored(l, i + 1), k = next_stored(from, k + 1)) {
    aoth_leaf_t *to = &l->leaf[i], *was = &from->leaf[k];
    if (to->info.role != was->info.role || to->tensor.nbytes != was->tensor.nbytes) break;
    AOT_TRY(aoth_resident_free(&to->resident, l->queue));
    to->resident = was->resident;
    was->resident = (aoth_mirrored_buffer_t){.home = was->home};
    if (to->first == i && to->resident.home != to->home)
      AOT_TRY(aoth_resident_settle(&to->resident, l->queue, to->home));
  }
  if (i == l->n && k == from->n) return AOT_OK;
  aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, NULL, "run.leaves",
                   "compiled for other inputs, the program has other parameters, buffers or optimizer state");
  return AOT_E_CONTRACT;
}

aot_status_t aoth_leaves_init(aoth_leaves_t *l, aot_prog_t *prog, aoth_queue_t *queue, aoth_sink_t *sink) {
  *l = (aoth_leaves_t){.prog = prog, .queue = queue, .sink = sink, .n = aoth_graph_n_leaves(prog)};
  l->leaf = calloc((size_t)l->n + 1, sizeof *l->leaf);
  l->input = calloc((size_t)l->n + 1, sizeof *l->input);
  if (!l->leaf || !l->input)
    return aoth_sink_no_memory(l->sink, NULL, "run.memory", "for %s: %llu bytes were asked for", "the table of leaves",
                               (unsigned long long)(l->n * sizeof *l->leaf));
  AOT_TRY(read_leaves(l));
  AOT_TRY(index_names(l));
  return share_storages(l);
}

void aoth_leaves_deinit(aoth_leaves_t *l) {
  if (l->leaf) release(l);
  free(l->leaf);
  free(l->input);
  free(l->names);
  *l = (aoth_leaves_t){0};
}

uint32_t aoth_leaves_find(const aoth_leaves_t *l, int32_t role, const char *name) {
  struct aoth_leaf_name key = {role, 0, aot_str(name)};
  const struct aoth_leaf_name *hit = l->n_names ? bsearch(&key, l->names, l->n_names, sizeof key, compare_names) : NULL;
  return hit ? hit->leaf : AOT_NO_ID;
}
