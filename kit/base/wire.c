#include "wire.h"

#include <string.h>

#define ALIGNMENT 8u /* of every record and block */

static uint64_t nothing[32]; /* what a failed wire reads; zero, since nothing writes to empty things */

kit_wire_t kit_wire_writer(kit_text_t *out) { return (kit_wire_t){.out = out}; }

kit_wire_t kit_wire_reader(void *bytes, size_t nbytes) { return (kit_wire_t){.at = bytes, .left = nbytes}; }

static size_t padding(size_t size) { return (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT; }

static void write(kit_wire_t *w, const void *at, size_t size) {
  static const char zeros[ALIGNMENT];
  if (size) kit_text_add(w->out, at, size);
  if (padding(size)) kit_text_add(w->out, zeros, padding(size));
  w->failed |= w->out->failed;
}

/* NULL: there are not as many. */
static void *read(kit_wire_t *w, size_t size) {
  char *at = w->at;
  w->failed |= size > w->left || padding(size) > w->left - size;
  if (w->failed) return NULL;
  w->at += size + padding(size);
  w->left -= size + padding(size);
  return at;
}

void *kit_wire_record(kit_wire_t *w, const void *at, void *copy, size_t size) {
  if (w->out) {
    memcpy(copy, at, size);
    write(w, at, size);
    return copy;
  }
  void *there = read(w, size);
  return there ? there : memset(copy, 0, size);
}

void *kit_wire_block(kit_wire_t *w, const void *at, uint64_t n, size_t size) {
  if (!w->out) w->failed |= n > w->left / size;
  if (w->failed || n == 0) return nothing;
  if (!w->out) return read(w, (size_t)n * size);
  write(w, at, (size_t)n * size);
  return (void *)(uintptr_t)at; /* who writes does not change it */
}

void kit_wire_text(kit_wire_t *w, aot_str_t *text) {
  text->data = kit_wire_block(w, text->data, text->size, 1);
  if (w->failed) text->size = 0;
}

int kit_wire_done(const kit_wire_t *w) { return !w->failed && (w->out || w->left == 0); }
