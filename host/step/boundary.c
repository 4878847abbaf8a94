#include <step/boundary.h>

#include <stdlib.h>

int aoth_rule_makes_output(int32_t kind) {
  return kind == AOT_RULE_SAME_INPUT || kind == AOT_RULE_VIEW_INPUT || kind == AOT_RULE_SAME_OUTPUT ||
         kind == AOT_RULE_VIEW_OUTPUT || kind == AOT_RULE_VIEW_BASE;
}

static const char *kind_name(int32_t kind) {
  static const char *const names[] = {"?",           "copy-back",   "restride",  "same-input", "view-input",
                                      "same-output", "view-output", "view-base", "entry-same", "entry-view"};
  return kind >= AOT_RULE_COPY_BACK && kind <= AOT_RULE_ENTRY_VIEW ? names[kind] : names[0];
}

static aot_status_t broken(const aoth_boundary_t *b, const aot_rule_t *r, const char *why) {
  aoth_sink_report(b->sink, AOT_SEVERITY_ERROR, NULL, "boundary.broken", "boundary rule %u (%s %u, %u): %s",
                   (unsigned)(r - b->rules), kind_name(r->kind), r->a, r->b, why);
  return AOT_E_CONTRACT;
}

aoth_tensor_t aoth_rule_view(const aot_rule_t *r, const aoth_tensor_t *storage) {
  aoth_tensor_t t = {
      .data = storage->data,
      .nbytes = storage->nbytes,
      .dtype = r->dtype ? r->dtype : storage->dtype,
      .rank = r->rank,
      .offset = r->offset,
      .resident = storage->resident,
  };
  for (int32_t d = 0; d < r->rank; d++) {
    t.sizes[d] = r->sizes[d];
    t.strides[d] = r->strides[d];
  }
  return t;
}

/* The same, checked against the storage's end. */
static aot_status_t look_into(const aoth_boundary_t *b, const aot_rule_t *r, const aoth_tensor_t *storage,
                              aoth_tensor_t *out) {
  uint64_t reach;
  if (r->rank < 0 || r->rank > AOT_MAX_RANK) return broken(b, r, "its rank is out of range");
  aoth_tensor_t t = aoth_rule_view(r, storage);
  if (!aoth_tensor_extent(&t, &reach) || reach > t.nbytes)
    return broken(b, r, "its geometry reaches outside the storage");
  *out = t;
  return AOT_OK;
}

static int is_leaf(const aoth_boundary_t *b, uint32_t id) { return id && id < b->n_leaves; }

aot_status_t aoth_boundary_entry_views(const aoth_boundary_t *b) {
  for (uint32_t i = 0; i < b->n_rules; i++) {
    const aot_rule_t *r = &b->rules[i];
    if (r->kind != AOT_RULE_ENTRY_VIEW) continue;
    if (!is_leaf(b, r->a) || !is_leaf(b, r->b)) return broken(b, r, "there is no such leaf");
    AOT_TRY(look_into(b, r, &b->leaves[r->b], &b->leaves[r->a]));
  }
  return AOT_OK;
}

aot_status_t aoth_boundary_entry_same(const aoth_boundary_t *b) {
  for (uint32_t i = 0; i < b->n_rules; i++) {
    const aot_rule_t *r = &b->rules[i];
    if (r->kind != AOT_RULE_ENTRY_SAME) continue;
    if (!is_leaf(b, r->a) || !is_leaf(b, r->b)) return broken(b, r, "there is no such leaf");
    b->leaves[r->a] = b->leaves[r->b];
  }
  return AOT_OK;
}

aot_status_t aoth_boundary_restride(const aoth_boundary_t *b) {
  for (uint32_t i = 0; i < b->n_rules; i++) {
    const aot_rule_t *r = &b->rules[i];
    if (r->kind != AOT_RULE_RESTRIDE) continue;
    if (!is_leaf(b, r->a)) return broken(b, r, "there is no such leaf");
    AOT_TRY(look_into(b, r, &b->leaves[r->a], &b->leaves[r->a]));
  }
  return AOT_OK;
}

aot_status_t aoth_boundary_copy_back(const aoth_boundary_t *b) {
  for (uint32_t i = 0; i < b->n_rules; i++) {
    const aot_rule_t *r = &b->rules[i];
    if (r->kind != AOT_RULE_COPY_BACK) continue;
    if (!is_leaf(b, r->a)) return broken(b, r, "there is no such leaf");
    const aoth_tensor_t *value = b->updates[r->a], *leaf = &b->leaves[r->a];
    if (!value) continue; /* another graph's output */
    if (value->dtype != leaf->dtype || !aoth_tensor_same_sizes(value, leaf))
      return broken(b, r, "the updated value has another shape or dtype than the leaf");
    AOT_TRY(b->copy(b->self, leaf, value));
  }
  return AOT_OK;
}

/* Output r->a from what it is made of, which is complete. */
static aot_status_t make_output(const aoth_boundary_t *b, const aot_rule_t *r) {
  aoth_tensor_t *out = &b->outputs[r->a];
  switch (r->kind) {
    case AOT_RULE_SAME_INPUT: *out = b->leaves[r->b]; return AOT_OK;
    case AOT_RULE_VIEW_INPUT: return look_into(b, r, &b->leaves[r->b], out);
    case AOT_RULE_SAME_OUTPUT: *out = b->outputs[r->b]; return AOT_OK;
    case AOT_RULE_VIEW_OUTPUT: return look_into(b, r, &b->outputs[r->b], out);
    default: return look_into(b, r, &b->bases[r->b], out);
  }
}

static int reads_output(const aot_rule_t *r) {
  return r->kind == AOT_RULE_SAME_OUTPUT || r->kind == AOT_RULE_VIEW_OUTPUT;
}

static aot_status_t check_output_rule(const aoth_boundary_t *b, const aot_rule_t *r, const uint32_t *rule_of) {
  const int reads_leaf = r->kind == AOT_RULE_SAME_INPUT || r->kind == AOT_RULE_VIEW_INPUT;
  if (r->a >= b->n_outputs) return broken(b, r, "there is no such user output");
  if (reads_leaf ? !is_leaf(b, r->b) : r->b >= (reads_output(r) ? b->n_outputs : b->n_bases))
    return broken(b, r, "what it is made of does not exist");
  if (rule_of[r->a]) return broken(b, r, "the output has another rule already");
  return AOT_OK;
}

/* Follow a chain of output rules down to one that reads no pending output, then make them on the way back. */
static aot_status_t resolve(const aoth_boundary_t *b, uint32_t *rule_of, uint32_t *chain, uint32_t output) {
  uint32_t n = 0;
  while (rule_of[output]) {
    const aot_rule_t *r = &b->rules[rule_of[output] - 1];
    if (n == b->n_outputs) return broken(b, r, "output rules form a circle");
    chain[n++] = output;
    if (!reads_output(r)) break;
    output = r->b;
  }
  while (n > 0) {
    output = chain[--n];
    AOT_TRY(make_output(b, &b->rules[rule_of[output] - 1]));
    rule_of[output] = 0;
  }
  return AOT_OK;
}

static aot_status_t outputs_with(const aoth_boundary_t *b, uint32_t *rule_of, uint32_t *chain) {
  for (uint32_t i = 0; i < b->n_rules; i++) {
    const aot_rule_t *r = &b->rules[i];
    if (!aoth_rule_makes_output(r->kind)) continue;
    AOT_TRY(check_output_rule(b, r, rule_of));
    rule_of[r->a] = i + 1;
  }
  for (uint32_t o = 0; o < b->n_outputs; o++) AOT_TRY(resolve(b, rule_of, chain, o));
  return AOT_OK;
}

aot_status_t aoth_boundary_outputs(const aoth_boundary_t *b) {
  uint32_t *rule_of = calloc((size_t)b->n_outputs * 2 + 1, sizeof *rule_of); /* rule number + 1; 0: none or done */
  if (!rule_of) {
    aoth_sink_report(b->sink, AOT_SEVERITY_ERROR, NULL, "boundary.memory", "no memory for %u outputs", b->n_outputs);
    return AOT_E_EXHAUSTED;
  }
  aot_status_t status = outputs_with(b, rule_of, rule_of + b->n_outputs);
  free(rule_of);
  return status;
}
