/* The undo log of transactions: bytes, then what they are of, so that it is read from its end. */
#include "transaction.h"

#include "kit/base/vector.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  void *at; /* NULL: a storage, which moves when there are more */
  uint64_t nbytes;
  uint32_t storage;
  uint32_t depth; /* of the graph that the memory lives as long as; 0: as the schedule */
} entry_t;

static uint64_t padded(uint64_t nbytes) { return (nbytes + 15) & ~UINT64_C(15); }

static void append(lw_schedule_t *s, const void *bytes, entry_t entry) {
  lw_undo_t *u = &s->undo;
  const uint64_t size = u->size + padded(entry.nbytes) + padded(sizeof entry);
  AOT_ASSERT(u->n_open > 0 && u->size % 16 == 0 && u->size <= u->capacity);
  char *grown = kit_grow64(u->bytes, &u->capacity, size, 1);
  if (!grown) {
    s->is_incomplete = 1;
    return;
  }
  u->bytes = grown;
  memcpy(u->bytes + u->size, bytes, (size_t)entry.nbytes);
  memcpy(u->bytes + size - padded(sizeof entry), &entry, sizeof entry);
  u->size = size;
}

void lw_undo(lw_schedule_t *s, uint64_t until, uint32_t depth) {
  lw_undo_t *u = &s->undo;
  while (u->size > until) {
    entry_t entry;
    u->size -= padded(sizeof entry);
    memcpy(&entry, u->bytes + u->size, sizeof entry);
    u->size -= padded(entry.nbytes);
    AOT_ASSERT(entry.at || entry.storage < s->n_storages);
    if (entry.depth > depth) continue;
    memcpy(entry.at ? entry.at : &s->storages[entry.storage], u->bytes + u->size, (size_t)entry.nbytes);
  }
  AOT_ASSERT(u->size == until); /* an entry begins there */
}

static void save(lw_build_t *b, void *at, uint64_t nbytes, uint32_t depth) {
  if (b->out->undo.n_open) append(b->out, at, (entry_t){.at = at, .nbytes = nbytes, .depth = depth});
}

void lw_save(lw_build_t *b, void *at, uint64_t nbytes) { save(b, at, nbytes, 0); }

void lw_save_storage(lw_build_t *b, uint32_t storage) {
  lw_schedule_t *s = b->out;
  AOT_ASSERT(storage < s->n_storages);
  if (!s->undo.n_open || storage >= s->undo.n_storages) return; /* a newer one is dropped as a whole */
  append(s, &s->storages[storage], (entry_t){.nbytes = sizeof *s->storages, .storage = storage});
}

void lw_set_value(lw_build_t *b, lw_value_t *v, const lw_tensor_t *t) {
  AOT_ASSERT(v >= b->values && v <= b->values + b->n_values); /* of the graph at hand */
  const lw_tensor_t set = *t;                                 /* t may be of the value */
  save(b, &v->t, sizeof v->t, b->depth);
  v->t = set;
}
