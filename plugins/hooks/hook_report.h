/* What was packed, in numbers, by kind of value. */
#ifndef HOOK_REPORT_H
#define HOOK_REPORT_H

#include "hook.h"

#define HK_N_KINDS                                                                                                     \
  4 /* intermediate, input, static, output: by who else holds the memory, outputs and gradients being one  \
                      */

typedef struct hk_report {
  uint32_t n_packed[HK_N_KINDS];
  int64_t nbytes_before[HK_N_KINDS], nbytes_after[HK_N_KINDS]; /* of slots; with symbols at their hints */
  uint32_t left_alone[HK_N_REASONS];                           /* by HK_* reason */
  /* offloaded values that were on the host's device already */
  uint32_t n_on_host;
} hk_report_t;

/* One value packed into `parts`; before NULL: it had no slot, the backward read it where it is. */
void hk_report_add(hk_report_t *r, em_t *e, uint32_t held, const aot_type_t *before, const aot_value_t *parts,
                   uint32_t n);
void hk_report_tell(const hk_report_t *r, em_t *e);

#endif
