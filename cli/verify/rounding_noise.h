/* Is a difference from recorded results rounding? Judged by what PyTorch computes in float64 for the same step: a file
 * next to the expectation file (tools/float64_records.py writes it; docs/RUN.md, section 6, has keys and rule).
 *
 * With e the float64 result of n elements, D the largest distance of PyTorch's own runs in the model's precision from
 * it (distance.KEY of the file), and u the dtype's rounding (tolerance.h), all in Euclidean norms:
 *
 *     limit = 4 (D + u |e|)
 *     noise: |ours - e| <= limit and |recorded - e| <= limit
 *
 * D says how much of e the precision resolves. Where the limit exceeds a quarter of |e|, 30 % would pass, and soon an
 * opposite sign, a factor of two or zeros; there nothing is judged, unless the limit is small next to the results of
 * its kind (the gradient of a bias before a batch norm, zero but for rounding). In float16 and bfloat16 the factor is 3
 * and the limit at most half of |e|.
 *
 * PyTorch judges its own compilers in this way: torch/_dynamo/utils.py, same(.., fp64_ref): RMSE from float64 of at
 * most 2 to 10 times that of eager mode, 3 in halves. */
#ifndef AOTH_ROUNDING_NOISE_H
#define AOTH_ROUNDING_NOISE_H

#include "kit/base/text.h"
#include <trainer/tensors/safetensors.h>

/* Results of a kind, as their keys begin: grad, output, input_after, buffer_after. */
#define AOTH_NOISE_KINDS 4

typedef struct aoth_noise_judge {
  const aoth_st_t *records; /* of the float64 step */
  int is_of_expectation;    /* its distances are those of the expectation file; else the recorded numbers' own count */
  double precision;         /* the coarsest rounding of a float dtype that the program computes in */
  double scales[AOTH_NOISE_KINDS]; /* the largest root mean square of the records of a kind */
} aoth_noise_judge_t;

/* O(records). */
aoth_noise_judge_t aoth_noise_judge(const aoth_st_t *records, int is_of_expectation, double precision);

enum { AOTH_NOISE_NOT_JUDGED, AOTH_NOISE_YES, AOTH_NOISE_NO };

typedef struct aoth_noise {
  int verdict;
  const char *why;        /* AOTH_NOISE_NOT_JUDGED: static text */
  int has_distances;      /* the next two are known: */
  double off, wanted_off; /* distances of ours and of the recorded numbers, relative to |e| */
} aoth_noise_t;

/* Of two tensors of the same sizes and float or complex dtype. */
aoth_noise_t aoth_noise_of(const aoth_noise_judge_t *j, const char *key, const aoth_tensor_t *got,
                           const aoth_tensor_t *wanted);

/* "x.safetensors" -> "x.f64.safetensors" */
void aoth_noise_path(const char *expectation, kit_text_t *out);
/* The records are of a step with these inputs and tangents; else a complaint. */
aot_status_t aoth_noise_check_inputs(const aoth_st_t *records, const aoth_st_t *inputs, aoth_sink_t *sink);

#endif
