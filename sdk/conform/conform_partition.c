/* Rules of partitions: what is in the halves, beyond that they compute what the joint graph did (ir/halves.h),
 * which the host holds every partition against. Values are distinguished by their numbers (ir/value_numbers.h). */
#include <sdk/conform/conform_trial.h>

#include <aot/inline.h>
#include <ir/halves.h>
#include <ir/tables.h>
#include <trainer/trial/memory_plan.h>
#include <sandbox/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs of class joint, which have tags, draws and updated leaves, then those of class plain, made joint by
 * autograd. */
static const aoth_conform_program_t *nth(const aoth_trial_t *t, uint32_t number) {
  uint32_t n_joint = 0;
  while (aoth_trial_nth(t, "joint", n_joint)) n_joint++;
  return number < n_joint ? aoth_trial_nth(t, "joint", number) : aoth_trial_nth(t, "plain", number - n_joint);
}

/* The joint graph of the session's program, made for the trial. NO_ID: the trial has ended. */
static aot_graph_t joint_program(aoth_trial_t *t) {
  const aoth_conform_program_t *p = nth(t, t->number);
  aot_graph_t joint = {AOT_NO_ID};
  if (!p) {
    aoth_trial_none(t);
    return joint;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (aoth_trial_program(t, p)) joint = aoth_graph_graph_find(t->s->now.prog, AOT_GRAPH_JOINT);
  if (t->end == AOTH_CONFORM_PASSED && joint.id == AOT_NO_ID)
    aoth_trial_end(t, AOTH_CONFORM_NOT, "it has no joint graph");
  return joint;
}

/* ---- 401 ---- */

void aoth_rule_halves(aoth_trial_t *t) {
  if (joint_program(t).id != AOT_NO_ID) aoth_trial_run(t);
}

/* ---- 402 ---- */

/* What a graph's outputs need: by value. NULL: no memory. Free it. */
static uint8_t *needed_values(aot_prog_t *p, aot_graph_t g, uint32_t *out_n_dead) {
  uint8_t *needed = calloc(aoth_graph_n_values(p) + 1u, 1);
  const aot_port_t *outputs = aoth_graph_outputs(p, g);
  *out_n_dead = 0;
  for (uint32_t i = 0; needed && i < aoth_graph_n_outputs(p, g); i++)
    if (outputs[i].value.id != AOT_NO_ID) needed[outputs[i].value.id] = 1;
  for (aot_node_t n = aoth_graph_last(p, g); needed && n.id != AOT_NO_ID; n = aoth_graph_prev(p, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (aoth_graph_node_info(p, n, &info) != AOT_OK) continue;
    int is_needed = (aoth_graph_op_desc(p, info.op)->flags & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE)) != 0;
    for (uint32_t i = 0; i < info.n_results; i++) is_needed |= needed[info.first_result.id + i];
    for (uint32_t i = 0; is_needed && i < info.n_operands; i++) needed[info.operands[i]] = 1;
    *out_n_dead += !is_needed;
  }
  return needed;
}

static void check_backward(aoth_trial_t *t, aot_graph_t backward) {
  aot_prog_t *p = t->s->now.prog;
  const aot_port_t *inputs = aoth_graph_inputs(p, backward);
  uint32_t n_dead;
  uint8_t *needed = needed_values(p, backward, &n_dead);
  if (needed && n_dead)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "%u nodes of the backward compute what nobody needs", n_dead);
  for (uint32_t i = 0; needed && i < aoth_graph_n_inputs(p, backward); i++)
    if (inputs[i].role == AOT_ROLE_SAVED && !needed[inputs[i].value.id])
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "slot %u is saved, and no gradient needs it", inputs[i].index);
  free(needed);
}

static int is_updated(aot_prog_t *p, aot_graph_t forward, uint32_t leaf) {
  const aot_port_t *outputs = aoth_graph_outputs(p, forward);
  for (uint32_t i = 0; i < aoth_graph_n_outputs(p, forward); i++)
    if (outputs[i].role == AOT_ROLE_UPDATE && outputs[i].index == leaf) return 1;
  return 0;
}

/* An input of the forward that the backward could have by itself: a leaf that stays as it is. */
static int is_at_hand(aot_prog_t *p, aot_graph_t forward, aot_value_t v) {
  const aot_port_t *inputs = aoth_graph_inputs(p, forward);
  for (uint32_t i = 0; i < aoth_graph_n_inputs(p, forward); i++)
    if (inputs[i].value.id == v.id) return inputs[i].role <= AOT_ROLE_STATE && !is_updated(p, forward, inputs[i].index);
  return 0;
}

static void check_slots(aoth_trial_t *t, aot_graph_t forward) {
  aot_prog_t *p = t->s->now.prog;
  const aot_port_t *outputs = aoth_graph_outputs(p, forward);
  uint8_t *seen = calloc(aoth_graph_n_values(p) + 1u, 1);
  for (uint32_t i = 0; seen && i < aoth_graph_n_outputs(p, forward); i++) {
    const aot_value_t v = outputs[i].value;
    if (outputs[i].role != AOT_ROLE_SAVED || v.id == AOT_NO_ID) continue;
    if (seen[v.id]) aoth_trial_end(t, AOTH_CONFORM_FAILED, "slot %u holds what another slot holds", outputs[i].index);
    if (is_at_hand(p, forward, v))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "slot %u holds an input that the backward has by itself",
                     outputs[i].index);
    seen[v.id] = 1;
  }
  free(seen);
}

void aoth_rule_needed(aoth_trial_t *t) {
  const aot_graph_t joint = joint_program(t);
  aot_prog_t *p = t->s->now.prog;
  uint32_t n_dead = 0, n_dead_now = 0;
  if (joint.id == AOT_NO_ID) return;
  free(needed_values(p, joint, &n_dead)); /* what the user's own program computes for nothing */
  if (!aoth_trial_run(t)) return;
  p = t->s->now.prog;
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  free(needed_values(p, forward, &n_dead_now));
  if (n_dead_now > n_dead)
    aoth_trial_end(t, AOTH_CONFORM_FAILED,
                   "%u nodes of the forward compute what nobody needs; of the joint graph %u did", n_dead_now, n_dead);
  check_slots(t, forward);
  check_backward(t, aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD));
}

/* ---- 403 ---- */

#define MOST_TAGGED 64u

typedef struct tagged {
  aoth_value_number_t number;
  uint32_t flags; /* of its node */
  char name[80];
} tagged_t;

static uint32_t find_tagged(aot_prog_t *p, aot_graph_t joint, const aoth_numbering_t *n, tagged_t *out) {
  uint32_t n_out = 0;
  for (aot_node_t node = aoth_graph_first(p, joint); node.id != AOT_NO_ID; node = aoth_graph_next(p, node)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (aoth_graph_node_info(p, node, &info) != AOT_OK ||
        !(info.flags & (AOT_NODE_MUST_SAVE | AOT_NODE_MUST_RECOMPUTE)))
      continue;
    for (uint32_t i = 0; i < info.n_results && n_out < MOST_TAGGED; i++) {
      const aot_value_t v = {info.first_result.id + i};
      const aot_str_t name = aoth_graph_value_name(p, v), op = aoth_graph_op_desc(p, info.op)->name;
      out[n_out] = (tagged_t){.number = n->of_value[v.id], .flags = info.flags};
      snprintf(out[n_out].name, sizeof out->name, "%.*s of %.*s", (int)(name.size < 30 ? name.size : 30),
               name.size ? name.data : "", (int)(op.size < 40 ? op.size : 40), op.data);
      n_out++;
    }
  }
  return n_out;
}

/* Is a value of this number a slot, made by the backward? */
static int is_saved(const aoth_numbering_t *n, aoth_value_number_t number) {
  for (uint32_t i = 0; i < n->n_slots; i++)
    if (aoth_same_number(n->of_slot[i], number)) return 1;
  return 0;
}

static int is_made(aot_prog_t *p, const aoth_numbering_t *n, aot_graph_t g, aoth_value_number_t number) {
  for (aot_node_t node = aoth_graph_first(p, g); node.id != AOT_NO_ID; node = aoth_graph_next(p, node)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (aoth_graph_node_info(p, node, &info) != AOT_OK) continue;
    for (uint32_t i = 0; i < info.n_results; i++)
      if (aoth_same_number(n->of_value[info.first_result.id + i], number)) return 1;
  }
  return 0;
}

static void check_tagged(aoth_trial_t *t, const tagged_t *tagged, uint32_t n_tagged) {
  aot_prog_t *p = t->s->now.prog;
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  const aot_graph_t backward = aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD);
  aoth_numbering_t n;
  if (aoth_numbering_init(&n, p) && aoth_halves_number(&n, forward, backward))
    for (uint32_t i = 0; i < n_tagged && t->end == AOTH_CONFORM_PASSED; i++) {
      if (tagged[i].flags & AOT_NODE_MUST_RECOMPUTE && is_saved(&n, tagged[i].number))
        aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s is to be computed again, and is saved", tagged[i].name);
      if (tagged[i].flags & AOT_NODE_MUST_SAVE && is_made(p, &n, backward, tagged[i].number))
        aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s is to be saved, and the backward computes it again", tagged[i].name);
    }
  aoth_numbering_deinit(&n);
}

void aoth_rule_tags(aoth_trial_t *t) {
  const aot_graph_t joint = joint_program(t);
  tagged_t tagged[MOST_TAGGED];
  uint32_t n_tagged = 0;
  aoth_numbering_t n;
  if (joint.id == AOT_NO_ID) return;
  if (aoth_numbering_init(&n, t->s->now.prog)) {
    aoth_number_graph(&n, joint.id);
    n_tagged = find_tagged(t->s->now.prog, joint, &n, tagged);
  }
  aoth_numbering_deinit(&n);
  if (!n_tagged) t->end = AOTH_CONFORM_NOT;
  else if (aoth_trial_run(t)) check_tagged(t, tagged, n_tagged);
}

/* ---- 404 ---- */

static const double shares[] = {1, 0.75, 0.5, 0.25}; /* of what the first run takes */
#define N_SHARES 4u

/* An amount of bytes that is called a budget. */
static uint32_t budget_option(const aoth_unit_t *u) {
  uint32_t i = 0;
  for (; i < u->desc.n_options; i++) {
    const aot_option_t *o = &u->options[i];
    if (aot_str_eq(o->name, aot_str("budget"))) break;
    for (uint64_t k = 0; o->kind == AOT_OPT_BYTES && k + 6 <= o->name.size; k++)
      if (memcmp(o->name.data + k, "budget", 6) == 0) return i;
  }
  return i;
}

/* What the halves take: the bytes of the slots, by the host's own count, without inputs that have to be saved, sizes
 * that are symbols at their hints; and, where the unit reports it, of all. */
typedef struct taken {
  uint64_t saved_nbytes;
  int has_plan;
  aot_memory_plan_t plan;
} taken_t;

static uint64_t count_saved(aot_prog_t *p) {
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  const aot_port_t *outputs = aoth_graph_outputs(p, forward);
  uint64_t n = 0;
  for (uint32_t i = 0; i < aoth_graph_n_outputs(p, forward); i++) {
    aot_type_t t;
    if (outputs[i].role != AOT_ROLE_SAVED || aoth_graph_value_def(p, outputs[i].value).id == AOT_NO_ID) continue;
    if (aoth_graph_value_type(p, outputs[i].value, &t) != AOT_OK) continue;
    int64_t reach = 1;
    for (int32_t d = 0; d < t.rank; d++) { /* of what is repeated, one */
      const int64_t size = aoth_graph_dim_hint(p, t.sizes[d]);
      reach = size && reach ? reach + (size - 1) * aoth_graph_dim_hint(p, t.strides[d]) : 0;
    }
    n += (uint64_t)reach * aot_dtype_size(t.dtype);
  }
  return n;
}

/* The program divided, and what the halves take. 0: the trial has ended. */
static int divide_and_ask(aoth_trial_t *t, taken_t *out) {
  *out = (taken_t){.has_plan = aoth_unit_offers_memory(t->s, t->stage)};
  if (joint_program(t).id == AOT_NO_ID || !aoth_trial_run(t)) return 0;
  out->saved_nbytes = count_saved(t->s->now.prog);
  t->s->outcome = AOTH_CALL_OK;
  return !out->has_plan || aoth_trial_judge(t, aoth_session_memory(t->s, t->stage, NULL, t->c->arena, &out->plan));
}

/* The most that the rows of a plan have alive at once. */
static uint64_t most_alive(const aot_memory_plan_t *p) {
  uint64_t most = 0;
  for (uint64_t step = 0; step < p->n_steps; step++) {
    uint64_t alive = 0;
    for (uint64_t i = 0; i < p->n_buffers; i++)
      if (p->buffers[i].first <= step && step <= p->buffers[i].last) alive += p->buffers[i].nbytes;
    if (alive > most) most = alive;
  }
  return most;
}

static void check_budget(aoth_trial_t *t, const taken_t *taken, uint64_t budget, int is_told) {
  const uint64_t alive = taken->has_plan ? most_alive(&taken->plan) : 0, peak = taken->plan.peak_nbytes;
  if (alive > peak)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it tells a peak of %llu bytes, and buffers of %llu at once",
                   (unsigned long long)peak, (unsigned long long)alive);
  else if (taken->has_plan && taken->saved_nbytes > peak)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it tells a peak of %llu bytes, and its slots alone hold %llu",
                   (unsigned long long)peak, (unsigned long long)taken->saved_nbytes);
  else if (taken->saved_nbytes > budget && !is_told)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "with a budget of %llu bytes its slots hold %llu, and it does not say so",
                   (unsigned long long)budget, (unsigned long long)taken->saved_nbytes);
  else if (peak > budget && !is_told)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "with a budget of %llu bytes it takes %llu, and does not say so",
                   (unsigned long long)budget, (unsigned long long)peak);
}

static void divide_within(aoth_trial_t *t, uint32_t option, uint64_t budget) {
  char text[32];
  aot_opt_value_t values[256];
  taken_t taken;
  aoth_stage_t stage = *t->stage;
  snprintf(text, sizeof text, "%llu", (unsigned long long)budget);
  memcpy(values, stage.opts.values, stage.opts.n_values * sizeof *values);
  if (stage.unit->options[option].kind == AOT_OPT_STRING) values[option].s = aot_str(text);
  else values[option].i = (int64_t)budget;
  stage.opts.values = values;
  t->stage = &stage;
  const uint32_t n_told = aoth_sink_count(t->s->config.sink, AOT_SEVERITY_WARNING);
  if (divide_and_ask(t, &taken))
    check_budget(t, &taken, budget, aoth_sink_count(t->s->config.sink, AOT_SEVERITY_WARNING) > n_told);
}

void aoth_rule_budget(aoth_trial_t *t) {
  const uint32_t option = budget_option(t->stage->unit), share = t->number % N_SHARES;
  char about[sizeof t->about];
  taken_t taken;
  if (option == t->stage->unit->desc.n_options) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT,
                   "it has no option that is a budget of bytes");
    return;
  }
  t->number /= N_SHARES; /* of the program */
  if (!divide_and_ask(t, &taken)) return;
  const uint64_t whole = taken.has_plan ? taken.plan.peak_nbytes : taken.saved_nbytes;
  divide_within(t, option, (uint64_t)((double)whole * shares[share]));
  memcpy(about, t->about, sizeof about);
  aoth_trial_about(t, "%.150s, %g of its %llu bytes", about, shares[share], (unsigned long long)whole);
}
