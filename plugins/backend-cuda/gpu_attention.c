#include "gpu_attention.h"

#include "attention_steps.h"
#include "cudnn/gpu_dnn.h"
#include "gpu_masks.h"
#include "flash_attention.h"
#include <aot/inline.h>
#include <string.h>

enum { LEAST_CAPABILITY = 8, WIDE_CAPABILITY = 9, WIDTH = 128, WIDE_WIDTH = 256, WIDTH_STEP = 8 };
enum { OLDEST_CUDNN = 91002 }; /* before it a masked score has to be another number, and 9.10.0 is wrong */

static int is_half(int32_t dtype) { return dtype == AOT_BF16 || dtype == AOT_F16; }
static int fits_width(int64_t width, int64_t widest) { return width > 0 && width <= widest && width % WIDTH_STEP == 0; }

/* ---- before there is a device ---- */

int64_t gc_attention_widest(const char *cudnn_folder) {
  gc_cudnn_t cudnn = {.folder = cudnn_folder};
  gc_driver_t driver;
  gc_ordinal_t device;
  char why[256];
  int major = 0;
  if (gc_cudnn_open(&cudnn, why, sizeof why) || cudnn.version < OLDEST_CUDNN) return 0;
  if (gc_driver_open(&driver, why, sizeof why) || driver.device_get(&device, 0) != GC_SUCCESS ||
      driver.device_get_attribute(&major, GC_CAPABILITY_MAJOR, device) != GC_SUCCESS)
    return 0;
  return major < LEAST_CAPABILITY ? 0 : major == WIDE_CAPABILITY ? WIDE_WIDTH : WIDTH;
}

static const int64_t *sizes_of(const aot_snapshot_t *s, const aot_snap_value_t *v) {
  return AOT_SNAP_ROWS(s, int64_t, ints) + v->dims;
}
static const aot_snap_value_t *tensor_at(const aot_snapshot_t *s, const aot_snap_arg_t *a) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(s, aot_snap_value_t, values) + a->i;
  return a->kind == AOT_ARG_VALUE && v->kind == AOT_TYPE_TENSOR ? v : NULL;
}

/* As many heads, or a number of them for each of the keys'. */
static int share_heads(int64_t of_queries, int64_t of_keys, int may_share) {
  if (of_queries == of_keys) return 1;
  return may_share && !AOT_DIM_IS_SYM(of_queries) && !AOT_DIM_IS_SYM(of_keys) && of_keys > 0 &&
         of_queries % of_keys == 0;
}

/* Log sums that are handed out are a program's, and those of rows that see nothing are set here (gpu_masks.h). */
static int is_whole_mask(const aot_snapshot_t *s, const aot_snap_node_t *node, const lw_attention_places_t *at,
                         int32_t dtype) {
  const aot_snap_arg_t *mask = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin + at->mask;
  if (at->mask >= node->n_args || mask->kind == AOT_ARG_NONE) return 1;
  const aot_snap_value_t *v = tensor_at(s, mask);
  const int gives_sums = at->output != LW_NONE || node->n_results == 2;
  return v && !gives_sums && v->rank <= 4 && (v->dtype == AOT_BOOL || v->dtype == AOT_F32 || v->dtype == dtype);
}

int gc_attention_is_whole(const aot_snapshot_t *s, const aot_snap_node_t *node, int64_t widest) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(s, aot_snap_op_t, ops) + node->op;
  const lw_attention_places_t *at = lw_attention_places(aot_snap_text(s, op->name));
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  const aot_snap_value_t *operands[3];
  if (!at || node->n_args < at->query + 3) return 0;
  const int may_share = at->gqa < node->n_args && args[at->gqa].kind == AOT_ARG_BOOL && args[at->gqa].i;
  for (uint32_t i = 0; i < 3; i++) {
    const aot_snap_value_t *v = operands[i] = tensor_at(s, &args[at->query + i]);
    if (!v || !is_half(v->dtype) || v->dtype != operands[0]->dtype || v->rank != 4) return 0;
    const int64_t *sizes = sizes_of(s, v), *of_query = sizes_of(s, operands[0]);
    if (sizes[0] != of_query[0] || !share_heads(of_query[1], sizes[1], may_share)) return 0;
    if (AOT_DIM_IS_SYM(sizes[3]) || !fits_width(sizes[3], widest)) return 0;
  }
  if (sizes_of(s, operands[1])[1] != sizes_of(s, operands[2])[1]) return 0;
  double dropout = 0;
  if (at->dropout < node->n_args && args[at->dropout].kind == AOT_ARG_FLOAT)
    memcpy(&dropout, &args[at->dropout].i, sizeof dropout);
  if (at->keep != LW_NONE && args[at->keep].kind != AOT_ARG_VALUE) return 0;
  return (at->keep != LW_NONE ? dropout < 1 : dropout == 0) && is_whole_mask(s, node, at, operands[0]->dtype);
}

/* ---- steps ---- */

static int takes(lw_build_t *b, const lw_attention_places_t *at, lw_attention_t *out) {
  if (!lw_attention_call(b, at, out) || !is_half(out->q->dtype) || out->q->rank != 4) return 0;
  if (out->keep && out->keep->dtype != out->q->dtype) return 0;
  return !out->mask || (at->output == LW_NONE && b->node->n_results != 2);
}

/* Operands in memory; t has their types. */
static aot_status_t make_operands(lw_build_t *b, const lw_attention_t *a, const gc_mask_t **out_mask, lw_tensor_t *t) {
  const lw_tensor_t *const operands[] = {a->q, a->k, a->v};
  for (int i = 0; i < 3; i++) AOT_TRY(gc_make_plain(b, operands[i], &t[i]));
  *out_mask = NULL;
  if (a->keep) AOT_TRY(lw_contiguous(b, a->keep, &t[GC_ATT_KEEP]));
  if (!a->mask) return AOT_OK;
  AOT_TRY(gc_make_mask(b, a, out_mask));
  t[GC_ATT_BIAS] = (*out_mask)->bias;
  return AOT_OK;
}
static void operand_types(const lw_build_t *b, const lw_attention_t *a, lw_tensor_t *t) {
  const lw_tensor_t *const operands[] = {a->q, a->k, a->v};
  for (int i = 0; i < 3; i++) t[i] = gc_plain_type(b, operands[i]);
  if (a->mask) t[GC_ATT_BIAS] = gc_bias_type(a);
  if (!a->keep) return;
  t[GC_ATT_KEEP] = *a->keep;
  lw_make_contiguous(&t[GC_ATT_KEEP]);
}

/* cuDNN's forward, and what it leaves to do for rows that see nothing. */
static aot_status_t add_forward(lw_build_t *b, const gc_dnn_plan_t *plan, const gc_dnn_graph_t *graph,
                                const gc_mask_t *mask, const lw_tensor_t *t) {
  AOT_TRY(gc_add_dnn(b, plan, graph, t, GC_ATT_STATS + 1));
  return mask ? gc_hide_rows(b, mask, &t[GC_ATT_O], &t[GC_ATT_STATS]) : AOT_OK;
}

static aot_status_t forward(lw_build_t *b, const lw_attention_places_t *at) {
  lw_attention_t a;
  lw_tensor_t t[GC_ATT_STATS + 1] = {{0}};
  const gc_mask_t *mask;
  gc_dnn_graph_t graph;
  if (!takes(b, at, &a) || !lw_is_attention_output(lw_type(b, 0), &a)) return LW_DECLINED;
  const int has_lse = b->node->n_results > 1 && lw_type(b, 1)->dtype;
  if (has_lse && !lw_is_attention_lse(lw_type(b, 1), &a)) return LW_DECLINED;
  operand_types(b, &a, t);
  t[GC_ATT_O] = gc_plain_result_type(b, 0);
  t[GC_ATT_STATS] = gc_rows_type(&a);
  const gc_attention_t call = gc_describe_attention(&a, t, GC_ATT_STATS + 1);
  gc_attention_forward(&call, &graph);
  const gc_dnn_plan_t *plan = gc_dnn_plan_of(b, &graph);
  if (!plan) return LW_DECLINED;
  AOT_TRY(make_operands(b, &a, &mask, t));
  AOT_TRY(gc_make_plain_result(b, 0, &t[GC_ATT_O]));
  if (has_lse) AOT_TRY(lw_result_dense(b, 1, &t[GC_ATT_STATS]));
  else AOT_TRY(lw_new_tensor(b, &t[GC_ATT_STATS]));
  AOT_TRY(add_forward(b, plan, &graph, mask, t));
  return gc_keep_attention(b, at, &a, &t[GC_ATT_O], &t[GC_ATT_STATS], NULL);
}

/* What the forward gave: the operator's own arguments, what a forward of the same graph stored, or NULL. */
static int find_output(const lw_build_t *b, const lw_attention_places_t *at, const lw_attention_t *a,
                       const lw_tensor_t **out_o, const lw_tensor_t **out_stats) {
  const gc_kept_attention_t *kept = at->output == LW_NONE ? gc_find_kept_attention(b, at, a) : NULL;
  *out_o = kept ? &kept->o : NULL;
  *out_stats = kept ? &kept->stats : NULL;
  if (at->output == LW_NONE) return 1;
  *out_o = lw_arg_tensor(b, at->output);
  *out_stats = lw_arg_tensor(b, at->output + 1);
  return *out_o && *out_stats && lw_is_attention_output(*out_o, a) && lw_is_attention_lse(*out_stats, a);
}

static lw_tensor_t query_sums_type(const lw_attention_t *a) {
  lw_tensor_t t = *a->q;
  t.dtype = AOT_F32;
  lw_make_contiguous(&t);
  return t;
}

/* With the sums that are requested, or ordered ones where cuDNN has no engine for those. NULL: for neither. */
static const gc_dnn_plan_t *plan_backward(lw_build_t *b, const gc_attention_t *call, gc_dnn_graph_t *out) {
  const gc_lowering_t *l = b->machine->self;
  const gc_dnn_plan_t *plan = NULL;
  if (l->choices->attention_order == GC_ATT_IN_ANY_ORDER) {
    gc_attention_backward(call, GC_ATT_IN_ANY_ORDER, out);
    plan = gc_dnn_plan_of(b, out);
  }
  if (plan) return plan;
  gc_attention_backward(call, GC_ATT_ORDERED, out);
  return gc_dnn_plan_of(b, out);
}

static aot_status_t backward(lw_build_t *b, const lw_attention_places_t *at) {
  const lw_tensor_t *go = lw_arg_tensor(b, 0), *o, *stats;
  const gc_dnn_plan_t *again = NULL;
  lw_attention_t a;
  lw_tensor_t t[GC_ATT_N_IN_MEMORY] = {{0}};
  const gc_mask_t *mask;
  gc_dnn_graph_t graph, forward_graph;
  if (!go || !takes(b, at, &a) || b->node->n_results != 3 || !lw_is_attention_output(go, &a)) return LW_DECLINED;
  const lw_tensor_t *const operands[] = {a.q, a.k, a.v};
  for (uint32_t r = 0; r < 3; r++)
    if (lw_type(b, r)->dtype != go->dtype || !lw_same_sizes(lw_type(b, r), operands[r])) return LW_DECLINED;
  if (!find_output(b, at, &a, &o, &stats)) return LW_DECLINED;

  operand_types(b, &a, t);
  t[GC_ATT_O] = gc_plain_type(b, o ? o : go);
  if (!o) lw_make_contiguous(&t[GC_ATT_O]);
  t[GC_ATT_GO] = gc_plain_type(b, go);
  if (gc_weighs_rows(&a)) lw_make_contiguous(&t[GC_ATT_GO]);
  for (uint32_t r = 0; r < 3; r++) t[GC_ATT_GQ + r] = gc_plain_result_type(b, r);
  t[GC_ATT_STATS] = t[GC_ATT_SUMS] = gc_rows_type(&a);
  t[GC_ATT_GQ_SUMS] = query_sums_type(&a);
  const gc_attention_t call = gc_describe_attention(&a, t, GC_ATT_N_IN_MEMORY);
  gc_attention_forward(&call, &forward_graph);
  const gc_dnn_plan_t *plan = plan_backward(b, &call, &graph);
  if (!plan || (!o && !(again = gc_dnn_plan_of(b, &forward_graph)))) return LW_DECLINED;

  AOT_TRY(make_operands(b, &a, &mask, t));
  if (gc_weighs_rows(&a)) AOT_TRY(gc_weigh_rows(b, mask, go, &t[GC_ATT_GO]));
  else AOT_TRY(gc_make_plain(b, go, &t[GC_ATT_GO]));
  if (o) AOT_TRY(gc_make_plain(b, o, &t[GC_ATT_O]));
  else AOT_TRY(lw_new_tensor(b, &t[GC_ATT_O]));
  if (o) AOT_TRY(lw_contiguous(b, stats, &t[GC_ATT_STATS]));
  else AOT_TRY(lw_new_tensor(b, &t[GC_ATT_STATS]));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(gc_make_plain_result(b, r, &t[GC_ATT_GQ + r]));
  AOT_TRY(lw_new_tensor(b, &t[GC_ATT_SUMS]));
  if (gc_dnn_is_used(&graph, GC_ATT_GQ_SUMS)) AOT_TRY(lw_new_tensor(b, &t[GC_ATT_GQ_SUMS]));
  if (again) AOT_TRY(add_forward(b, again, &forward_graph, mask, t));
  return gc_add_dnn(b, plan, &graph, t, GC_ATT_N_IN_MEMORY);
}

static aot_status_t lower_attention(lw_build_t *b) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + b->node->op;
  const lw_attention_places_t *at = lw_attention_places(aot_snap_text(b->s, op->name));
  if (gc_is_own_attention(b)) return gc_lower_own_attention(b, at);
  return at->is_backward ? backward(b, at) : forward(b, at);
}

const lw_lowering_table_t gc_lowerings_attention = {
    .has = lw_is_attention, .lower = lower_attention, .goes_by_strides = 1};
