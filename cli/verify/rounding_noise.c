#include <cli/verify/rounding_noise.h>

#include <aot/inline.h>
#include <math.h>
#include <trainer/tensors/compare.h>
#include <stdio.h>
#include <string.h>
#include <cli/verify/tolerance.h>

/* The factor of PyTorch's own distance, and what the limit may be: a part of |e|, or, where that is more, of the
 * largest root mean square of the results of its kind. */
typedef struct bounds {
  double factor, of_norm, of_kind;
} bounds_t;

static bounds_t bounds_for(double precision) {
  const int has_halves = precision > 0x1p-20;
  return has_halves ? (bounds_t){3, 0.5, 4 * precision} : (bounds_t){4, 0.25, 1e-3};
}

static int begins(const char *key, const char *prefix) { return strncmp(key, prefix, strlen(prefix)) == 0; }

static double norm_of(const aoth_tensor_t *t) {
  double ignored, norm;
  aoth_distance(t, t, &ignored, &norm);
  return norm;
}

static double root_of_elements(const aoth_tensor_t *t) {
  const int64_t n = aoth_tensor_numel(t);
  return sqrt(n > 0 ? (double)n : 1);
}

static const char *const kinds[AOTH_NOISE_KINDS] = {"grad.", "output.", "input_after.", "buffer_after."};

static int kind_of(const char *key) {
  for (int k = 0; k < AOTH_NOISE_KINDS; k++)
    if (begins(key, kinds[k])) return k;
  return -1;
}

aoth_noise_judge_t aoth_noise_judge(const aoth_st_t *records, int is_of_expectation, double precision) {
  aoth_noise_judge_t j = {records, is_of_expectation, precision, {0}};
  const aoth_st_entry_t *e = aoth_st_entries(records);
  for (uint32_t i = 0; i < aoth_st_count(records); i++) {
    const int kind = kind_of(e[i].name);
    if (kind < 0) continue;
    j.scales[kind] = fmax(j.scales[kind], norm_of(&e[i].tensor) / root_of_elements(&e[i].tensor));
  }
  return j;
}

/* PyTorch's own distance; below 0: the file does not have it. */
static double recorded_distance(const aoth_st_t *records, const char *key) {
  char name[600];
  const int n = snprintf(name, sizeof name, "distance.%s", key);
  const aoth_st_entry_t *e = n < (int)sizeof name ? aoth_st_find(records, name) : NULL;
  if (!e || e->tensor.dtype != AOT_F64 || aoth_tensor_numel(&e->tensor) != 1) return -1;
  return kit_element_load(AOT_F64, (const char *)e->tensor.data + e->tensor.offset * 8);
}

static aoth_noise_t not_judged(const char *why) { return (aoth_noise_t){AOTH_NOISE_NOT_JUDGED, why, 0, 0, 0}; }

static double relative(double distance, double norm) { return distance == 0 ? 0 : distance / norm; }

/* A record of a result of that dtype: complex ones have their parts in a last dimension. 0: it is no such record. */
static int read_record(const aoth_st_entry_t *e, int32_t dtype, aoth_tensor_t *out) {
  *out = e->tensor;
  if (!aot_dtype_is_complex(dtype)) return aot_dtype_is_float(dtype) ? out->dtype == AOT_F64 : 1;
  if (out->dtype != AOT_F64 || out->rank == 0 || out->sizes[out->rank - 1] != 2) return 0;
  *out = aoth_tensor_make(e->tensor.data, AOT_C128, out->rank - 1, out->sizes);
  return 1;
}

aoth_noise_t aoth_noise_of(const aoth_noise_judge_t *j, const char *key, const aoth_tensor_t *got,
                           const aoth_tensor_t *wanted) {
  const aoth_st_entry_t *exact = aoth_st_find(j->records, key);
  aoth_tensor_t e;
  double off, wanted_off, norm;
  if (!exact) return not_judged("there is no float64 record of it");
  if (!read_record(exact, got->dtype, &e) || !aoth_tensor_same_sizes(&e, got))
    return not_judged("its float64 record has another dtype or shape");
  aoth_distance(got, &e, &off, &norm);
  aoth_distance(wanted, &e, &wanted_off, &norm);
  aoth_noise_t out = {AOTH_NOISE_NO, NULL, 1, relative(off, norm), relative(wanted_off, norm)};
  double own = j->is_of_expectation ? recorded_distance(j->records, key) : wanted_off;
  if (own < 0 || !isfinite(own)) own = wanted_off;
  const bounds_t bounds = bounds_for(j->precision);
  const double limit = bounds.factor * (own + aoth_rounding(got->dtype) * norm);
  const int kind = kind_of(key);
  const double scale = kind < 0 ? 0 : j->scales[kind] * root_of_elements(got);
  if (limit > bounds.of_norm * norm && limit > bounds.of_kind * scale) {
    out.verdict = AOTH_NOISE_NOT_JUDGED;
    out.why = "PyTorch's own numbers are too far from float64 to tell noise from a mistake";
  } else if (off <= limit && wanted_off <= limit) {
    out.verdict = AOTH_NOISE_YES;
  }
  return out;
}

void aoth_noise_path(const char *expectation, kit_text_t *out) {
  static const char ending[] = ".safetensors";
  const size_t size = strlen(expectation), n = sizeof ending - 1;
  const int has = size > n && strcmp(expectation + size - n, ending) == 0;
  kit_text_f(out, "%.*s.f64.safetensors", (int)(has ? size - n : size), expectation);
}

static int is_equal(const aoth_tensor_t *given, const aoth_st_entry_t *record) {
  aoth_tensor_t e;
  double distance, norm;
  if (!read_record(record, given->dtype, &e) || !aoth_tensor_same_sizes(given, &e)) return 0;
  aoth_distance(given, &e, &distance, &norm);
  return distance == 0;
}

aot_status_t aoth_noise_check_inputs(const aoth_st_t *records, const aoth_st_t *inputs, aoth_sink_t *sink) {
  const aoth_st_entry_t *e = aoth_st_entries(records);
  const aoth_where_t where = {.file = aoth_st_path(records)};
  for (uint32_t i = 0; i < aoth_st_count(records); i++) {
    if (!begins(e[i].name, "input.") && !begins(e[i].name, "tangent.")) continue;
    const aoth_st_entry_t *given = aoth_st_find(inputs, e[i].name);
    if (given && is_equal(&given->tensor, &e[i])) continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "verify.float64",
                     "these float64 results are of other inputs: \"%s\" is not as in %s; record them again "
                     "(tools/float64_records.py)",
                     e[i].name, aoth_st_path(inputs));
    return AOT_E_INVALID;
  }
  return AOT_OK;
}
