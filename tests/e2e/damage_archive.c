/* damage_archive IN OUT MEMBER DAMAGE: a copy of a model archive in which one member is not what it was. The copy is a
 * sound ZIP archive otherwise, so that the importer gets as far as that member. MEMBER is the end of its name.
 *
 *   drop             it is left out            cut N            its first N bytes
 *   sub OLD NEW      the first OLD is NEW      sub-all OLD NEW  every OLD is NEW
 *   file F           the bytes of file F       sum              its checksum is wrong
 *   rename NEW       another name (whole)      twice            it is there twice
 *   nosum            its checksum is 0: none was computed
 *
 * Reads stored members only, which is what PyTorch writes; data starts at multiples of 64 bytes, as PyTorch has it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct text {
  unsigned char *data;
  size_t size;
} text_t;

typedef struct member {
  text_t name, data;
  int wrong_sum, no_sum;
} member_t;

enum { LOCAL = 30, ENTRY = 46, END = 22, ALIGN = 64 };

static void die(const char *what, const char *which) {
  fprintf(stderr, "damage_archive: %s%s%s\n", what, which ? " " : "", which ? which : "");
  exit(2);
}

static text_t text_new(const void *data, size_t size) {
  text_t t = {malloc(size + 1), size};
  if (!t.data) die("no memory", NULL);
  if (size) memcpy(t.data, data, size);
  t.data[size] = 0;
  return t;
}

static text_t read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  text_t t;
  long size = 0;
  if (!f || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0) die("cannot read", path);
  t = (text_t){calloc(1, (size_t)size + 1), (size_t)size};
  if (!t.data || fread(t.data, 1, t.size, f) != t.size) die("cannot read", path);
  fclose(f);
  return t;
}

static uint32_t get(const unsigned char *p, int nbytes) {
  uint32_t v = 0;
  while (nbytes-- > 0) v = v << 8 | p[nbytes];
  return v;
}

static unsigned char *put(unsigned char *p, int nbytes, size_t v) {
  for (; nbytes-- > 0; v >>= 8) *p++ = (unsigned char)v;
  return p;
}

static member_t *read_members(const text_t *zip, size_t *out_n) {
  size_t end = zip->size < END ? 0 : zip->size - END;
  while (end > 0 && memcmp(zip->data + end, "PK\5\6", 4) != 0) end--;
  if (end == 0) die("this is not an archive", NULL);
  const unsigned char *p = zip->data + get(zip->data + end + 16, 4);
  member_t *m = calloc(*out_n = get(zip->data + end + 10, 2), sizeof *m);
  if (!m) die("no memory", NULL);
  for (size_t i = 0; i < *out_n; i++, p += ENTRY + get(p + 28, 2) + get(p + 30, 2) + get(p + 32, 2)) {
    const unsigned char *local = zip->data + get(p + 42, 4);
    if (get(p + 10, 2) != 0) die("a member is compressed", NULL);
    m[i].name = text_new(p + ENTRY, get(p + 28, 2));
    m[i].data = text_new(local + LOCAL + get(local + 26, 2) + get(local + 28, 2), get(p + 24, 4));
  }
  return m;
}

/* Both kinds of header have these in common, from "version needed" to "length of the extra field". */
static unsigned char *put_common(unsigned char *p, const member_t *m, size_t n_extra) {
  /* version, flags, stored, 1980-01-01 */
  p = put(p, 2, 20), p = put(p, 2, 0), p = put(p, 2, 0), p = put(p, 4, 0x210000);
  p = put(p, 4, m->no_sum ? 0 : crc32(0, m->data.data, (uInt)m->data.size) ^ (m->wrong_sum ? 1u : 0u));
  p = put(p, 4, m->data.size), p = put(p, 4, m->data.size);
  p = put(p, 2, m->name.size);
  return put(p, 2, n_extra);
}

static void write_members(const char *path, const member_t *m, size_t n) {
  static const unsigned char zeros[ALIGN + 4];
  unsigned char head[ENTRY], *p;
  FILE *f = fopen(path, "wb");
  size_t *at = calloc(n + 1, sizeof *at), directory;
  if (!f || !at) die("cannot write", path);
  for (size_t i = 0; i < n; i++) {
    at[i] = (size_t)ftell(f);
    size_t n_extra = 4 + (ALIGN - (at[i] + LOCAL + m[i].name.size + 4) % ALIGN) % ALIGN;
    p = put_common(put(head, 4, 0x04034b50), &m[i], n_extra);
    fwrite(head, 1, (size_t)(p - head), f);
    fwrite(m[i].name.data, 1, m[i].name.size, f);
    put(put(head, 2, 0x4246), 2, n_extra - 4); /* PyTorch's padding field */
    fwrite(head, 1, 4, f);
    fwrite(zeros, 1, n_extra - 4, f);
    fwrite(m[i].data.data, 1, m[i].data.size, f);
  }
  directory = (size_t)ftell(f);
  for (size_t i = 0; i < n; i++) {
    p = put_common(put(put(head, 4, 0x02014b50), 2, 20), &m[i], 0);
    p = put(p, 2, 0), p = put(p, 2, 0), p = put(p, 2, 0), p = put(p, 4, 0); /* comment, disk, attributes */
    p = put(p, 4, at[i]);
    fwrite(head, 1, (size_t)(p - head), f);
    fwrite(m[i].name.data, 1, m[i].name.size, f);
  }
  p = put(put(put(head, 4, 0x06054b50), 2, 0), 2, 0);
  p = put(put(p, 2, n), 2, n);
  p = put(put(p, 4, (size_t)ftell(f) - directory), 4, directory);
  p = put(p, 2, 0);
  fwrite(head, 1, (size_t)(p - head), f);
  free(at);
  if (ferror(f) || fclose(f) != 0) die("cannot write", path);
}

/* Answers how often OLD was there. */
static size_t substitute(text_t *t, const char *old, const char *new, size_t most) {
  size_t n_old = strlen(old), n_new = strlen(new), n = 0, n_out = 0;
  text_t out = {calloc(1, t->size * (n_new + 1) / (n_old ? n_old : 1) + t->size + n_new + 1), 0};
  if (!out.data || n_old == 0) die("nothing to substitute", NULL);
  for (size_t i = 0; i < t->size;) {
    if (n < most && t->size - i >= n_old && memcmp(t->data + i, old, n_old) == 0) {
      memcpy(out.data + n_out, new, n_new);
      n_out += n_new, i += n_old, n++;
    } else {
      out.data[n_out++] = t->data[i++];
    }
  }
  free(t->data);
  *t = (text_t){out.data, n_out};
  return n;
}

static int ends_with(const text_t *t, const char *end) {
  size_t n = strlen(end);
  return t->size >= n && memcmp(t->data + t->size - n, end, n) == 0;
}

int main(int argc, char **argv) {
  if (argc < 5) die("usage: damage_archive IN OUT MEMBER DAMAGE [ARGUMENTS]", NULL);
  const char *damage = argv[4], *a = argc > 5 ? argv[5] : "", *b = argc > 6 ? argv[6] : "";
  text_t zip = read_file(argv[1]);
  size_t n, i = 0;
  member_t *m = read_members(&zip, &n);
  while (i < n && !ends_with(&m[i].name, argv[3])) i++;
  if (i == n) die("there is no member", argv[3]);
  text_t name = m[i].name, data = m[i].data;
  int twice = strcmp(damage, "twice") == 0;
  if (strcmp(damage, "drop") == 0) {
    memmove(m + i, m + i + 1, (--n - i) * sizeof *m);
    free(name.data), free(data.data);
  } else if (strcmp(damage, "cut") == 0) {
    if ((size_t)atol(a) >= data.size) die("it is not longer than that:", argv[3]);
    m[i].data.size = (size_t)atol(a);
  } else if (strcmp(damage, "sub") == 0 || strcmp(damage, "sub-all") == 0) {
    if (substitute(&m[i].data, a, b, damage[3] ? SIZE_MAX : 1) == 0) die("it does not contain", a);
  } else if (strcmp(damage, "file") == 0) {
    m[i].data = read_file(a);
    free(data.data);
  } else if (strcmp(damage, "nosum") == 0) {
    m[i].no_sum = 1;
  } else if (strcmp(damage, "sum") == 0) {
    m[i].wrong_sum = 1;
  } else if (strcmp(damage, "rename") == 0) {
    m[i].name = text_new(a, strlen(a));
    free(name.data);
  } else if (twice) {
    if (!(m = realloc(m, (n + 1) * sizeof *m))) die("no memory", NULL);
    m[n] = (member_t){.name = text_new(name.data, name.size), .data = text_new(data.data, data.size)};
    n++;
  } else {
    die("there is no damage", damage);
  }
  write_members(argv[2], m, n);
  for (i = 0; i < n; i++) free(m[i].name.data), free(m[i].data.data);
  free(m), free(zip.data);
  return 0;
}
