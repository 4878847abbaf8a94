/* zip_directory.c - see zip_directory.h. */
#include "zip_directory.h"
#include "checksums.h"
#include <string.h>
#include <zlib.h>

#define END_SIZE 22u       /* end of central directory record without its comment */
#define END64_SIZE 56u     /* ZIP64 end record */
#define LOCATOR64_SIZE 20u /* ZIP64 end record locator */
#define ENTRY_SIZE 46u
#define LOCAL_SIZE 30u
#define DEFLATE_MOST 1040u /* no deflate stream grows by more than about 1032 */

typedef struct bytes {
  const uint8_t *data;
  uint64_t size;
  uint64_t at; /* in the user's file */
  const char *label;
} bytes_t;

typedef struct directory {
  uint64_t at, size, n;
} directory_t;

static uint32_t u16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t u32(const uint8_t *p) { return u16(p) | u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32; }
static int is_sig(const uint8_t *p, int a, int b) { return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b; }
static int fits(const bytes_t *b, uint64_t at, uint64_t n) { return at <= b->size && n <= b->size - at; }

static aot_status_t bad(p2_env_t *e, const bytes_t *b, uint64_t at, const char *what) {
  p2_fail(e, "import-pt2.bad-zip", "%s: %s at byte %llu", b->label, what, (unsigned long long)(b->at + at));
  p2_hint(e, "the file is damaged or was cut short: copy or export it again");
  p2_byte(e, b->at + at);
  return AOT_E_INVALID;
}

/* The end record is the last thing in the file but for a comment of at most 64 KiB: search backward for it. */
static aot_status_t find_end(p2_env_t *e, const bytes_t *b, uint64_t *out) {
  uint64_t at, lowest;
  if (b->size < 4 || !is_sig(b->data, 3, 4)) {
    if (b->size >= END_SIZE && is_sig(b->data, 5, 6)) {
      *out = 0;
      return AOT_OK;
    }
    p2_fail(e, "import-pt2.not-zip", "%s is not a ZIP archive: it %s", b->label,
            b->size < 4 ? "holds fewer than 4 bytes" : "does not start with the bytes PK\\3\\4");
    p2_hint(e, "a model file is what torch.export.save writes");
    return AOT_E_INVALID;
  }
  if (b->size >= END_SIZE) {
    lowest = b->size > END_SIZE + 65535u ? b->size - END_SIZE - 65535u : 0;
    for (at = b->size - END_SIZE + 1; at-- > lowest;)
      if (is_sig(b->data + at, 5, 6) && at + END_SIZE + u16(b->data + at + 20) <= b->size) {
        *out = at;
        return AOT_OK;
      }
  }
  p2_fail(e, "import-pt2.truncated", "%s: the ZIP end record is missing; the file ends after %llu bytes", b->label,
          (unsigned long long)b->size);
  p2_hint(e, "the file was cut short: copy or export it again");
  p2_byte(e, b->at + b->size);
  return AOT_E_INVALID;
}

static aot_status_t find_directory(p2_env_t *e, const bytes_t *b, directory_t *out) {
  uint64_t end = 0, end64;
  const uint8_t *p;
  AOT_TRY(find_end(e, b, &end));
  p = b->data + end;
  out->n = u16(p + 10);
  out->size = u32(p + 12);
  out->at = u32(p + 16);
  if (end >= LOCATOR64_SIZE && is_sig(p - LOCATOR64_SIZE, 6, 7)) {
    end64 = u64(p - LOCATOR64_SIZE + 8);
    if (!fits(b, end64, END64_SIZE) || !is_sig(b->data + end64, 6, 6))
      return bad(e, b, end - LOCATOR64_SIZE, "the ZIP64 locator points to no ZIP64 end record");
    p = b->data + end64;
    out->n = u64(p + 32);
    out->size = u64(p + 40);
    out->at = u64(p + 48);
  }
  if (!fits(b, out->at, out->size)) return bad(e, b, end, "the central directory lies outside the file");
  if (out->n > out->size / ENTRY_SIZE) return bad(e, b, end, "the central directory is smaller than its entry count");
  return AOT_OK;
}

/* Sizes of 4 GiB and more are in the ZIP64 extra field: only the saturated ones, in this order. */
static aot_status_t read_zip64(p2_env_t *e, const bytes_t *b, uint64_t at, uint64_t size, uint64_t *packed,
                               uint64_t *nbytes, uint64_t *local) {
  uint64_t *saturated[3];
  uint64_t end = at + size, field_end;
  int i;
  saturated[0] = nbytes, saturated[1] = packed, saturated[2] = local;
  while (end - at >= 4) {
    uint32_t id = u16(b->data + at), n = u16(b->data + at + 2);
    at += 4;
    if (n > end - at) return bad(e, b, at, "an extra field is longer than its entry");
    field_end = at + n;
    for (i = 0; id == 1 && i < 3; i++) {
      if (*saturated[i] != UINT32_MAX) continue;
      if (field_end - at < 8) return bad(e, b, at, "a ZIP64 extra field is too short");
      *saturated[i] = u64(b->data + at);
      at += 8;
    }
    at = field_end;
  }
  return AOT_OK;
}

/* The entry's data position comes from the local header, whose own name and padding differ from the directory's. */
static aot_status_t read_entry(p2_env_t *e, const bytes_t *b, uint64_t at, const directory_t *dir, p2_member_t *m,
                               uint64_t *out_next) {
  const uint8_t *p = b->data + at;
  uint64_t end = dir->at + dir->size, n_name, n_extra, local;
  if (end - at < ENTRY_SIZE || !is_sig(p, 1, 2)) return bad(e, b, at, "a central directory entry is damaged");
  n_name = u16(p + 28);
  n_extra = u16(p + 30);
  *out_next = at + ENTRY_SIZE + n_name + n_extra + u16(p + 32);
  if (*out_next > end) return bad(e, b, at, "a central directory entry is longer than the directory");
  m->name.data = (const char *)p + ENTRY_SIZE;
  m->name.size = n_name;
  m->method = u16(p + 10);
  m->crc = u32(p + 16);
  m->packed = u32(p + 20);
  m->nbytes = u32(p + 24);
  local = u32(p + 42);
  AOT_TRY(read_zip64(e, b, at + ENTRY_SIZE + n_name, n_extra, &m->packed, &m->nbytes, &local));
  if (u16(p + 8) & 1u) return bad(e, b, at, "a member is encrypted, which is not supported");
  if (m->method != 0 && m->method != 8) return bad(e, b, at, "a member is neither stored nor deflated");
  if (!fits(b, local, LOCAL_SIZE) || !is_sig(b->data + local, 3, 4))
    return bad(e, b, at, "an entry has no local header");
  local += LOCAL_SIZE + u16(b->data + local + 26) + u16(b->data + local + 28);
  if (!fits(b, local, m->packed)) return bad(e, b, at, "a member's data lies outside the file");
  if (m->method == 0 && m->packed != m->nbytes) return bad(e, b, at, "a stored member has two sizes");
  m->data = b->data + local;
  m->at = b->at + local;
  return AOT_OK;
}

/* PyTorch puts everything under one folder named after the file; flat archives have none. */
static aot_str_t common_root(const p2_member_t *m, uint32_t n) {
  aot_str_t root = {NULL, 0};
  const char *slash;
  uint32_t i;
  if (n == 0 || !(slash = memchr(m[0].name.data, '/', (size_t)m[0].name.size))) return root;
  root.data = m[0].name.data;
  root.size = (uint64_t)(slash - root.data);
  for (i = 1; i < n; i++)
    if (m[i].name.size <= root.size || m[i].name.data[root.size] != '/' ||
        memcmp(m[i].name.data, root.data, (size_t)root.size) != 0) {
      root.size = 0;
      break;
    }
  return root;
}

static aot_status_t index_members(p2_env_t *e, const bytes_t *b, p2_zip_t *z) {
  uint32_t i;
  z->root = common_root(z->members, z->n_members);
  for (i = 0; i < z->n_members; i++) {
    p2_member_t *m = &z->members[i];
    aot_status_t status;
    if (z->root.size) {
      m->name.data += z->root.size + 1;
      m->name.size -= z->root.size + 1;
    }
    status = p2_names_add(e, &z->index, m->name, i, NULL);
    if (status == AOT_E_EXISTS) {
      p2_fail(e, "import-pt2.duplicate-member", "%s: two members are named '%.*s'", b->label, P2_SHOW(m->name));
      p2_byte(e, m->at);
      return AOT_E_INVALID;
    }
    AOT_TRY(status);
  }
  return AOT_OK;
}

aot_status_t p2_zip_open(p2_env_t *e, const char *label, const void *bytes, uint64_t nbytes, uint64_t at,
                         p2_zip_t *out) {
  bytes_t b;
  directory_t dir;
  uint64_t i, next;
  memset(out, 0, sizeof *out);
  b.data = bytes, b.size = nbytes, b.at = at, b.label = label;
  AOT_TRY(find_directory(e, &b, &dir));
  if (dir.n > UINT32_MAX / 4) return bad(e, &b, dir.at, "the archive has too many members");
  AOT_TRY(P2_NEW(e, P2_SCRATCH, dir.n, &out->members));
  for (i = 0, next = dir.at; i < dir.n; i++) {
    p2_member_t *m = &out->members[out->n_members];
    memset(m, 0, sizeof *m);
    AOT_TRY(read_entry(e, &b, next, &dir, m, &next));
    if (m->name.size && m->name.data[m->name.size - 1] != '/') out->n_members++; /* folders hold nothing */
  }
  return index_members(e, &b, out);
}

p2_member_t *p2_zip_find(const p2_zip_t *z, aot_str_t name) {
  uint32_t i = p2_names_find(&z->index, name);
  return i == P2_NO_ENTRY ? NULL : &z->members[i];
}

static aot_status_t damaged(p2_env_t *e, const p2_member_t *m, const char *how) {
  p2_fail(e, "import-pt2.damaged-member", "member '%.*s' at byte %llu is damaged: %s", P2_SHOW(m->name),
          (unsigned long long)m->at, how);
  p2_hint(e, "the file was changed after it was written: copy or export it again");
  p2_byte(e, m->at);
  return AOT_E_INVALID;
}

/* zlib counts in 32 bits: feed both sides in pieces. */
static aot_status_t inflate_member(p2_env_t *e, const p2_member_t *m, uint8_t *out) {
  z_stream z;
  uint64_t in = 0, done = 0;
  int result = Z_OK;
  memset(&z, 0, sizeof z);
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return damaged(e, m, "zlib cannot start");
  while (result == Z_OK) {
    uint64_t in_left = m->packed - in, out_left = m->nbytes - done;
    uint8_t none;
    z.next_in = (Bytef *)(uintptr_t)(m->data + in); /* zlib's own type lacks const */
    z.avail_in = (uInt)(in_left > (1u << 30) ? (1u << 30) : in_left);
    z.next_out = out_left ? out + done : &none;
    z.avail_out = (uInt)(out_left > (1u << 30) ? (1u << 30) : out_left);
    in_left = z.avail_in, out_left = z.avail_out;
    result = inflate(&z, Z_NO_FLUSH);
    in += in_left - z.avail_in;
    done += out_left - z.avail_out;
    if (result == Z_OK && in_left == z.avail_in && out_left == z.avail_out) break; /* no progress */
  }
  inflateEnd(&z);
  if (result != Z_STREAM_END) return damaged(e, m, "its deflate stream is broken");
  if (done != m->nbytes) return damaged(e, m, "its deflate stream has another length than the directory says");
  return AOT_OK;
}

aot_status_t p2_zip_content(p2_env_t *e, p2_member_t *m, uint64_t align, const uint8_t **out) {
  uint8_t *copy;
  if (!m->content || ((uintptr_t)m->content & (align - 1)) != 0) {
    const uint8_t *from = m->content ? m->content : m->method == 0 ? m->data : NULL;
    if (from && (m->nbytes == 0 || ((uintptr_t)from & (align - 1)) == 0)) {
      m->content = from;
    } else {
      if (m->method != 0 && m->nbytes / DEFLATE_MOST > m->packed)
        return damaged(e, m, "the directory promises more bytes than deflate can give");
      AOT_TRY(p2_alloc(e, P2_KEEP, 64, m->nbytes, 1, (void **)&copy));
      if (from) memcpy(copy, from, (size_t)m->nbytes);
      else AOT_TRY(inflate_member(e, m, copy));
      m->content = copy;
    }
  }
  if (m->crc != 0 && !m->is_checked && p2_checksum(m->content, m->nbytes) != m->crc)
    return damaged(e, m, "its checksum does not agree");
  m->is_checked = 1;
  *out = m->content;
  return AOT_OK;
}
