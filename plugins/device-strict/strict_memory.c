#include "strict_memory.h"

#include "kit/base/vector.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

void sd_memory_init(sd_memory_t *m) {
  memset(m, 0, sizeof *m);
  m->page = (size_t)sysconf(_SC_PAGESIZE);
}

static size_t map_nbytes(const sd_memory_t *m, const sd_buffer_t *b) {
  return (size_t)(b->end - b->begin) + 2 * m->page;
}

void sd_memory_deinit(sd_memory_t *m) {
  for (size_t i = 0; i < m->n; i++) munmap(m->rows[i].begin - m->page, map_nbytes(m, &m->rows[i]));
  for (size_t i = 0; i < SD_N_FREED; i++)
    if (m->freed[i].map) munmap(m->freed[i].map, m->freed[i].nbytes);
  free(m->rows);
  memset(m, 0, sizeof *m);
}

static unsigned char poison_at(uint64_t i) { return i & 1 ? SD_POISON >> 8 : SD_POISON & 0xffu; }

void sd_poison(void *memory, uint64_t nbytes) {
  unsigned char *to = memory;
  for (uint64_t i = 0; i < nbytes; i++) to[i] = poison_at(i);
}

/* ---- rows, by address ---- */

static size_t rows_before(const sd_memory_t *m, uint64_t address) {
  size_t low = 0, high = m->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((uint64_t)(uintptr_t)m->rows[middle].data <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

const sd_buffer_t *sd_memory_before(const sd_memory_t *m, uint64_t address) {
  const size_t n = rows_before(m, address);
  return n ? &m->rows[n - 1] : NULL;
}

const sd_buffer_t *sd_memory_find(const sd_memory_t *m, uint64_t address, uint64_t nbytes) {
  const sd_buffer_t *b = sd_memory_before(m, address);
  const uint64_t at = b ? address - (uint64_t)(uintptr_t)b->data : 0;
  return b && at <= b->nbytes && nbytes <= b->nbytes - at ? b : NULL;
}

static int add_row(sd_memory_t *m, const sd_buffer_t *b) {
  sd_buffer_t *rows = kit_grow(m->rows, &m->capacity, m->n + 1, sizeof *rows);
  if (!rows) return 0;
  m->rows = rows;
  const size_t at = rows_before(m, (uint64_t)(uintptr_t)b->data);
  memmove(m->rows + at + 1, m->rows + at, (m->n - at) * sizeof *m->rows);
  m->rows[at] = *b;
  m->n++;
  m->nbytes += b->nbytes;
  return 1;
}

/* ---- alloc and free ---- */

int sd_memory_alloc(sd_memory_t *m, uint64_t nbytes, char **out) {
  if (nbytes > SIZE_MAX / 4) return 0;
  const size_t body = (size_t)round_up(round_up(nbytes, SD_ALIGN), m->page), whole = body + 2 * m->page;
  char *map = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 0;
  sd_buffer_t b = {.nbytes = nbytes, .begin = map + m->page, .end = map + m->page + body};
  b.data = b.end - round_up(nbytes, SD_ALIGN);
  int ok = sd_buffer_open(&b, 1);
  if (ok) sd_poison(b.begin, body);
  if (ok && !m->is_open) ok = sd_buffer_open(&b, 0);
  if (!ok || !add_row(m, &b)) {
    munmap(map, whole);
    return 0;
  }
  *out = b.data;
  return 1;
}

int sd_memory_adopt(sd_memory_t *m, char *pages, uint64_t nbytes) {
  const sd_buffer_t b = {.data = pages, .nbytes = nbytes, .begin = pages, .end = pages + nbytes};
  int ok = sd_buffer_open(&b, 1);
  if (ok) sd_poison(b.begin, nbytes);
  if (ok && !m->is_open) ok = sd_buffer_open(&b, 0);
  return ok && add_row(m, &b);
}

static void remove_row(sd_memory_t *m, const sd_buffer_t *b) {
  const size_t at = (size_t)(b - m->rows);
  m->nbytes -= b->nbytes;
  m->n--;
  memmove(m->rows + at, m->rows + at + 1, (m->n - at) * sizeof *m->rows);
}

void sd_memory_disown(sd_memory_t *m, const sd_buffer_t *b) {
  mmap(b->begin, (size_t)(b->end - b->begin), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  remove_row(m, b);
}

void sd_memory_free(sd_memory_t *m, const sd_buffer_t *b) {
  const size_t nbytes = map_nbytes(m, b), row = m->n_freed++ % SD_N_FREED;
  char *map = b->begin - m->page;
  if (m->freed[row].map) munmap(m->freed[row].map, m->freed[row].nbytes);
  /* the addresses stay, without memory after them */
  m->freed[row].map = mmap(map, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  m->freed[row].nbytes = nbytes;
  if (m->freed[row].map == MAP_FAILED) {
    m->freed[row].map = NULL;
    munmap(map, nbytes);
  }
  remove_row(m, b);
}

/* ---- open and close ---- */

int sd_buffer_open(const sd_buffer_t *b, int is_open) {
  return mprotect(b->begin, (size_t)(b->end - b->begin), is_open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

int sd_memory_open(sd_memory_t *m, int is_open) {
  int ok = 1;
  for (size_t i = 0; i < m->n; i++) ok &= sd_buffer_open(&m->rows[i], is_open);
  m->is_open = is_open;
  return ok;
}

/* The first byte of [at, end) that is no poison any more; `end`: none. */
static char *first_written(const sd_buffer_t *b, char *at, const char *end) {
  const uint64_t n = (uint64_t)(end - at), from = (uint64_t)(at - b->begin);
  /* The pattern repeats after two bytes: memory that equals itself two bytes further is whole if its first two are. */
  if (n > 2 && (unsigned char)at[0] == poison_at(from) && (unsigned char)at[1] == poison_at(from + 1) &&
      memcmp(at, at + 2, n - 2) == 0)
    return at + n;
  while (at < end && (unsigned char)*at == poison_at((uint64_t)(at - b->begin))) at++;
  return at;
}

const sd_buffer_t *sd_memory_overrun(const sd_memory_t *m, int64_t *out_at) {
  for (size_t i = 0; i < m->n; i++) {
    const sd_buffer_t *b = &m->rows[i];
    char *tail = b->data + b->nbytes, *after = first_written(b, tail, b->end),
         *before = first_written(b, b->begin, b->data);
    if (after == b->end && before == b->data) continue;
    *out_at = (after < b->end ? after : before) - b->data;
    sd_poison(b->begin, (uint64_t)(b->data - b->begin));
    for (char *at = tail; at < b->end; at++) *at = (char)poison_at((uint64_t)(at - b->begin));
    return b;
  }
  return NULL;
}
