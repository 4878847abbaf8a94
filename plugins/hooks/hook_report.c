#include "hook_report.h"

#include "kit/emit/emit_layout.h"

#include <aot/ext/report.h>
#include <aot/ext/saved.h>
#include <aot/inline.h>
#include <stdio.h>

static int kind_of(uint32_t held) {
  if (held & AOT_HELD_STATIC) return 2;
  if (held & AOT_HELD_INPUT) return 1;
  return held ? 3 : 0;
}

static int64_t nbytes(const em_t *e, const aot_type_t *t) { return em_numel(e, t) * (int64_t)aot_dtype_size(t->dtype); }

void hk_report_add(hk_report_t *r, em_t *e, uint32_t held, const aot_type_t *before, const aot_value_t *parts,
                   uint32_t n) {
  const int kind = kind_of(held);
  r->n_packed[kind]++;
  if (before) r->nbytes_before[kind] += nbytes(e, before);
  for (uint32_t i = 0; i < n; i++) {
    const aot_type_t t = em_type(e, em_v(parts[i]));
    r->nbytes_after[kind] += nbytes(e, &t);
  }
}

static void tell(const aot_ext_report_t *r, em_t *e, const char *name, const char *of, double value, const char *unit) {
  char text[64];
  snprintf(text, sizeof text, "%s%s%s", name, *of ? "-" : "", of);
  if (e->status == AOT_OK) e->status = r->number(r, e->ctx, aot_str(text), value, aot_str(unit));
}

/* The sums always, kinds and reasons where there are any. */
void hk_report_tell(const hk_report_t *r, em_t *e) {
  static const char *const kinds[HK_N_KINDS] = {"intermediate", "input", "static", "output"};
  static const char *const reasons[HK_N_REASONS] = {"", "dtype", "size", "no-fit", "held", "small", "layout"};
  const aot_ext_report_t *x = aot_ext(&e->host->head, AOT_EXT_REPORT);
  uint32_t n_packed = 0;
  int64_t before = 0, after = 0;
  if (!x) return;
  for (int k = 0; k < HK_N_KINDS; k++) {
    n_packed += r->n_packed[k];
    before += r->nbytes_before[k];
    after += r->nbytes_after[k];
  }
  tell(x, e, "packed", "", n_packed, "");
  tell(x, e, "bytes-before", "", (double)before, "bytes");
  tell(x, e, "bytes-after", "", (double)after, "bytes");
  for (int k = 0; k < HK_N_KINDS; k++) {
    if (!r->n_packed[k]) continue;
    tell(x, e, "packed", kinds[k], r->n_packed[k], "");
    tell(x, e, "bytes-before", kinds[k], (double)r->nbytes_before[k], "bytes");
    tell(x, e, "bytes-after", kinds[k], (double)r->nbytes_after[k], "bytes");
  }
  for (int k = 1; k < HK_N_REASONS; k++)
    if (r->left_alone[k]) tell(x, e, "left-alone", reasons[k], r->left_alone[k], "");
  if (r->n_on_host) tell(x, e, "already-on-host", "", r->n_on_host, "");
}
