#include "test_env.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct block {
  struct block *next;
  void *data;
} block_t;

static void *alloc(void *self, uint32_t arena, uint32_t align, uint64_t size) {
  test_env_t *t = self;
  block_t *b = calloc(1, sizeof *b);
  (void)arena;
  if (!b) return NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  if (posix_memalign(&b->data, align, (size_t)size)) {
    free(b);
    return NULL;
  }
  memset(b->data, 0, (size_t)size);
  b->next = t->blocks;
  t->blocks = b;
  return b->data;
}

void test_env_init(test_env_t *t) {
  memset(t, 0, sizeof *t);
  t->env.self = t;
  t->env.alloc = alloc;
}

void test_env_deinit(test_env_t *t) {
  block_t *b = t->blocks, *next;
  for (; b; b = next) {
    next = b->next;
    free(b->data);
    free(b);
  }
  t->blocks = NULL;
}

void test_env_again(test_env_t *t) { memset(&t->env.error, 0, sizeof t->env.error); }

uint8_t *test_read(test_env_t *t, const char *path, uint64_t *out_n) {
  FILE *f = fopen(path, "rb");
  uint8_t *bytes;
  long n;
  if (!f) fail_msg("%s cannot be opened", path);
  fseek(f, 0, SEEK_END);
  n = ftell(f);
  rewind(f);
  bytes = alloc(t, P2_SCRATCH, 64, (uint64_t)n + 1);
  if (fread(bytes, 1, (size_t)n, f) != (size_t)n) fail_msg("%s cannot be read", path);
  fclose(f);
  *out_n = (uint64_t)n;
  return bytes;
}

static uint8_t *put(uint8_t *p, uint64_t value, int n) {
  for (int i = 0; i < n; i++) *p++ = (uint8_t)(i < 8 ? value >> (8 * i) : 0);
  return p;
}

static uint64_t deflated(test_env_t *t, const test_member_t *m, const uint8_t **out) {
  uLong room = compressBound((uLong)m->n) + 16;
  uint8_t *packed = alloc(t, P2_SCRATCH, 16, room);
  z_stream z;
  memset(&z, 0, sizeof z);
  deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  z.next_in = (Bytef *)(uintptr_t)m->data;
  z.avail_in = (uInt)m->n;
  z.next_out = packed;
  z.avail_out = (uInt)room;
  deflate(&z, Z_FINISH);
  deflateEnd(&z);
  *out = packed;
  return z.total_out;
}

/* Local headers without sizes, as PyTorch writes them; the central directory has them. */
uint8_t *test_zip(test_env_t *t, const test_member_t *members, uint32_t n, uint64_t *out_n) {
  uint64_t room = 64, at[64], sizes[64], directory;
  const uint8_t *data[64];
  uint8_t *zip, *p;
  uint32_t i;
  assert_true(n <= 64);
  for (i = 0; i < n; i++) {
    data[i] = members[i].data;
    sizes[i] = members[i].deflate ? deflated(t, &members[i], &data[i]) : members[i].n;
    room += sizes[i] + 2 * strlen(members[i].name) + 128;
  }
  zip = p = alloc(t, P2_SCRATCH, 64, room);
  for (i = 0; i < n; i++) {
    size_t length = strlen(members[i].name);
    at[i] = (uint64_t)(p - zip);
    p = put(p, 0x04034b50, 4), p = put(p, 20, 2), p = put(p, 0x0800, 2);
    p = put(p, members[i].deflate ? 8 : 0, 2), p = put(p, 0, 4), p = put(p, 0, 12);
    p = put(p, length, 2), p = put(p, 0, 2);
    memcpy(p, members[i].name, length), p += length;
    if (sizes[i]) memcpy(p, data[i], (size_t)sizes[i]), p += sizes[i];
  }
  directory = (uint64_t)(p - zip);
  for (i = 0; i < n; i++) {
    size_t length = strlen(members[i].name);
    p = put(p, 0x02014b50, 4), p = put(p, 20, 2), p = put(p, 20, 2), p = put(p, 0x0800, 2);
    p = put(p, members[i].deflate ? 8 : 0, 2), p = put(p, 0, 4);
    p = put(p, crc32(crc32(0, NULL, 0), members[i].data, (uInt)members[i].n), 4);
    p = put(p, sizes[i], 4), p = put(p, members[i].n, 4), p = put(p, length, 2), p = put(p, 0, 12),
    p = put(p, at[i], 4);
    memcpy(p, members[i].name, length), p += length;
  }
  room = (uint64_t)(p - zip) - directory;
  p = put(p, 0x06054b50, 4), p = put(p, 0, 4), p = put(p, n, 2), p = put(p, n, 2);
  p = put(p, room, 4), p = put(p, directory, 4), p = put(p, 0, 2);
  *out_n = (uint64_t)(p - zip);
  return zip;
}
