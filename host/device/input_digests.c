#include <device/input_digests.h>

#include "kit/base/vector.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

/* Multiplication and rotation of eight bytes at a time: every step is invertible, so that one changed word always
 * shows. */
static uint64_t digest(const void *data, uint64_t nbytes) {
  const char *at = data;
  uint64_t d = UINT64_C(0xc4ceb9fe1a85ec53) ^ nbytes, word;
  for (; nbytes >= sizeof word; at += sizeof word, nbytes -= sizeof word) {
    memcpy(&word, at, sizeof word);
    d = (d ^ word) * UINT64_C(0xff51afd7ed558ccd);
    d = d << 29 | d >> 35;
  }
  word = 0;
  if (nbytes) memcpy(&word, at, (size_t)nbytes);
  return (d ^ word) * UINT64_C(0xff51afd7ed558ccd);
}

static int overlaps(const aot_tensor_t *a, const aot_tensor_t *b) {
  const uintptr_t begin = (uintptr_t)a->data, other = (uintptr_t)b->data;
  return b->data && begin < other + b->nbytes && other < begin + a->nbytes;
}

static int is_only_read(const aot_binding_t *b, uint64_t input) {
  const aot_tensor_t *t = &b->inputs[input];
  if (!t->data || !t->nbytes) return 0;
  for (uint64_t i = 0; i < b->n_outputs; i++)
    if (overlaps(t, &b->outputs[i])) return 0;
  return 1;
}

void aoth_input_digests_take(aoth_input_digests_t *d, const aot_binding_t *b) {
  d->n = 0;
  uint64_t *rows = kit_grow64(d->rows, &d->capacity, b->n_inputs, sizeof *rows);
  if (!rows) return;
  d->rows = rows;
  d->n = b->n_inputs;
  for (uint64_t i = 0; i < d->n; i++)
    d->rows[i] = is_only_read(b, i) ? digest(b->inputs[i].data, b->inputs[i].nbytes) : 0;
}

uint64_t aoth_input_digests_changed(const aoth_input_digests_t *d, const aot_binding_t *b) {
  AOT_ASSERT(d->n <= d->capacity);
  for (uint64_t i = 0; i < d->n && i < b->n_inputs; i++)
    if (is_only_read(b, i) && digest(b->inputs[i].data, b->inputs[i].nbytes) != d->rows[i]) return i;
  return AOTH_NO_INPUT;
}

void aoth_input_digests_deinit(aoth_input_digests_t *d) {
  free(d->rows);
  *d = (aoth_input_digests_t){0};
}
