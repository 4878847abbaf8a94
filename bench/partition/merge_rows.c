#include "merge_rows.h"

#include "partition-mincut/op_lists.h"
#include <stdlib.h>
#include <string.h>

/* By name without overload; each list ends with NULL. */
static const char *const never_merged[] = {
    /* drawn anew at every call, or whatever the memory held */
    "aten.dropout", "aten._fused_dropout", "aten._standard_gamma", "aten.bernoulli", "aten.multinomial",
    "aten.native_dropout", "aten.normal", "aten.poisson", "aten.binomial", "aten.rrelu", "aten.rand_like", "aten.rand",
    "aten.randint", "aten.randn", "aten.randperm", "aten.empty",
    /* pieces of one tensor, told apart by scalars alone */
    "aten.slice", "aten.select", "prims.inductor_lookup_seed", NULL};
/* Not among PyTorch's free views, but their result lies in their input's memory. */
static const char *const further_views[] = {"aten._unsafe_view", "aten.detach", NULL};

typedef struct merge {
  json_t *rows;
  jd_row_t *row;
  uint32_t n_rows;
  uint32_t *same;        /* by row: the row that stands for it */
  uint32_t *root;        /* by row: the row whose memory it looks at */
  uint32_t *n_taken;     /* by row: getitems of it so far */
  uint32_t *last_reader; /* by row; row 0 reads nothing */
  uint8_t *is_output;    /* by row, of roots */
} merge_t;

static int is_in(const char *target, const char *const *names) {
  for (; *names; names++) {
    const size_t n = strlen(*names);
    if (strncmp(target, *names, n) == 0 && (target[n] == '.' || target[n] == '\0')) return 1;
  }
  return 0;
}

static int is_view(const jd_row_t *row) {
  return (mc_listed((aot_str_t){row->target, strlen(row->target)}) & OL_VIEW) || is_in(row->target, further_views);
}

/* Views look at the memory of their first input, elements of a view's tuple too. */
static void find_roots(merge_t *m) {
  for (uint32_t i = 0; i < m->n_rows; i++) {
    const jd_row_t *row = &m->row[i];
    m->root[i] = i;
    if (row->kind != JD_CALL || row->n_inputs == 0) continue;
    if (is_view(row) || (row->is_getitem && is_view(&m->row[jd_input(row, 0)]))) m->root[i] = m->root[jd_input(row, 0)];
  }
  const jd_row_t *output = &m->row[m->n_rows - 1];
  for (uint32_t k = 0; k < output->n_inputs; k++) m->is_output[m->root[jd_input(output, k)]] = 1;
}

/* The inputs of row i, each once, by what stands for them. NULL: no memory. */
static json_t *map_inputs(merge_t *m, uint32_t i) {
  json_t *inputs = json_array();
  for (uint32_t k = 0; inputs && k < m->row[i].n_inputs; k++) {
    const uint32_t from = m->same[jd_input(&m->row[i], k)];
    if (m->last_reader[from] != i) json_array_append_new(inputs, json_integer(from));
    m->last_reader[from] = i;
  }
  return inputs;
}

/* What equal rows have in common, as text; getitems of one tuple differ by which they are. NULL: no memory. */
static char *key_of(merge_t *m, uint32_t i, json_t *inputs) {
  const jd_row_t *row = &m->row[i];
  const uint32_t piece = row->is_getitem && row->n_inputs ? m->n_taken[jd_input(row, 0)]++ : 0;
  json_t *key =
      json_pack("[s, O, O, i]", row->target, inputs, json_array_get(json_array_get(m->rows, i), 4), (int)piece);
  char *text = key ? json_dumps(key, JSON_COMPACT) : NULL;
  json_decref(key);
  return text;
}

static int may_merge(const merge_t *m, uint32_t i) {
  return m->row[i].kind == JD_CALL && !m->is_output[m->root[i]] && !is_in(m->row[i].target, never_merged);
}

static void read_merged(merge_t *m, uint32_t i, json_t *inputs) {
  json_array_set(json_array_get(m->rows, i), 3, inputs);
  m->row[i].inputs = inputs;
  m->row[i].n_inputs = (uint32_t)json_array_size(inputs);
}

/* firsts: number of the first row by key. */
static int merge_row(merge_t *m, uint32_t i, json_t *firsts) {
  json_t *inputs = map_inputs(m, i);
  char *key = inputs ? key_of(m, i, inputs) : NULL;
  const json_t *first = key && may_merge(m, i) ? json_object_get(firsts, key) : NULL;
  int status = key ? 0 : -2;
  if (first) {
    m->same[i] = (uint32_t)json_integer_value(first);
    m->row[i].kind = JD_MERGED;
    json_array_clear(inputs);
  } else if (key && may_merge(m, i)) {
    status = json_object_set_new(firsts, key, json_integer(i)) == 0 ? 0 : -2;
  }
  if (key) read_merged(m, i, inputs);
  free(key);
  json_decref(inputs);
  return status;
}

int jd_merge_rows(json_t *rows, jd_row_t *row, uint32_t n_rows) {
  merge_t m = {.rows = rows, .row = row, .n_rows = n_rows};
  json_t *firsts = json_object();
  m.same = calloc(n_rows, sizeof *m.same);
  m.root = calloc(n_rows, sizeof *m.root);
  m.n_taken = calloc(n_rows, sizeof *m.n_taken);
  m.last_reader = calloc(n_rows, sizeof *m.last_reader);
  m.is_output = calloc(n_rows, 1);
  int status = firsts && m.same && m.root && m.n_taken && m.last_reader && m.is_output ? 0 : -2;
  if (status == 0) find_roots(&m);
  for (uint32_t i = 0; i < n_rows && status == 0; i++) {
    m.same[i] = i;
    status = merge_row(&m, i, firsts);
  }
  json_decref(firsts);
  free(m.same);
  free(m.root);
  free(m.n_taken);
  free(m.last_reader);
  free(m.is_output);
  return status;
}
