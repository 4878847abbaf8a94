/* What a worker hands over at its end: how it ended, and what its unit reported. */
#ifndef AOTH_WORKER_RESULT_H
#define AOTH_WORKER_RESULT_H

#include "kit/base/wire.h"
#include <sandbox/session.h>

#define AOTH_N_SEVERITIES (AOT_SEVERITY_ERROR + 1)

typedef struct aoth_worker_result {
  aot_status_t status;
  int32_t outcome; /* AOTH_CALL_* */
  uint32_t last_node;
  uint32_t n_numbers, n_env, reserved;
  uint32_t n_told[AOTH_N_SEVERITIES]; /* diagnostics, which it has printed */
  aot_str_t told;                     /* their text */
  const char *left;                   /* of the process, not as it was: "descriptor 2 .. closed"; NULL: nothing */
  const char *why_not;                /* against keeping the result; NULL: none */
  aoth_number_t *numbers;
  aoth_env_read_t *env;
} aoth_worker_result_t;

void aoth_wire_result(kit_wire_t *w, aoth_worker_result_t *result);  /* read: *result borrows the bytes */
const aot_cut_t *aoth_wire_cut(kit_wire_t *w, const aot_cut_t *cut); /* written: NULL; read, cut NULL: as above */

#endif
