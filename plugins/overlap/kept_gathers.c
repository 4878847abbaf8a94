#include "kept_gathers.h"

#include "step_nodes.h"

#include <string.h>

/* What is gathered in between is no more than this part of the parameter: norms next to matrices. */
enum { SMALL_PART = 16 };

typedef struct gather {
  uint32_t leaf; /* the value that ranks share out; AOT_NO_ID: none */
  int32_t dtype; /* that it is gathered in */
  int64_t n_ranks;
  char group[32];
  uint64_t nbytes; /* of the whole */
  aot_node_t node, wait;
  aot_value_t whole; /* what waits for it makes */
} gather_t;

/* The graph's input that is gathered, as it is or cast; AOT_NO_ID: something else is. */
static uint32_t find_leaf(em_t *e, aot_value_t v) {
  const aot_graph_api_t *g = e->host->graph;
  if (g->value_def(e->prog, v).id == AOT_NO_ID) return v.id;
  const aot_value_t from = ov_uncast(e, v);
  return from.id != AOT_NO_ID && g->value_def(e->prog, from).id == AOT_NO_ID ? from.id : AOT_NO_ID;
}

/* Of a node that waits for a gather that nothing else reads. 0: it is none. */
static int find_gather(em_t *e, aot_node_t wait, gather_t *out) {
  const aot_graph_api_t *g = e->host->graph;
  *out = (gather_t){.leaf = AOT_NO_ID, .wait = wait};
  if (em_look(e, wait) != AOT_OK || !ov_is_node(e, "_c10d_functional.wait_tensor.default")) return 0;
  const aot_value_t v = {e->info.operands[0]};
  out->whole = e->info.first_result;
  out->node = g->value_def(e->prog, v);
  if (out->node.id == AOT_NO_ID || g->n_uses(e->prog, v) != 1 || em_look(e, out->node) != AOT_OK ||
      !ov_is_node(e, "_c10d_functional.all_gather_into_tensor.default"))
    return 0;
  const int32_t dtype = em_type(e, em_v(v)).dtype;
  const em_x_t n_ranks = em_in(e, "group_size"), group = em_in(e, "group_name");
  if (e->status != AOT_OK || n_ranks.kind != AOT_ARG_INT || group.kind != AOT_ARG_STR || group.n >= sizeof out->group)
    return 0;
  out->leaf = find_leaf(e, (aot_value_t){e->info.operands[0]});
  out->dtype = dtype;
  out->n_ranks = n_ranks.u.i;
  out->nbytes = ov_nbytes(e, v);
  memcpy(out->group, group.u.chars, group.n);
  return 1;
}

static int is_again(const gather_t *a, const gather_t *b) {
  return a->leaf != AOT_NO_ID && a->leaf == b->leaf && a->dtype == b->dtype && a->n_ranks == b->n_ranks &&
         strcmp(a->group, b->group) == 0;
}

static aot_status_t leave_out(em_t *e, const gather_t *second, aot_value_t whole) {
  const aot_graph_api_t *g = e->host->graph;
  AOT_TRY(em_look(e, second->node));
  const aot_value_t part = {e->info.operands[0]};
  const aot_node_t cast = g->value_def(e->prog, part);
  em_take_over(e, second->whole, whole, 1);
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->node_erase(e->prog, second->wait));
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->node_erase(e->prog, second->node));
  if (em_ok(e, AOT_OK) && cast.id != AOT_NO_ID && g->n_uses(e->prog, part) == 0)
    em_ok(e, e->host->edit->node_erase(e->prog, cast));
  return e->status;
}

aot_status_t ov_keep_gathers(em_t *e, uint32_t *io_n) {
  const aot_graph_api_t *g = e->host->graph;
  gather_t last = {.leaf = AOT_NO_ID}, at; /* the last large one */
  uint64_t since = 0;                      /* bytes of others after it */
  for (aot_node_t n = g->first(e->prog, e->graph), next; n.id != AOT_NO_ID; n = next) {
    next = g->next(e->prog, n);
    if (!find_gather(e, n, &at)) {
      AOT_TRY(e->status);
    } else if (is_again(&last, &at)) {
      AOT_TRY(leave_out(e, &at, last.whole));
      ++*io_n;
    } else {
      since += at.nbytes;
      if (since <= last.nbytes / SMALL_PART) continue;
      last = at;
      since = 0;
    }
  }
  return e->status;
}
