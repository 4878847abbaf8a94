/* One step of a program against an expectation file (keys: docs/RUN.md): every key but input.K, storage.N and
 * tangent.K is compared. */
#ifndef AOTH_EXPECT_H
#define AOTH_EXPECT_H

#include <trainer/tensors/compare.h>
#include <trainer/tensors/safetensors.h>
#include <step/step.h>
#include <cli/verify/rounding_noise.h>

typedef struct aoth_expect_row {
  const char *key;      /* lives as long as the expectation file */
  aoth_tensor_t wanted; /* from the file */
  aoth_tensor_t got;    /* geometry alone; dtype 0: the program has no such result */
  aoth_compare_t compare;
  aoth_noise_t noise; /* of floats, where there is a judge */
  int ok;             /* close, or rounding noise */
} aoth_expect_row_t;

typedef struct aoth_expect {
  aoth_expect_row_t *rows; /* sorted by key */
  uint32_t n, n_ok;
  int ran_backward;
} aoth_expect_t;

/* Resets the step, feeds input.K, runs forward, and backward when the file has tangents or gradients and the program
 * can. A file that lacks an input, or an input that does not fit: a complaint and a status. Differences are no
 * error: see n_ok. */
aot_status_t aoth_expect_run(aoth_step_t *s, const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink,
                             aoth_expect_t *out);
/* The same with inputs and tangents of a file that may be another one, and a judge of what differs; NULL: none. */
aot_status_t aoth_expect_judged(aoth_step_t *s, const aoth_noise_judge_t *judge, const aoth_st_t *inputs,
                                const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink, aoth_expect_t *out);
void aoth_expect_deinit(aoth_expect_t *e);

#endif
