#include "common/memory/sim_graph.h"

#include "common/loops/loop.h"
#include "common/snapshot/snap_check.h"
#include "common/tensor/geometry.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NBYTES (UINT64_C(1) << 50) /* sums of sizes that cannot be stay far from wrapping around */

typedef struct build {
  const aot_snapshot_t *s;
  const aot_snap_graph_t *graph;
  const aot_snap_node_t *nodes; /* of the graph */
  const aot_snap_value_t *values;
  const int64_t *dims;
  uint32_t *value_of_row;
  ms_sim_t *m;
  const uint64_t *inside; /* by graph row: bytes that a call of it takes while it runs; NULL: no regions are called */
  uint32_t *operand_begin, *operands, *result_begin, *base, *space;
  uint64_t *nbytes, *scratch;
} build_t;

typedef struct geometry {
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
  uint64_t numel, width;
} geometry_t;

static int64_t dim(const build_t *b, int64_t d) {
  int64_t n = sn_dim(d, b->dims);
  return n == SN_NO_VALUE ? 0 : n;
}

static geometry_t geometry_of(const build_t *b, uint32_t row) {
  const aot_snap_value_t *v = &b->values[row];
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints) + v->dims;
  geometry_t g;
  memset(&g, 0, sizeof g);
  if (v->kind != AOT_TYPE_TENSOR) return g;
  g.rank = v->rank;
  g.width = aot_dtype_size(v->dtype);
  g.numel = 1;
  for (int32_t d = 0; d < v->rank; d++) {
    g.sizes[d] = dim(b, ints[d]);
    g.strides[d] = dim(b, ints[v->rank + d]);
    if (g.sizes[d] < 0) g.sizes[d] = 0;
    g.numel = g.numel && (uint64_t)g.sizes[d] > MOST_NBYTES / g.numel ? MOST_NBYTES : g.numel * (uint64_t)g.sizes[d];
  }
  return g;
}

static uint64_t dense_nbytes(const geometry_t *g) { return g->numel * g->width; }

static uint64_t extent_nbytes(const build_t *b, uint32_t row) {
  geometry_t g = geometry_of(b, row);
  int64_t first, last;
  if (g.numel == 0) return 0;
  if (!tn_reach(g.rank, g.sizes, g.strides, dim(b, b->values[row].offset), &first, &last)) return MOST_NBYTES;
  return last < 0 || (uint64_t)last >= MOST_NBYTES ? MOST_NBYTES : ((uint64_t)last + 1) * g.width;
}

static int is_contiguous(const geometry_t *g) { return tn_is_row_major(g->rank, g->sizes, g->strides); }

/* ---- views ---- */

/* Can `to`, of as many elements, be seen in `from` without a copy? Runs of from's dimensions that step evenly must each
 * be made of whole dimensions of `to`. */
static int is_reshapable(const geometry_t *from, const geometry_t *to) {
  int32_t t = to->rank - 1;
  int64_t run = 1, seen = 1;
  if (from->numel == 0) return 1;
  for (int32_t d = from->rank - 1; d >= 0; d--) {
    run *= from->sizes[d];
    int64_t next = d ? from->strides[d - 1] : 0;
    int ends = d == 0 || (from->sizes[d - 1] != 1 && next != from->strides[d] * from->sizes[d]);
    if (!ends) continue;
    while (t >= 0 && (seen < run || to->sizes[t] == 1)) seen *= to->sizes[t--];
    if (seen != run) return 0;
    run = seen = 1;
  }
  return t == -1;
}

static aot_str_t op_name(const build_t *b, uint32_t n) {
  return aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->nodes[n].op].name);
}

static int has_prefix(aot_str_t s, const char *prefix) {
  size_t n = strlen(prefix);
  return s.size >= n && memcmp(s.data, prefix, n) == 0;
}

static int reshapes(aot_str_t op) {
  static const char *const names[] = {"aten.view.default", "aten._unsafe_view.", "aten.reshape.", "aten.flatten.",
                                      "aten.view_as."};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (has_prefix(op, names[i])) return 1;
  return 0;
}

static void find_base(build_t *b, uint32_t n, uint32_t flags) {
  const aot_snap_node_t *node = &b->nodes[n];
  uint32_t first = b->operand_begin[n], self = first < b->operand_begin[n + 1] ? b->operands[first] : MS_NONE;
  if (!(flags & (AOT_OP_VIEW | AOT_OP_MULTI_VIEW)) || self == MS_NONE) return;
  if (node->n_results == 1 && reshapes(op_name(b, n))) {
    geometry_t from = geometry_of(b, b->m->value_row[self]), to = geometry_of(b, node->result_begin);
    if (from.numel == to.numel && !is_reshapable(&from, &to)) return;
  }
  for (uint32_t v = b->result_begin[n]; v < b->result_begin[n + 1]; v++) b->base[v] = self;
}

/* ---- loops ---- */

static int read_operands(const build_t *b, const aot_snap_node_t *node, lp_operand_t *out, uint32_t n,
                         aot_str_t *word) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + node->arg_begin;
  *word = (aot_str_t){"", 0};
  for (uint32_t k = 0; k < n; k++) {
    memset(&out[k], 0, sizeof out[k]);
    switch (args[k].kind) {
      case AOT_ARG_VALUE:
        if (b->values[args[k].i].kind != AOT_TYPE_TENSOR) return 0;
        out[k] = (lp_operand_t){LP_LOAD, b->values[args[k].i].dtype, b->values[args[k].i].rank};
        break;
      case AOT_ARG_INT: out[k].kind = LP_INT; break;
      case AOT_ARG_FLOAT: out[k].kind = LP_FLOAT; break;
      case AOT_ARG_BOOL: out[k].kind = LP_BOOL; break;
      case AOT_ARG_STR: *word = (aot_str_t){(const char *)b->s + b->s->chars.at + args[k].i, args[k].n}; break;
      case AOT_ARG_VALUES: return 0;
      default: break;
    }
  }
  return 1;
}

static int is_loop(const build_t *b, uint32_t n) {
  const aot_snap_node_t *node = &b->nodes[n];
  const aot_snap_value_t *result = &b->values[node->result_begin];
  uint32_t n_args = node->n_args < LP_ARGS ? node->n_args : LP_ARGS;
  const lp_op_t *op = node->n_results == 1 && result->kind == AOT_TYPE_TENSOR ? lp_op_find(op_name(b, n)) : NULL;
  lp_operand_t operands[LP_ARGS];
  aot_str_t word;
  lp_draw_t draw;
  int32_t compute;
  if (op && lp_op_draws(op, result->dtype, &draw) && result->rank == 0) return 0; /* drawn by its kernel */
  return op && read_operands(b, node, operands, n_args, &word) &&
         lp_choose(op, operands, n_args, word, result->dtype, &compute) != NULL;
}

static uint64_t hash_sizes(const geometry_t *g) {
  uint64_t h = (uint64_t)g->rank + 0x9E3779B97F4A7C15u;
  for (int32_t d = 0; d < g->rank; d++) {
    h = (h ^ (uint64_t)g->sizes[d]) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 29;
  }
  return h;
}

/* Nodes of equal sizes get the number of the first of them. slots: of the table, a power of two. */
static uint32_t space_of(const build_t *b, uint32_t *slots, uint32_t mask, uint32_t n) {
  const geometry_t own = geometry_of(b, b->nodes[n].result_begin);
  for (uint32_t at = (uint32_t)hash_sizes(&own) & mask;; at = (at + 1) & mask) {
    if (slots[at] == MS_NONE) return slots[at] = n;
    const geometry_t other = geometry_of(b, b->nodes[slots[at]].result_begin);
    if (other.rank == own.rank && memcmp(other.sizes, own.sizes, sizeof own.sizes) == 0) return slots[at];
  }
}

static int find_spaces(build_t *b) {
  uint32_t n_slots = 16;
  while (n_slots < 2 * b->graph->n_nodes) n_slots *= 2;
  uint32_t *slots = malloc((size_t)n_slots * 4);
  if (!slots) return -2;
  memset(slots, 0xff, (size_t)n_slots * 4);
  for (uint32_t n = 0; n < b->graph->n_nodes; n++)
    b->space[n] = is_loop(b, n) ? space_of(b, slots, n_slots - 1, n) : MS_NONE;
  free(slots);
  return 0;
}

/* ---- work space and work ---- */

/* The last two dimensions lie as a matrix of a BLAS, either way around. */
static int is_matrix(const geometry_t *g) {
  if (g->rank < 2) return 1;
  int64_t r = g->strides[g->rank - 2], c = g->strides[g->rank - 1];
  int64_t nr = g->sizes[g->rank - 2], nc = g->sizes[g->rank - 1];
  return ((c == 1 || nc == 1) && (r >= nc || nr == 1)) || ((r == 1 || nr == 1) && (c >= nr || nc == 1));
}

static int is_convolution(aot_str_t op) { return has_prefix(op, "aten.conv"); }

/* Copies of operands that do not lie as the kernel reads them. */
static uint64_t copies(const build_t *b, uint32_t n, uint32_t flags, aot_str_t op) {
  uint64_t sum = 0;
  int products = (flags & AOT_OP_HEAVY) && !is_convolution(op);
  if (flags & (AOT_OP_MOVEMENT | AOT_OP_VIEW | AOT_OP_POINTWISE)) return 0;
  for (uint32_t k = b->operand_begin[n]; k < b->operand_begin[n + 1]; k++) {
    geometry_t g = geometry_of(b, b->m->value_row[b->operands[k]]);
    if (products ? !is_matrix(&g) : !is_contiguous(&g)) sum += (dense_nbytes(&g) + MS_ALIGN - 1) / MS_ALIGN * MS_ALIGN;
  }
  return sum;
}

/* The columns of one image: window times positions. */
static uint64_t convolution_work(const build_t *b, uint32_t n) {
  uint32_t first = b->operand_begin[n];
  int backward = b->nodes[n].n_results == 3;
  if (b->operand_begin[n + 1] - first < 2u + (uint32_t)backward) return 0;
  geometry_t w = geometry_of(b, b->m->value_row[b->operands[first + (backward ? 2 : 1)]]);
  geometry_t out = geometry_of(b, backward ? b->m->value_row[b->operands[first]] : b->nodes[n].result_begin);
  uint64_t positions = 1;
  for (int32_t d = 2; d < out.rank; d++) positions *= (uint64_t)out.sizes[d];
  return w.rank && w.sizes[0] ? w.numel / (uint64_t)w.sizes[0] * positions * 4 : 0;
}

static geometry_t operand_geometry(const build_t *b, uint32_t n, uint32_t k) {
  geometry_t none = {0};
  return b->operand_begin[n] + k < b->operand_begin[n + 1]
             ? geometry_of(b, b->m->value_row[b->operands[b->operand_begin[n] + k]])
             : none;
}

static uint64_t at_most(uint64_t n, uint64_t most) { return n < most ? n : most; }

/* Blocks of 64 queries, a thread. Forward: their scores with 128 keys, queries twice, output. Backward: two tiles of
 * scores with all keys, whose gradients are summed up beside; k: position of the query. */
static uint64_t attention_work(const build_t *b, uint32_t n, uint32_t k, int backward) {
  const geometry_t query = operand_geometry(b, n, k), key = operand_geometry(b, n, k + 1);
  const geometry_t value = operand_geometry(b, n, k + 2);
  if (query.rank < 2 || key.rank < 2 || value.rank < 2) return 0;
  const uint64_t queries = at_most((uint64_t)query.sizes[query.rank - 2], 64);
  const uint64_t keys = (uint64_t)key.sizes[key.rank - 2], width = (uint64_t)query.sizes[query.rank - 1];
  const uint64_t width_v = (uint64_t)value.sizes[value.rank - 1];
  const uint64_t tiles = backward ? keys * (2 * queries + width + width_v) : queries * at_most(keys, 128);
  const uint64_t rows = queries * (backward ? 3 * width + 2 * width_v : 2 * width + width_v);
  return (tiles + rows) * 4 * MS_THREADS;
}

/* Sums for weight and bias a thread. */
static uint64_t norm_work(const build_t *b, uint32_t n) {
  geometry_t g = operand_geometry(b, n, 1);
  uint64_t row = 1;
  for (int32_t d = 0; d < g.rank; d++) row = g.sizes[d] > (int64_t)row ? (uint64_t)g.sizes[d] : row;
  return 2 * row * 4 * MS_THREADS;
}

/* Of the regions that node n may run: the largest, one runs at a time. */
static uint64_t region_work(const build_t *b, uint32_t n) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + b->nodes[n].arg_begin;
  uint64_t most = 0;
  for (uint32_t a = 0; b->inside && a < b->nodes[n].n_args; a++)
    if (args[a].kind == AOT_ARG_GRAPH && b->inside[args[a].i] > most) most = b->inside[args[a].i];
  return most;
}

static uint64_t scratch_of(const build_t *b, uint32_t n, uint32_t flags) {
  aot_str_t op = op_name(b, n);
  uint64_t sum = flags & AOT_OP_REGION ? region_work(b, n) : copies(b, n, flags, op);
  if (is_convolution(op)) sum += convolution_work(b, n);
  if (has_prefix(op, "aten.scaled_dot_product_attention.")) sum += attention_work(b, n, 0, 0);
  if (has_prefix(op, "aot.scaled_dot_product_attention_backward.")) sum += attention_work(b, n, 1, 1);
  if (has_prefix(op, "aten._scaled_dot_product_flash_attention_for_cpu.")) sum += attention_work(b, n, 0, 0);
  if (has_prefix(op, "aten._scaled_dot_product_flash_attention_for_cpu_backward.")) sum += attention_work(b, n, 1, 1);
  if (has_prefix(op, "aten.native_layer_norm_backward.") || has_prefix(op, "aot.layer_norm_backward."))
    sum += norm_work(b, n);
  return sum;
}

static double product_flops(double a, double w, double out, double batch) {
  return 2 * sqrt(a * w * out / (batch < 1 ? 1 : batch));
}

/* A product of m x k and k x n, batch times: its three sizes tell 2 * batch * m * n * k. A convolution does as many for
 * each element of its result as its window is large. */
static uint64_t flops_of(const build_t *b, uint32_t n, uint32_t flags) {
  geometry_t largest[2] = {{0}, {0}}, out = {0};
  if (!(flags & AOT_OP_HEAVY)) return 0;
  for (uint32_t k = b->operand_begin[n]; k < b->operand_begin[n + 1]; k++) {
    geometry_t g = geometry_of(b, b->m->value_row[b->operands[k]]);
    if (g.numel > largest[0].numel) largest[1] = largest[0], largest[0] = g;
    else if (g.numel > largest[1].numel) largest[1] = g;
  }
  for (uint32_t r = 0; r < b->nodes[n].n_results; r++) {
    geometry_t g = geometry_of(b, b->nodes[n].result_begin + r);
    if (g.numel > out.numel) out = g;
  }
  if (is_convolution(op_name(b, n))) { /* 4 bytes of work an element of the window and position */
    uint64_t columns = convolution_work(b, n) / 4, images = out.rank > 2 ? (uint64_t)out.sizes[0] : 1;
    geometry_t w = largest[1].rank ? largest[1] : largest[0];
    double channels = w.rank ? (double)w.sizes[0] : 1;
    return (uint64_t)((b->nodes[n].n_results == 3 ? 4 : 2) * (double)columns * (double)images * channels);
  }
  double batch = 1;
  for (int32_t d = 0; d + 2 < out.rank && out.rank == largest[0].rank && out.rank == largest[1].rank; d++)
    if (out.sizes[d] == largest[0].sizes[d] && out.sizes[d] == largest[1].sizes[d]) batch *= (double)out.sizes[d];
  return (uint64_t)product_flops((double)largest[0].numel, (double)largest[1].numel, (double)out.numel, batch);
}

/* ---- all of it ---- */

static int allocate(build_t *b) {
  size_t nodes = (size_t)b->graph->n_nodes + 1, operands = 1, values = (size_t)b->graph->n_inputs + 1;
  for (uint32_t n = 0; n < b->graph->n_nodes; n++) {
    operands += b->nodes[n].n_operands;
    values += b->nodes[n].n_results;
  }
  b->operand_begin = calloc(nodes, 4);
  b->operands = calloc(operands, 4);
  b->result_begin = calloc(nodes, 4);
  b->base = calloc(values, 4);
  b->space = calloc(nodes, 4);
  b->nbytes = calloc(values, 8);
  b->scratch = calloc(nodes, 8);
  b->m->value_row = calloc(values, 4);
  b->m->flops = calloc(nodes, 8);
  b->m->extent = calloc(values, 8);
  b->m->base = b->base;
  b->value_of_row = malloc(((size_t)b->s->values.count + 1) * 4);
  b->m->graph = (ms_graph_t){
      .n_nodes = b->graph->n_nodes,
      .n_values = (uint32_t)values - 1,
      .operand_begin = b->operand_begin,
      .operands = b->operands,
      .result_begin = b->result_begin,
      .nbytes = b->nbytes,
      .base = b->base,
      .space = b->space,
      .scratch = b->scratch,
      .max_loop = MS_MAX_LOOP,
      .align = MS_ALIGN,
  };
  if (!b->operand_begin || !b->operands || !b->result_begin || !b->base || !b->space || !b->nbytes || !b->scratch ||
      !b->m->value_row || !b->m->flops || !b->m->extent || !b->value_of_row)
    return -2;
  memset(b->value_of_row, 0xff, ((size_t)b->s->values.count + 1) * 4);
  return 0;
}

static uint64_t nbytes_of(const build_t *b, uint32_t row) {
  const int32_t kind = b->values[row].kind;
  if (kind == AOT_TYPE_SYMINT || kind == AOT_TYPE_SYMBOOL || kind == AOT_TYPE_SYMFLOAT) return 8;
  geometry_t g = geometry_of(b, row);
  return dense_nbytes(&g);
}

static void add_value(build_t *b, uint32_t v, uint32_t row) {
  if (row == AOT_NO_ID) return;
  b->value_of_row[row] = v;
  b->m->value_row[v] = row;
  b->nbytes[v] = nbytes_of(b, row);
  b->m->extent[v] = b->values[row].kind == AOT_TYPE_TENSOR ? extent_nbytes(b, row) : b->nbytes[v];
}

static void fill(build_t *b) {
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops);
  uint32_t v = 0, at = 0;
  for (uint32_t i = 0; i < b->graph->n_inputs; i++, v++) add_value(b, v, inputs[i].value);
  for (uint32_t i = 0; i < b->m->graph.n_values; i++) b->base[i] = i;
  for (uint32_t n = 0; n < b->graph->n_nodes; n++) {
    b->operand_begin[n] = at;
    b->result_begin[n] = v;
    for (uint32_t k = 0; k < b->nodes[n].n_operands; k++) {
      uint32_t row = operands[b->nodes[n].operand_begin + k];
      if (row != AOT_NO_ID) b->operands[at++] = b->value_of_row[row];
    }
    for (uint32_t r = 0; r < b->nodes[n].n_results; r++, v++) add_value(b, v, b->nodes[n].result_begin + r);
    b->operand_begin[n + 1] = at;
    b->result_begin[n + 1] = v;
    find_base(b, n, ops[b->nodes[n].op].flags);
    b->scratch[n] = scratch_of(b, n, ops[b->nodes[n].op].flags);
    b->m->flops[n] = flops_of(b, n, ops[b->nodes[n].op].flags);
  }
}

int ms_sim_init(ms_sim_t *m, const aot_snapshot_t *s, uint32_t graph_row, const int64_t *dims, const uint64_t *inside) {
  build_t b;
  memset(m, 0, sizeof *m);
  memset(&b, 0, sizeof b);
  b.s = s;
  b.graph = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + graph_row;
  b.nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + b.graph->node_begin;
  b.values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  b.dims = dims;
  b.inside = inside;
  b.m = m;
  int status = allocate(&b);
  if (status == 0) {
    fill(&b);
    status = find_spaces(&b);
  }
  free(b.value_of_row);
  return status;
}

void ms_sim_deinit(ms_sim_t *m) {
  const void *arrays[] = {
      m->graph.operand_begin, m->graph.operands, m->graph.result_begin, m->graph.nbytes, m->graph.base,
      m->graph.space,         m->graph.scratch,  m->value_row,          m->flops,        m->extent};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free((void *)(uintptr_t)arrays[i]);
  memset(m, 0, sizeof *m);
}
