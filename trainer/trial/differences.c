#include <trainer/trial/differences.h>

#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

/* Both lists are sorted by name: a merge. */
void aoth_results_walk(const aoth_st_t *got, const aoth_st_t *wanted,
                       void (*each)(void *self, const char *key, const aoth_tensor_t *got, const aoth_tensor_t *wanted),
                       void *self) {
  const aoth_st_entry_t *a = aoth_st_entries(got), *b = aoth_st_entries(wanted);
  const uint32_t n_a = aoth_st_count(got), n_b = aoth_st_count(wanted);
  for (uint32_t i = 0, k = 0; i < n_a || k < n_b;) {
    const int order = i == n_a ? 1 : k == n_b ? -1 : strcmp(a[i].name, b[k].name);
    each(self, order <= 0 ? a[i].name : b[k].name, order <= 0 ? &a[i].tensor : NULL, order >= 0 ? &b[k].tensor : NULL);
    i += order <= 0;
    k += order >= 0;
  }
}

/* An optimizer may move a parameter whose gradient is nothing but rounding as far as any other: of all elements of
 * parameters this share must differ before they count. */
#define MOVED_SHARE 0.2

typedef struct comparison {
  double tolerance;
  aoth_difference_t *out, parameters;
  int64_t n_moved, n_elements; /* of parameters */
} comparison_t;

static int rank_of(const char *key) {
  if (strncmp(key, "output.", 7) == 0) return 1;
  return strncmp(key, "grad.", 5) == 0 ? 2 : 3;
}

static void name_place(aoth_difference_t *d, const aoth_tensor_t *t, int64_t flat) {
  int64_t at[AOT_MAX_RANK];
  size_t n = 0;
  d->place[0] = 0;
  for (int32_t i = t->rank - 1; i >= 0; flat /= t->sizes[i] ? t->sizes[i] : 1, i--)
    at[i] = t->sizes[i] ? flat % t->sizes[i] : 0;
  for (int32_t i = 0; i < t->rank && n < sizeof d->place - 24; i++)
    n += (size_t)snprintf(d->place + n, sizeof d->place - n, "%s%lld%s", i ? ", " : "[", (long long)at[i],
                          i + 1 == t->rank ? "]" : "");
}

static void compare_key(void *self, const char *key, const aoth_tensor_t *got, const aoth_tensor_t *wanted) {
  comparison_t *c = self;
  const int is_parameter = strncmp(key, "param.", 6) == 0;
  aoth_difference_t *d = is_parameter ? &c->parameters : c->out;
  if (!got || !wanted) return;
  const aoth_compare_t r =
      aoth_compare_tensors(got, wanted, c->tolerance, c->tolerance * aoth_tensor_largest(wanted) / 10 + 1e-7);
  d->n_keys++;
  if (is_parameter) c->n_elements += aoth_tensor_numel(wanted);
  if (r.same_type && r.ok) return;
  d->n_differ++;
  if (is_parameter) c->n_moved += r.same_type ? r.n_bad : aoth_tensor_numel(wanted);
  if (d->key[0] && rank_of(d->key) <= rank_of(key)) return;
  snprintf(d->key, sizeof d->key, "%s", key);
  d->numel = aoth_tensor_numel(wanted);
  d->n_bad = r.same_type ? r.n_bad : 0;
  d->got = r.got;
  d->wanted = r.wanted;
  d->place[0] = 0;
  if (r.same_type) name_place(d, wanted, r.first_bad);
}

uint32_t aoth_results_differ(const aoth_st_t *got, const aoth_st_t *wanted, double tolerance, aoth_difference_t *out) {
  comparison_t c = {.tolerance = tolerance, .out = out};
  *out = (aoth_difference_t){0};
  aoth_results_walk(got, wanted, compare_key, &c);
  const int moved = (double)c.n_moved > MOVED_SHARE * (double)c.n_elements;
  if (moved && !out->n_differ) {
    c.parameters.n_keys += out->n_keys;
    *out = c.parameters;
  } else {
    out->n_keys += c.parameters.n_keys;
    out->n_differ += moved ? c.parameters.n_differ : 0;
  }
  return out->n_differ;
}

void aoth_difference_print(const aoth_difference_t *d, const char *was, char *out, size_t size) {
  if (d->n_bad == 0) snprintf(out, size, "%s has another shape or dtype", d->key);
  else
    snprintf(out, size, "%s%s is %.9g, %s %.9g (%lld of %lld elements)", d->key, d->place, d->got, was, d->wanted,
             (long long)d->n_bad, (long long)d->numel);
}
