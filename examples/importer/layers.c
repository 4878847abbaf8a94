/* An importer of a small text format, a multilayer perceptron written down by hand:
 *
 *     layers 1                 # what the file is, and which edition
 *     input 4 3                # 4 rows of 3 numbers
 *     linear 2                 # to 2 numbers, by these 3 x 2 weights
 *       0.5 -0.25  1 0.75  -0.5 0.25
 *     relu
 *     loss mean-square         # of what the last layer gives
 *
 * probe says whether a file is one of these; read makes a program: leaves for weights and input, a graph, its nodes.
 * Read it from the bottom. */
#include <aot/describe.h>
#include <aot/import.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "example.layers"
#define HELP "reads multilayer perceptrons that are written down in text"
#define WORD_SIZE 64u

typedef struct unit {
  aot_import_t table;
  aot_host_t host;
} unit_t;

typedef struct reading {
  const unit_t *u;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const aot_file_t *file;
  const char *at, *end;
  uint32_t line;
  char word[WORD_SIZE]; /* the last one read; empty at the end of the file */
  aot_graph_t graph;
  aot_value_t value; /* what the layers so far give */
  int64_t sizes[2];  /* of it */
  uint32_t n_layers;
} reading_t;

static aot_status_t complain(const reading_t *r, aot_status_t status, const char *text) {
  const aot_host_t *host = &r->u->host;
  const aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str(ID ".file"),
      .message = aot_str(text),
      .file = r->file->path,
      .line = r->line,
  };
  host->diag(host, r->ctx, &d);
  return status;
}

/* ---- words ---- */

/* The next word, past blanks and comments. What is too long for one is cut, and then means nothing. */
static const char *next_word(reading_t *r) {
  int in_comment = 0;
  size_t n = 0;
  for (; r->at < r->end && (in_comment || (unsigned char)*r->at <= ' ' || *r->at == '#'); r->at++) {
    r->line += *r->at == '\n';
    in_comment = *r->at != '\n' && (in_comment || *r->at == '#');
  }
  for (; r->at < r->end && (unsigned char)*r->at > ' ' && *r->at != '#'; r->at++)
    if (n + 1 < WORD_SIZE) r->word[n++] = *r->at;
  r->word[n] = 0;
  return r->word;
}

static aot_status_t next_size(reading_t *r, int64_t *out) {
  char *end;
  *out = strtoll(next_word(r), &end, 10);
  if (r->word[0] && !*end && *out > 0 && *out <= 1000000) return AOT_OK;
  return complain(r, AOT_E_INVALID, "here stands a size, from 1 to 1000000");
}

static aot_status_t next_number(reading_t *r, float *out) {
  char *end;
  *out = strtof(next_word(r), &end);
  return r->word[0] && !*end ? AOT_OK : complain(r, AOT_E_INVALID, "here stands a number, one of the weights");
}

/* ---- what the program is made of ---- */

static aot_type_t f32_matrix(const int64_t *sizes) {
  return (aot_type_t){.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = 2, .sizes = sizes};
}

/* A leaf, and the input of the graph that takes it. Data is kept, not copied: it lives as long as the program. */
static aot_status_t add_leaf(reading_t *r, int32_t role, const char *name, const int64_t *sizes, const float *data,
                             aot_value_t *out) {
  const aot_edit_api_t *edit = r->u->host.edit;
  const aot_str_t names[] = {aot_str(name)};
  const aot_leaf_info_t leaf = {
      .struct_size = sizeof leaf,
      .role = role,
      .flags = role == AOT_ROLE_PARAMETER ? AOT_LEAF_REQUIRES_GRAD : 0,
      .n_names = 1,
      .names = names,
      .type = f32_matrix(sizes),
      .data = data,
      .nbytes = data ? (uint64_t)(sizes[0] * sizes[1]) * sizeof *data : 0,
  };
  aot_leaf_t made;
  AOT_TRY(edit->leaf_create(r->prog, &leaf, &made));
  return edit->input_add(r->prog, r->graph, role, made.id, &leaf.type, names[0], out);
}

/* A node at the end of the graph. Its types are inferred, its other arguments take their defaults. */
static aot_status_t add_node(reading_t *r, const char *op, const aot_arg_t *args, uint32_t n_args, aot_value_t *out) {
  const aot_host_t *host = &r->u->host;
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = host->graph->op_find(r->prog, aot_str(op)), .n_args = n_args, .args = args};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  if (spec.op.id == AOT_NO_ID) return complain(r, AOT_E_NOT_FOUND, "no plugin brings the operators of PyTorch (aten)");
  AOT_TRY(host->edit->node_create(r->prog, r->graph, &spec, aot_no_node(), &made));
  AOT_TRY(host->graph->node_info(r->prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

/* ---- the layers ---- */

static aot_status_t input(reading_t *r) {
  if (r->value.id != AOT_NO_ID) return complain(r, AOT_E_INVALID, "there is an input already");
  AOT_TRY(next_size(r, &r->sizes[0]));
  AOT_TRY(next_size(r, &r->sizes[1]));
  return add_leaf(r, AOT_ROLE_USER_INPUT, "x", r->sizes, NULL, &r->value);
}

static aot_status_t linear(reading_t *r) {
  const aot_host_t *host = &r->u->host;
  int64_t sizes[] = {r->sizes[1], 0};
  char name[32];
  aot_value_t weight;
  AOT_TRY(next_size(r, &sizes[1]));
  const int64_t n = sizes[0] * sizes[1];
  if (n > r->end - r->at) return complain(r, AOT_E_INVALID, "the file is too short for so many weights");
  float *data = host->alloc(host, r->ctx, AOT_ARENA_GRAPH, sizeof *data, (uint64_t)n * sizeof *data);
  if (!data) return AOT_E_EXHAUSTED;
  for (int64_t i = 0; i < n; i++) AOT_TRY(next_number(r, &data[i]));
  snprintf(name, sizeof name, "%u.weight", r->n_layers++);
  AOT_TRY(add_leaf(r, AOT_ROLE_PARAMETER, name, sizes, data, &weight));
  const aot_arg_t args[] = {aot_arg_value(r->value), aot_arg_value(weight)};
  r->sizes[1] = sizes[1];
  return add_node(r, "aten.mm.default", args, 2, &r->value);
}

static aot_status_t relu(reading_t *r) {
  const aot_arg_t x = aot_arg_value(r->value);
  return add_node(r, "aten.relu.default", &x, 1, &r->value);
}

static aot_status_t loss(reading_t *r) {
  if (strcmp(next_word(r), "mean-square") != 0) return complain(r, AOT_E_INVALID, "the loss is 'mean-square'");
  const aot_arg_t twice[] = {aot_arg_value(r->value), aot_arg_value(r->value)};
  AOT_TRY(add_node(r, "aten.mul.Tensor", twice, 2, &r->value));
  const aot_arg_t squares = aot_arg_value(r->value);
  AOT_TRY(add_node(r, "aten.mean.default", &squares, 1, &r->value));
  if (*next_word(r)) return complain(r, AOT_E_INVALID, "the loss is the last thing in the file");
  return r->u->host.edit->output_add(r->prog, r->graph, AOT_ROLE_LOSS, 0, r->value, aot_str("loss"));
}

static const struct {
  const char *word;
  aot_status_t (*read)(reading_t *r);
} layers[] = {{"input", input}, {"linear", linear}, {"relu", relu}, {"loss", loss}};
#define N_LAYERS (sizeof layers / sizeof *layers)

static aot_status_t read(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, aot_prog_t *prog) {
  reading_t r = {.u = i->head.self, .ctx = ctx, .prog = prog, .file = file, .at = file->data, .line = 1};
  size_t k = 0;
  r.end = r.at + file->nbytes;
  if (strcmp(next_word(&r), "layers") != 0 || strcmp(next_word(&r), "1") != 0)
    return complain(&r, AOT_E_INVALID, "the file begins with 'layers 1'");
  AOT_TRY(r.u->host.edit->graph_create(prog, AOT_GRAPH_FORWARD, aot_str("main"), &r.graph));
  do {
    next_word(&r);
    for (k = 0; k < N_LAYERS && strcmp(layers[k].word, r.word) != 0; k++) {}
    if (k == N_LAYERS) return complain(&r, AOT_E_INVALID, "here stands one of: input, linear, relu, loss");
    if (r.value.id == AOT_NO_ID && layers[k].read != input)
      return complain(&r, AOT_E_INVALID, "the first is the input");
    AOT_TRY(layers[k].read(&r));
  } while (layers[k].read != loss);
  return AOT_OK;
}

static aot_status_t probe(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, int32_t *out_score) {
  (void)i, (void)ctx;
  *out_score = file->nbytes > 7 && memcmp(file->data, "layers ", 7) == 0 ? 100 : 0;
  return AOT_OK;
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)self, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_import_t){.head = {.struct_size = sizeof u->table, .self = u}, .probe = probe, .read = read};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_unit_t unit = AOT_UNIT("import/1", ID, "1.0.0", HELP, .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN(ID, "1.0.0", "example", "Apache-2.0", units, AOT_NOTE_UNIT("import/1", ID, HELP));
