/* Reader of joint graphs as PyTorch's partitioner saw them, written out by hand-made tools: JSON, plain or gzip.
 *
 *   {"num_fwd_outputs": n, "merged": bool, "nodes": [[name, kind, target, inputs, value, recompute], ..]}
 *
 * kind: placeholder, get_attr, call_function, output (last, once). inputs: numbers of earlier rows, each once. value:
 * [dtype, shape, strides], or null where the value is a tuple or none. recompute: the user's checkpoint tag (MUST_SAVE,
 * .. or 0 to 3) or null. A placeholder whose target holds "tangents" comes with the backward. Rows of target getitem
 * that take a tuple apart become the results of the row they take apart. Of the output's inputs the first
 * num_fwd_outputs are the forward's. merged: the rows are what PyTorch cut, its common subexpressions merged;
 * without it they are merged here (merge_rows.h), as far as rows tell. */
#ifndef BENCH_JOINT_DUMP_H
#define BENCH_JOINT_DUMP_H

#include "kit/graph/joint_arrays.h"

#include <jansson.h>

typedef struct jd_dump {
  json_t *root;     /* owns the names that joint.op_name points at */
  jg_joint_t joint; /* op_flags as PyTorch's lists have it, 0 for operators that stand in none of them */
  uint32_t n_rows, n_edges;
  uint32_t *row_of_node; /* by node of joint */
} jd_dump_t;

#define JD_TEXT 256

/* Reads the file. dynamic: names of placeholders that are not parameters or buffers (n_dynamic of them); those missing
 * in the graph are an error. 0, or -1 with what is wrong and where in out_error (JD_TEXT bytes). O(file). */
int jd_read(const char *path, const char *const *dynamic, uint32_t n_dynamic, jd_dump_t *out, char *out_error);
/* The same of text in memory; name stands for it in messages. */
int jd_parse(const char *name, const char *text, size_t size, const char *const *dynamic, uint32_t n_dynamic,
             jd_dump_t *out, char *out_error);
void jd_deinit(jd_dump_t *d);

#endif
