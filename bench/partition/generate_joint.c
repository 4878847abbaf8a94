#include "generate_joint.h"
#include "kit/base/splitmix.h"

#include <aot/graph.h>
#include <aot/opset.h>
#include <string.h>

const char *const gj_names[GJ_SHAPES] = {"layers", "random", "chains"};

enum { X, W, TANGENT, N_INPUTS, MAX_OPERANDS = 4 };

typedef struct maker {
  jg_joint_t *j;
  uint32_t at, n, n_forward, wanted;
  uint64_t state;
  uint32_t chain; /* the backward's last value */
} maker_t;

static uint32_t next_random(maker_t *m, uint32_t below) { return (uint32_t)(kit_splitmix64(&m->state) % below); }

/* The names are those that PyTorch's lists know; the flags say the same. */
enum { OP_MM, OP_ADD, OP_MUL, OP_GELU, OP_VIEW, OP_MEAN, OP_CAST };
static const struct {
  const char *name;
  uint32_t flags;
} ops[] = {{"aten.mm.default", AOT_OP_HEAVY},
           {"aten.add.Tensor", AOT_OP_POINTWISE},
           {"aten.mul.Tensor", AOT_OP_POINTWISE},
           {"aten.gelu.default", AOT_OP_POINTWISE},
           {"aten.view.default", AOT_OP_VIEW},
           {"aten.mean.dim", AOT_OP_REDUCTION},
           {"prims.convert_element_type.default", AOT_OP_POINTWISE}};

static uint32_t node(maker_t *m, int op, uint64_t nbytes, uint32_t a, uint32_t b) {
  jg_joint_t *j = m->j;
  const uint32_t v = N_INPUTS + m->n;
  j->operand_begin[m->n] = m->at;
  j->operands[m->at++] = a;
  if (b != a) j->operands[m->at++] = b;
  j->result_begin[m->n] = v;
  j->op_flags[m->n] = ops[op].flags;
  j->op_name[m->n] = (aot_str_t){ops[op].name, strlen(ops[op].name)};
  j->node_id[m->n] = m->n;
  j->def[v] = m->n++;
  j->nbytes[v] = nbytes;
  return v;
}

/* The backward of some nodes: each reads the chain and one or two forward values. */
static void go_back(maker_t *m, const uint32_t *values, uint32_t n) {
  for (uint32_t i = n; i-- > 0 && m->n < m->wanted;)
    m->chain = node(m, values[i] % 16 ? OP_MUL : OP_MM, 4096, m->chain, values[i]);
}

static void make_layers(maker_t *m) {
  const uint64_t s = 1 << 20;
  uint32_t x = X;
  while (m->n + 12 <= m->n_forward) {
    const uint32_t cast = node(m, OP_CAST, s / 2, x, x), mean = node(m, OP_MEAN, s / 768, x, cast);
    const uint32_t norm = node(m, OP_MUL, s, x, mean), wide = node(m, OP_MM, 3 * s, norm, W);
    const uint32_t view = node(m, OP_VIEW, 3 * s, wide, wide), back = node(m, OP_VIEW, 3 * s, view, view);
    const uint32_t out = node(m, OP_MM, s, back, W), res = node(m, OP_ADD, s, x, out);
    const uint32_t up = node(m, OP_MM, 4 * s, res, W), act = node(m, OP_GELU, 4 * s, up, up);
    const uint32_t down = node(m, OP_MM, s, act, W);
    x = node(m, OP_ADD, s, res, down);
  }
  m->n_forward = m->n;
  for (uint32_t v = N_INPUTS + m->n_forward; v-- > N_INPUTS && m->n < m->wanted;) go_back(m, &v, 1);
}

static void make_random(maker_t *m) {
  const uint32_t n = m->n_forward;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t known = N_INPUTS - 1 + i, near = i > 64 ? 64 : i + 1;
    uint32_t a = i ? N_INPUTS + i - 1 - next_random(m, near > i ? i : near) : X, b = next_random(m, known);
    if (b >= TANGENT) b++;
    node(m, next_random(m, 8) ? OP_ADD + (int)next_random(m, 5) : OP_MM, 4096u * (1 + next_random(m, 64)), a, b);
  }
  while (m->n < m->wanted) {
    const uint32_t v = N_INPUTS + next_random(m, n);
    go_back(m, &v, 1);
  }
}

/* Step k of chain c reads step k - 1 of c and of its neighbour; every eighth reads the chain's first node, so that each
 * of them has very many users, and fusion is never interrupted. */
static void make_chains(maker_t *m) {
  enum { CHAINS = 32 };
  for (uint32_t i = 0; i < m->n_forward; i++) {
    const uint32_t c = i % CHAINS, k = i / CHAINS, last = N_INPUTS + i - CHAINS;
    const uint32_t other = k == 0 ? X : k % 8 ? N_INPUTS + (k - 1) * CHAINS + (c + 1) % CHAINS : N_INPUTS + c;
    node(m, k % 512 == 511 ? OP_MM : OP_ADD + (int)((i * 7 + k) % 3), 4096u * (1 + (i * 37) % 61), k ? last : X, other);
  }
  for (uint32_t v = N_INPUTS + m->n_forward; v-- > N_INPUTS && m->n < m->wanted;) go_back(m, &v, 1);
}

int gj_make(int shape, uint32_t n_nodes, uint64_t seed, jg_joint_t *out) {
  memset(out, 0, sizeof *out);
  if (n_nodes < 64) n_nodes = 64;
  *out = (jg_joint_t){.n_nodes = n_nodes, .n_inputs = N_INPUTS, .n_values = N_INPUTS + n_nodes};
  if (jg_joint_alloc(out, (size_t)n_nodes * MAX_OPERANDS, 8) != 0) {
    jg_joint_deinit(out);
    return -2;
  }
  static const uint8_t kinds[N_INPUTS] = {JG_INPUT_DYNAMIC, JG_INPUT_STATIC, JG_INPUT_TANGENT};
  for (uint32_t v = 0; v < N_INPUTS; v++) {
    out->def[v] = JG_NONE;
    out->input_kind[v] = kinds[v];
    out->nbytes[v] = 1 << 20;
  }
  maker_t m = {.j = out, .n_forward = n_nodes / 2, .wanted = n_nodes, .state = seed, .chain = TANGENT};
  if (shape == GJ_LAYERS) make_layers(&m);
  else if (shape == GJ_RANDOM) make_random(&m);
  else make_chains(&m);
  out->n_nodes = m.n;
  out->n_values = N_INPUTS + m.n;
  out->operand_begin[m.n] = m.at;
  out->result_begin[m.n] = out->n_values;
  out->forward_outputs[out->n_forward_outputs++] = N_INPUTS + m.n_forward - 1;
  out->gradients[out->n_gradients++] = m.chain;
  for (uint32_t v = 0; v < out->n_values; v++) out->value_id[v] = v;
  jg_joint_link(out);
  return 0;
}
