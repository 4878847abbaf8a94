#include "kit/base/geometry.h"
#include <device/guarded.h>

#include <aot/assert.h>
#include <aot/inline.h>
#include <device/host_device.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD_PAGES 16 /* address space, not memory: what misses by a row of a matrix still traps there */

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t guard_size(void) { return GUARD_PAGES * page_size(); }

int aoth_guarded_map(uint64_t nbytes, aoth_guarded_t *out) {
  const size_t page = page_size(), guard = guard_size();
  const size_t aligned = (size_t)(nbytes + AOTH_HOST_ALIGN - 1) / AOTH_HOST_ALIGN * AOTH_HOST_ALIGN;
  const size_t body = (aligned + page) / page * page; /* also of nothing, a page */
  if (nbytes > SIZE_MAX / 4) return 0;
  char *map = mmap(NULL, body + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 0;
  *out = (aoth_guarded_t){.nbytes = nbytes, .begin = map + guard, .end = map + guard + body};
  out->data = out->end - aligned;
  AOT_ASSERT(out->begin <= out->data && out->data + nbytes <= out->end && (uintptr_t)out->data % AOTH_HOST_ALIGN == 0);
  if (mprotect(out->begin, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, body + 2 * guard);
    return 0;
  }
  aoth_poison(out->begin, out->end);
  return 1;
}

void aoth_guarded_unmap(const aoth_guarded_t *m) {
  munmap(m->begin - guard_size(), (size_t)(m->end - m->begin) + 2 * guard_size());
}

int aoth_guarded_where(const aoth_guarded_t *m, uint64_t address, kit_text_t *out) {
  const uint64_t data = (uintptr_t)m->data, end = data + m->nbytes;
  if (address < (uintptr_t)m->begin - guard_size() || address >= (uintptr_t)m->end + guard_size()) return 0;
  if (address < data) kit_text_f(out, "%llu bytes before", (unsigned long long)(data - address));
  else if (address >= end) kit_text_f(out, "%llu bytes behind the end of", (unsigned long long)(address - end));
  else kit_text_f(out, "byte %llu of", (unsigned long long)(address - data));
  return 1;
}

/* ---- poison ---- */

static char poison_at(const char *at) { return (uintptr_t)at & 1 ? 0x7f : (char)0xfb; }

void aoth_poison(char *begin, const char *end) {
  for (char *at = begin; at < end; at++) *at = poison_at(at);
}

char *aoth_first_written(char *begin, const char *end) {
  while (begin < end && *begin == poison_at(begin)) begin++;
  return begin;
}

/* How many elements of poison in a row are no accident. */
static uint64_t least_row(int32_t dtype, uint64_t size) {
  const int is_telling = dtype == AOT_F16 || dtype == AOT_BF16 || dtype == AOT_BOOL || size >= 4;
  return is_telling ? 1 : 8 / size;
}

uint64_t aoth_unwritten(const aot_tensor_t *t, uint64_t *out_first) {
  const uint64_t size = aot_dtype_size(t->dtype), least = size ? least_row(t->dtype, size) : 0;
  int64_t index[AOT_MAX_RANK] = {0}, place = t->offset;
  uint64_t numel = 1, found = 0, row = 0;
  if (!t->data || !size || t->rank < 0 || t->rank > AOT_MAX_RANK) return 0;
  for (int32_t d = 0; d < t->rank; d++) numel *= (uint64_t)t->sizes[d];
  for (uint64_t i = 0; i < numel; i++, tn_next(t->rank, t->sizes, index, 1, &t->strides, &place)) {
    char *at = (char *)t->data + place * (int64_t)size;
    row = aoth_first_written(at, at + size) == at + size ? row + 1 : 0;
    if (row < least) continue;
    if (!found) *out_first = i + 1 - least;
    found += row == least ? least : 1;
  }
  return found;
}
