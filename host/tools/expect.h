/* One step of a program against an expectation file (keys: docs/RUN.md): every key but input.K, storage.N and
 * tangent.K is compared. */
#ifndef AOTH_EXPECT_H
#define AOTH_EXPECT_H

#include <step/compare.h>
#include <step/safetensors.h>
#include <step/step.h>

typedef struct aoth_expect_row {
  const char *key;      /* lives as long as the expectation file */
  aoth_tensor_t wanted; /* from the file */
  aoth_tensor_t got;    /* geometry alone; dtype 0: the program has no such result */
  aoth_compare_t compare;
  int has_reference;      /* both are held against a step in float64: */
  double off, wanted_off; /* how far ours and the recorded one are from it, relative to its Euclidean norm */
  int ok;                 /* close, or no clearly further off than what was recorded */
} aoth_expect_row_t;

typedef struct aoth_expect {
  aoth_expect_row_t *rows; /* sorted by key */
  uint32_t n, n_ok;
  int ran_backward;
} aoth_expect_t;

/* How many times further from float64 than the recorded numbers a row may be before it fails. */
#define AOTH_CLEARLY_FURTHER 4

/* Resets the step, feeds input.K, runs forward, and backward when the file has tangents or gradients and the program
 * can. A file that lacks an input, or an input that does not fit: a complaint and a status. Differences are no
 * error: see n_ok. */
aot_status_t aoth_expect_run(aoth_step_t *s, const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink,
                             aoth_expect_t *out);
/* The same with inputs and tangents of a file that may be another one, and against a second step too, of the same
 * program in float64 (widen.h); NULL: none. */
aot_status_t aoth_expect_against(aoth_step_t *s, aoth_step_t *reference, const aoth_st_t *inputs, const aoth_st_t *file,
                                 double rtol, double atol, aoth_sink_t *sink, aoth_expect_t *out);
void aoth_expect_deinit(aoth_expect_t *e);

#endif
