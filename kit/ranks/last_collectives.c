#include "last_collectives.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void rn_record_begin(rn_record_t *r, const char *kind, uint64_t number, uint64_t nbytes, const char *what,
                     uint64_t now) {
  rn_record_row_t *row = &r->row[r->n++ % RN_RECORD_ROWS];
  *row = (rn_record_row_t){.number = number, .nbytes = nbytes, .begin_ns = now, .kind = kind};
  snprintf(row->what, sizeof row->what, "%s", what);
}

void rn_record_end(rn_record_t *r, uint64_t now) { r->row[(r->n - 1) % RN_RECORD_ROWS].end_ns = now; }

static void write_row(const rn_record_row_t *row, uint64_t now, FILE *out) {
  fprintf(out, "exchange %llu  %s  %llu bytes  began %.3f s before the end, ", (unsigned long long)row->number,
          row->kind, (unsigned long long)row->nbytes, (double)(now - row->begin_ns) / 1e9);
  if (row->end_ns) fprintf(out, "took %.3g ms", (double)(row->end_ns - row->begin_ns) / 1e6);
  else fprintf(out, "did not end");
  fprintf(out, "%s%s\n", row->what[0] ? "  " : "", row->what);
}

void rn_record_write(const rn_record_t *r, const char *path, uint32_t rank, const char *why, uint64_t now) {
  char name[RN_RECORD_PATH + 16];
  const uint64_t first = r->n > RN_RECORD_ROWS ? r->n - RN_RECORD_ROWS : 0;
  snprintf(name, sizeof name, "%s.%u", path, rank);
  unlink(name); /* a link under the name would be written through */
  const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
  if (!out) {
    if (fd >= 0) close(fd);
    return;
  }
  fprintf(out, "rank %u: %s\n", rank, why);
  for (uint64_t k = first; k < r->n; k++) write_row(&r->row[k % RN_RECORD_ROWS], now, out);
  fclose(out);
}
