#include "joint_dump.h"

#include "dump_row.h"
#include "merge_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_FILE ((size_t)1 << 30)

typedef struct reader {
  const char *path;
  char *error;
  json_t *rows;
  jd_row_t *row;         /* n_rows */
  uint32_t *first_value; /* by row: its value; of a tuple: its first element's */
  uint32_t *n_elements;  /* by row: elements given out so far */
  uint32_t n_rows, n_operands, n_forward;
  int is_merged;
  jd_dump_t *out;
} reader_t;

static int fail(reader_t *r, const char *format, ...) {
  va_list list;
  int n = snprintf(r->error, JD_TEXT, "%s: ", r->path);
  va_start(list, format);
  if (n > 0 && n < JD_TEXT) vsnprintf(r->error + n, (size_t)(JD_TEXT - n), format, list);
  va_end(list);
  return -1;
}

static int fail_row(reader_t *r, uint32_t i, const char *what) {
  return fail(r, "row %u (%.60s): %.140s", i, r->row[i].name ? r->row[i].name : "no name", what);
}

/* An element: a getitem of a tuple that an operator gives. Its row is no node of its own. */
static void find_elements(reader_t *r) {
  for (uint32_t i = 0; i < r->n_rows; i++) {
    jd_row_t *row = &r->row[i];
    if (!row->is_getitem || row->n_inputs != 1) continue;
    const uint32_t from = jd_input(row, 0);
    row->is_element = r->row[from].kind == JD_CALL && !r->row[from].has_value && !r->row[from].is_element;
    if (row->is_element) r->row[from].n_elements++;
  }
  for (uint32_t i = 0; i < r->n_rows; i++)
    for (uint32_t k = 0; k < r->row[i].n_inputs && !r->row[i].is_element; k++)
      r->row[jd_input(&r->row[i], k)].read_whole = 1;
}

static int read_rows(reader_t *r) {
  const char *what = NULL;
  for (uint32_t i = 0; i < r->n_rows; i++) {
    if (jd_read_row(json_array_get(r->rows, i), i, &r->row[i], &what) != 0) return fail_row(r, i, what);
    if ((r->row[i].kind == JD_OUTPUT) != (i + 1 == r->n_rows))
      return fail_row(r, i, "the output row stands last, and once");
  }
  if (!r->is_merged && jd_merge_rows(r->rows, r->row, r->n_rows) != 0)
    return fail(r, "no memory for %u rows", r->n_rows);
  find_elements(r);
  return 0;
}

static uint32_t count_results(const jd_row_t *row) {
  return row->n_elements + (row->n_elements == 0 || row->read_whole ? 1 : 0);
}

static int is_node(const jd_row_t *row) { return row->kind == JD_CALL && !row->is_element; }

/* Numbers: inputs first, then results of nodes, tuples' elements in the order of their rows. */
static void number_values(reader_t *r, jg_joint_t *j) {
  for (uint32_t i = 0; i < r->n_rows; i++)
    if (r->row[i].kind == JD_INPUT) r->first_value[i] = j->n_inputs++;
  j->n_values = j->n_inputs;
  for (uint32_t i = 0; i < r->n_rows; i++) {
    if (!is_node(&r->row[i])) continue;
    r->first_value[i] = j->n_values;
    j->n_values += count_results(&r->row[i]);
    j->n_nodes++;
    r->n_operands += r->row[i].n_inputs;
  }
  for (uint32_t i = 0; i < r->n_rows; i++)
    if (r->row[i].is_element) {
      const uint32_t from = jd_input(&r->row[i], 0);
      r->first_value[i] = r->first_value[from] + r->n_elements[from]++;
    }
}

/* The value that stands for row i where it is read; a tuple that is read whole is its last result. */
static uint32_t value_of(const reader_t *r, uint32_t i) {
  const jd_row_t *row = &r->row[i];
  return r->first_value[i] + (is_node(row) && row->n_elements ? row->n_elements : 0);
}

static int is_named(const char *name, const char *const *names, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(name, names[i]) == 0) return 1;
  return 0;
}

static void fill_input(reader_t *r, uint32_t i, const char *const *dynamic, uint32_t n_dynamic) {
  jg_joint_t *j = &r->out->joint;
  const jd_row_t *row = &r->row[i];
  const uint32_t v = r->first_value[i];
  j->def[v] = JG_NONE;
  j->nbytes[v] = row->nbytes;
  j->input_kind[v] = row->is_late ? JG_INPUT_TANGENT : JG_INPUT_STATIC;
  if (row->is_seed || is_named(row->name, dynamic, n_dynamic)) j->input_kind[v] = JG_INPUT_DYNAMIC;
}

static void fill_node(reader_t *r, uint32_t i, uint32_t n, uint32_t *at) {
  jg_joint_t *j = &r->out->joint;
  const jd_row_t *row = &r->row[i];
  j->operand_begin[n] = *at;
  j->result_begin[n] = r->first_value[i];
  j->op_name[n] = (aot_str_t){row->target, strlen(row->target)};
  j->op_flags[n] = jd_flags(j->op_name[n]);
  j->node_flags[n] = row->tag;
  j->node_id[n] = n;
  r->out->row_of_node[n] = i;
  for (uint32_t k = 0; k < row->n_inputs; k++) j->operands[(*at)++] = value_of(r, jd_input(row, k));
  for (uint32_t k = 0; k < count_results(row); k++) j->def[r->first_value[i] + k] = n;
  if (row->n_elements == 0) j->nbytes[r->first_value[i]] = row->nbytes;
}

static int fill_outputs(reader_t *r) {
  jg_joint_t *j = &r->out->joint;
  const jd_row_t *row = &r->row[r->n_rows - 1];
  for (uint32_t k = 0; k < row->n_inputs; k++) {
    const uint32_t v = value_of(r, jd_input(row, k));
    if (k < r->n_forward) j->forward_outputs[j->n_forward_outputs++] = v;
    else j->gradients[j->n_gradients++] = v;
  }
  jg_joint_link(j);
  for (uint32_t k = 0; k < r->n_forward; k++)
    if (!jg_is_forward_value(j, j->forward_outputs[k]))
      return fail_row(r, jd_input(row, k), "a forward output depends on a tangent: is num_fwd_outputs right?");
  return 0;
}

static int fill(reader_t *r, const char *const *dynamic, uint32_t n_dynamic) {
  jg_joint_t *j = &r->out->joint;
  uint32_t n = 0, at = 0;
  double sum = 0;
  for (uint32_t i = 0; i < r->n_rows; i++) {
    if (r->row[i].kind == JD_INPUT) fill_input(r, i, dynamic, n_dynamic);
    if (is_node(&r->row[i])) fill_node(r, i, n++, &at);
    if (r->row[i].is_element) j->nbytes[r->first_value[i]] = r->row[i].nbytes;
  }
  j->operand_begin[n] = at;
  j->result_begin[n] = j->n_values;
  for (uint32_t v = 0; v < j->n_values; v++) {
    j->value_id[v] = v;
    sum += (double)j->nbytes[v];
  }
  return sum < 1e18 ? fill_outputs(r) : fail(r, "the values take more than 10^18 bytes together");
}

static int check_dynamic(reader_t *r, const char *const *dynamic, uint32_t n_dynamic) {
  for (uint32_t d = 0; d < n_dynamic; d++) {
    uint32_t i = 0;
    while (i < r->n_rows && (r->row[i].kind != JD_INPUT || strcmp(r->row[i].name, dynamic[d]) != 0)) i++;
    if (i == r->n_rows) return fail(r, "no placeholder is called %.80s", dynamic[d]);
  }
  return 0;
}

static int build(reader_t *r, const char *const *dynamic, uint32_t n_dynamic) {
  jg_joint_t *j = &r->out->joint;
  if (check_dynamic(r, dynamic, n_dynamic) != 0) return -1;
  if (r->n_forward > r->row[r->n_rows - 1].n_inputs)
    return fail(r, "num_fwd_outputs is %u, but the output row lists %u values", r->n_forward,
                r->row[r->n_rows - 1].n_inputs);
  number_values(r, j);
  r->out->row_of_node = calloc((size_t)j->n_nodes + 1, sizeof *r->out->row_of_node);
  r->out->n_rows = r->n_rows;
  r->out->n_edges = r->n_operands;
  if (!r->out->row_of_node || jg_joint_alloc(j, r->n_operands, r->row[r->n_rows - 1].n_inputs) != 0)
    return fail(r, "no memory for %u rows", r->n_rows);
  return fill(r, dynamic, n_dynamic);
}

static int read_root(reader_t *r) {
  const json_t *forward = json_object_get(r->out->root, "num_fwd_outputs"),
               *merged = json_object_get(r->out->root, "merged");
  r->rows = json_object_get(r->out->root, "nodes");
  if (!json_is_object(r->out->root)) return fail(r, "not an object with num_fwd_outputs and nodes");
  if (!json_is_integer(forward) || json_integer_value(forward) < 0 || json_integer_value(forward) > INT32_MAX)
    return fail(r, "num_fwd_outputs is not a count");
  if (merged && !json_is_boolean(merged)) return fail(r, "merged is neither true nor false");
  if (!json_is_array(r->rows) || json_array_size(r->rows) == 0) return fail(r, "nodes is not a list of rows");
  if (json_array_size(r->rows) > INT32_MAX / 8) return fail(r, "too many rows");
  r->n_forward = (uint32_t)json_integer_value(forward);
  r->n_rows = (uint32_t)json_array_size(r->rows);
  r->is_merged = json_is_true(merged);
  return 0;
}

int jd_parse(const char *name, const char *text, size_t size, const char *const *dynamic, uint32_t n_dynamic,
             jd_dump_t *out, char *out_error) {
  json_error_t e;
  reader_t r = {.path = name, .error = out_error, .out = out};
  memset(out, 0, sizeof *out);
  out->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
  int status = out->root ? read_root(&r) : fail(&r, "line %d, column %d: not JSON: %.120s", e.line, e.column, e.text);
  if (status == 0) {
    r.row = calloc((size_t)r.n_rows + 1, sizeof *r.row);
    r.first_value = calloc((size_t)r.n_rows + 1, sizeof *r.first_value);
    r.n_elements = calloc((size_t)r.n_rows + 1, sizeof *r.n_elements);
    status = r.row && r.first_value && r.n_elements ? read_rows(&r) : fail(&r, "no memory for %u rows", r.n_rows);
  }
  if (status == 0) status = build(&r, dynamic, n_dynamic);
  free(r.row);
  free(r.first_value);
  free(r.n_elements);
  if (status != 0) jd_deinit(out);
  return status;
}

/* The whole file, unpacked; gzread passes on what is not packed. */
static char *unpack(gzFile file, size_t *out_size) {
  size_t capacity = 1 << 20, size = 0;
  char *text = malloc(capacity);
  while (text) {
    const int n = gzread(file, text + size, (unsigned)(capacity - size));
    if (n < 0) break;
    size += (size_t)n;
    if (n == 0) {
      *out_size = size;
      return text;
    }
    if (size < capacity) continue;
    char *more = capacity < MAX_FILE ? realloc(text, capacity *= 2) : NULL;
    if (!more) break;
    text = more;
  }
  free(text);
  return NULL;
}

int jd_read(const char *path, const char *const *dynamic, uint32_t n_dynamic, jd_dump_t *out, char *out_error) {
  size_t size = 0;
  memset(out, 0, sizeof *out);
  gzFile file = gzopen(path, "rb");
  if (!file) {
    snprintf(out_error, JD_TEXT, "%s: cannot be opened", path);
    return -1;
  }
  char *text = unpack(file, &size);
  gzclose(file);
  if (!text) {
    snprintf(out_error, JD_TEXT, "%s: not a whole gzip file, or larger than 1 GiB unpacked", path);
    return -1;
  }
  const int status = jd_parse(path, text, size, dynamic, n_dynamic, out, out_error);
  free(text);
  return status;
}

void jd_deinit(jd_dump_t *d) {
  jg_joint_deinit(&d->joint);
  json_decref(d->root);
  free(d->row_of_node);
  memset(d, 0, sizeof *d);
}
