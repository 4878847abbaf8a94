#include <process/code_of.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MOST_OF_LINE 512

typedef struct search {
  const uint64_t *addresses;
  uint32_t n, first, last; /* rows that were found; first n: none yet */
  uint64_t host;           /* an address of the host's code */
  aoth_code_of_t *out;
} search_t;

static int is_system(const char *path) {
  static const char *const names[] = {"libc.so", "libc-",    "ld-",     "libpthread", "libm.so",
                                      "libm-",   "libgcc_s", "libasan", "libtsan",    "libubsan"};
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(name, names[i], strlen(names[i])) == 0) return 1;
  return 0;
}

static uint64_t hex(const char **at) {
  uint64_t value = 0;
  for (;; ++*at) {
    const char c = **at;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return value;
    value = value << 4 | (uint64_t)digit;
  }
}

/* "55d0-55e0 r-xp 00000000 08:01 1234    /path" */
static void look_at(search_t *s, const char *line) {
  const char *at = line, *path = strchr(line, '/');
  const uint64_t begin = hex(&at);
  if (*at++ != '-') return;
  const uint64_t end = hex(&at);
  if (!path || *at != ' ' || strnlen(at, 4) < 4 || at[3] != 'x' || is_system(path)) return;
  if (s->host >= begin && s->host < end) return;
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->addresses[i] < begin || s->addresses[i] >= end) continue;
    if (i < s->first) strncpy(s->out->innermost, path, AOTH_CODE_PATH - 1);
    if (s->first == s->n || i > s->last) {
      strncpy(s->out->outermost, path, AOTH_CODE_PATH - 1);
      s->last = i;
    }
    if (i < s->first) s->first = i;
  }
}

void aoth_code_of(const uint64_t *addresses, uint32_t n, aoth_code_of_t *out) {
  void (*const here)(const uint64_t *, uint32_t, aoth_code_of_t *) = aoth_code_of;
  search_t s = {.addresses = addresses, .n = n, .first = n, .out = out};
  char block[1024], line[MOST_OF_LINE];
  size_t size = 0;
  ssize_t got;
  uintptr_t host;
  memcpy(&host, &here, sizeof host);
  s.host = host;
  memset(out, 0, sizeof *out);
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && (got = read(fd, block, sizeof block)) > 0)
    for (ssize_t i = 0; i < got; i++) {
      if (block[i] != '\n') {
        if (size + 1 < sizeof line) line[size++] = block[i];
        continue;
      }
      line[size] = 0;
      size = 0;
      look_at(&s, line);
    }
  if (fd >= 0) close(fd);
}
