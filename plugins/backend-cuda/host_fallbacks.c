#include "host_fallbacks.h"

#include "gpu_errors.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_NAMED = 6 }; /* operators of the warning */

typedef struct row {
  aot_str_t name;
  uint32_t n, op;
} row_t;

/* The most first. */
static int compare(const void *a, const void *b) {
  const row_t *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  return (x->op > y->op) - (x->op < y->op);
}

static uint32_t find_rows(const gc_exe_t *e, row_t *out) {
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(e->s, aot_snap_op_t, ops);
  uint32_t n = 0;
  for (uint32_t k = 0; k < e->s->ops.count; k++)
    if (e->n_on_host[k]) out[n++] = (row_t){aot_snap_text(e->s, ops[k].name), e->n_on_host[k], k};
  qsort(out, n, sizeof *out, compare);
  return n;
}

static void warn_of_nodes(const gc_exe_t *e, aot_ctx_t *ctx, const row_t *rows, uint32_t n) {
  char text[1024];
  size_t at = 0;
  uint32_t n_nodes = 0;
  for (uint32_t k = 0; k < n; k++) n_nodes += rows[k].n;
  at = (size_t)snprintf(text, sizeof text, "%u %s on the host, with copies there and back:", n_nodes,
                        n_nodes == 1 ? "node runs" : "nodes run");
  for (uint32_t k = 0; k < n && k < MOST_NAMED; k++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s %.*s (%u)", k ? "," : "",
                           rows[k].name.size < 100 ? (int)rows[k].name.size : 100, rows[k].name.data, rows[k].n);
  if (n > MOST_NAMED) snprintf(text + at, sizeof text - at, " and %u more operators", n - MOST_NAMED);
  gc_say(&e->host, ctx, AOT_SEVERITY_WARNING, "backend-cuda.host-fallbacks", text);
}

static void warn_of_waits(const gc_exe_t *e, aot_ctx_t *ctx) {
  char text[200];
  snprintf(text, sizeof text,
           "the host waits for the device at %u place%s of the program: what is next hangs on numbers that it computes",
           e->n_waits, e->n_waits == 1 ? "" : "s");
  gc_say(&e->host, ctx, AOT_SEVERITY_WARNING, "backend-cuda.waits", text);
}

aot_status_t gc_tell_fallbacks(const gc_exe_t *e, const aot_ext_report_t *r, aot_ctx_t *ctx) {
  row_t *rows = calloc((size_t)e->s->ops.count + 1, sizeof *rows);
  aot_status_t status = rows ? AOT_OK : AOT_E_EXHAUSTED;
  const uint32_t n = rows ? find_rows(e, rows) : 0;
  for (uint32_t k = 0; r && k < n && status == AOT_OK; k++) {
    char name[128];
    snprintf(name, sizeof name, "host-fallbacks/%.*s", (int)rows[k].name.size, rows[k].name.data);
    status = r->number(r, ctx, aot_str(name), rows[k].n, aot_str(""));
  }
  if (n && status == AOT_OK) warn_of_nodes(e, ctx, rows, n);
  if (e->n_waits && status == AOT_OK) warn_of_waits(e, ctx);
  free(rows);
  return status;
}
