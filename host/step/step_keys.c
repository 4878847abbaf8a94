/* Results and leaves by key (step.h lists them). */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <string.h>

/* The number after a prefix: "output.12" with "output." gives 12. 0: not of this form. */
static int numbered(const char *key, const char *prefix, uint32_t *out) {
  size_t n = strlen(prefix);
  uint64_t number = 0;
  if (strncmp(key, prefix, n) != 0 || !key[n] || strlen(key + n) > 9) return 0;
  for (const char *c = key + n; *c; c++) {
    if (*c < '0' || *c > '9') return 0;
    number = number * 10 + (uint64_t)(*c - '0');
  }
  *out = (uint32_t)number;
  return 1;
}

/* A tensor that there is, as the host reads it. */
static int give(const aoth_step_t *s, const aoth_tensor_t *t, aoth_tensor_t *out) {
  return t->dtype && aoth_step_on_host(s, t, out) == AOT_OK;
}

/* A user input that shares memory with others has the gradient of that memory, as far as it reaches. 0: none. */
int aoth_step_gradient(const aoth_step_t *s, uint32_t leaf, aoth_tensor_t *out) {
  if (s->phase < AOTH_PHASE_BACKWARD || leaf == AOT_NO_ID) return 0;
  uint32_t wants = s->leaves.leaf[leaf].info.flags & AOT_LEAF_REQUIRES_GRAD;
  const aot_rule_t *r = s->entry[leaf] == AOT_NO_INDEX ? NULL : &s->now[s->entry[leaf]];
  if (r && r->kind == AOT_RULE_ENTRY_SAME) {
    leaf = r->b;
    r = s->entry[leaf] == AOT_NO_INDEX ? NULL : &s->now[s->entry[leaf]];
  }
  uint32_t port = s->gradient[r ? r->b : leaf];
  if ((r && !wants) || port == AOT_NO_INDEX) return 0;
  *out = s->call[AOTH_CALL_BACKWARD].out[port].tensor;
  if (!out->dtype) return 0;
  if (r) *out = aoth_rule_view(r, out);
  return 1;
}

/* The leaf that "param.NAME", "buffer.NAME", "state.NAME" mean, or AOT_NO_ID. */
uint32_t aoth_step_leaf_of(const aoth_step_t *s, const char *key) {
  if (strncmp(key, "param.", 6) == 0) return aoth_leaves_find(&s->leaves, AOT_ROLE_PARAMETER, key + 6);
  if (strncmp(key, "buffer.", 7) == 0) return aoth_leaves_find(&s->leaves, AOT_ROLE_BUFFER, key + 7);
  if (strncmp(key, "state.", 6) == 0) return aoth_leaves_find(&s->leaves, AOT_ROLE_STATE, key + 6);
  return AOT_NO_ID;
}

static uint32_t any_gradient_leaf(const aoth_step_t *s, const char *name) {
  static const int32_t roles[] = {AOT_ROLE_PARAMETER, AOT_ROLE_BUFFER, AOT_ROLE_CONSTANT};
  for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
    uint32_t leaf = aoth_leaves_find(&s->leaves, roles[i], name);
    if (leaf != AOT_NO_ID) return leaf;
  }
  return AOT_NO_ID;
}

int aoth_step_port_of(const aoth_step_t *s, const char *key, int32_t *out_kind, uint32_t *out_index) {
  const struct {
    const char *prefix;
    int32_t kind;
    uint32_t n;
  } rows[] = {
      {"input.", AOTH_LENT_INPUT, s->n_given},         {"output.", AOTH_LENT_OUTPUT, s->n_outputs},
      {"tangent.", AOTH_LENT_TANGENT, s->n_outputs},   {"saved.", AOTH_LENT_SAVED, s->n_saved},
      {"grad.input.", AOTH_LENT_GRADIENT, s->n_given},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (!numbered(key, rows[i].prefix, out_index)) continue;
    *out_kind = rows[i].kind;
    if (*out_index >= rows[i].n) return 0;
    if (rows[i].kind == AOTH_LENT_GRADIENT) *out_index = s->leaves.input[*out_index];
    return 1;
  }
  if (strncmp(key, "grad.", 5) != 0) return 0;
  *out_kind = AOTH_LENT_GRADIENT;
  *out_index = any_gradient_leaf(s, key + 5);
  return *out_index != AOT_NO_ID;
}

int aoth_step_get(const aoth_step_t *s, const char *key, aoth_tensor_t *out) {
  uint32_t k, leaf;
  aoth_tensor_t gradient;
  if (numbered(key, "output.", &k)) return s->phase && k < s->n_outputs && give(s, &s->outputs[k], out);
  if (numbered(key, "input_after.", &k))
    return s->phase && k < s->n_given && give(s, &s->after[s->leaves.input[k]], out);
  if (numbered(key, "grad.input.", &k))
    return k < s->n_given && aoth_step_gradient(s, s->leaves.input[k], &gradient) && give(s, &gradient, out);
  if (strncmp(key, "grad.", 5) == 0)
    return aoth_step_gradient(s, any_gradient_leaf(s, key + 5), &gradient) && give(s, &gradient, out);
  if (strncmp(key, "buffer_after.", 13) == 0) {
    leaf = aoth_leaves_find(&s->leaves, AOT_ROLE_BUFFER, key + 13);
    return s->phase && leaf != AOT_NO_ID && give(s, &s->leaves.leaf[leaf].tensor, out);
  }
  leaf = aoth_step_leaf_of(s, key);
  return leaf != AOT_NO_ID && give(s, &s->leaves.leaf[leaf].tensor, out);
}

uint32_t aoth_step_leaf_flags(const aoth_step_t *s, const char *key) {
  const uint32_t leaf = aoth_step_leaf_of(s, key);
  return leaf == AOT_NO_ID ? 0 : s->leaves.leaf[leaf].info.flags;
}

aot_status_t aoth_step_set(aoth_step_t *s, const char *key, const aoth_tensor_t *value) {
  uint32_t leaf = aoth_step_leaf_of(s, key);
  if (leaf == AOT_NO_ID) return AOT_E_NOT_FOUND;
  const aoth_tensor_t *t = &s->leaves.leaf[leaf].tensor;
  if (t->dtype != value->dtype || !aoth_tensor_same_sizes(t, value)) {
    kit_text_t wanted = {0}, given = {0};
    aoth_tensor_print_shape(t, &wanted);
    aoth_tensor_print_shape(value, &given);
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.leaf", "%s: expected %s, got %s", key,
                     wanted.data ? wanted.data : "?", given.data ? given.data : "?");
    kit_text_deinit(&wanted);
    kit_text_deinit(&given);
    return AOT_E_INVALID;
  }
  aoth_tensor_t to;
  AOT_TRY(aoth_step_edit(s, t, 1, &to));
  aoth_tensor_copy(&to, value);
  return AOT_OK;
}

/* ---- walking ---- */

typedef struct keys {
  const aoth_step_t *step;
  aot_status_t (*each)(void *self, const char *key, const aoth_tensor_t *t);
  void *self;
  int types_only;
  kit_text_t key;
} keys_t;

static aot_status_t one(keys_t *k, const char *prefix, aot_str_t name, uint32_t number, const aoth_tensor_t *t) {
  aoth_tensor_t host;
  if (!t->dtype) return AOT_OK;
  k->key.size = 0;
  kit_text_z(&k->key, prefix);
  if (name.data) kit_text_str(&k->key, name);
  else kit_text_f(&k->key, "%u", number);
  if (k->key.failed) return AOT_E_EXHAUSTED;
  host = *t;
  host.data = NULL;
  if (!k->types_only) AOT_TRY(aoth_step_on_host(k->step, t, &host));
  return k->each(k->self, k->key.data, &host);
}

static aot_status_t walk_outputs(const aoth_step_t *s, keys_t *k) {
  for (uint32_t i = 0; i < s->n_outputs; i++) AOT_TRY(one(k, "output.", (aot_str_t){0}, i, &s->outputs[i]));
  for (uint32_t i = 0; i < s->n_given; i++)
    if (s->changed[s->leaves.input[i]])
      AOT_TRY(one(k, "input_after.", (aot_str_t){0}, i, &s->after[s->leaves.input[i]]));
  return AOT_OK;
}

static aot_status_t walk_gradients(const aoth_step_t *s, keys_t *k) {
  for (uint32_t i = 1; i < s->leaves.n; i++) {
    const aoth_leaf_t *leaf = &s->leaves.leaf[i];
    aoth_tensor_t g;
    int is_input = leaf->info.role == AOT_ROLE_USER_INPUT;
    if ((is_input && leaf->info.ordinal >= s->n_given) || !aoth_step_gradient(s, i, &g)) continue;
    if (is_input) AOT_TRY(one(k, "grad.input.", (aot_str_t){0}, leaf->info.ordinal, &g));
    else AOT_TRY(one(k, "grad.", aoth_leaf_name(leaf), 0, &g));
  }
  return AOT_OK;
}

static aot_status_t walk_leaves(const aoth_step_t *s, uint32_t which, keys_t *k) {
  for (uint32_t i = 1; i < s->leaves.n; i++) {
    const aoth_leaf_t *leaf = &s->leaves.leaf[i];
    const char *prefix = leaf->info.role == AOT_ROLE_PARAMETER ? "param."
                         : leaf->info.role == AOT_ROLE_BUFFER  ? "buffer."
                         : leaf->info.role == AOT_ROLE_STATE   ? "state."
                                                               : NULL;
    if (which == AOTH_KEYS_BUFFERS && leaf->info.role != AOT_ROLE_BUFFER) continue;
    if (prefix) AOT_TRY(one(k, prefix, aoth_leaf_name(leaf), 0, &leaf->tensor));
  }
  return AOT_OK;
}

aot_status_t aoth_step_keys(const aoth_step_t *s, uint32_t which,
                            aot_status_t (*each)(void *self, const char *key, const aoth_tensor_t *t), void *self) {
  keys_t k = {.step = s, .each = each, .self = self, .types_only = (which & AOTH_KEYS_TYPES) != 0};
  aot_status_t status = AOT_OK;
  if (which & AOTH_KEYS_OUTPUTS && s->phase) status = walk_outputs(s, &k);
  if (status == AOT_OK && which & AOTH_KEYS_GRADIENTS && s->phase >= AOTH_PHASE_BACKWARD)
    status = walk_gradients(s, &k);
  if (status == AOT_OK && which & (AOTH_KEYS_LEAVES | AOTH_KEYS_BUFFERS))
    status = walk_leaves(s, which & AOTH_KEYS_LEAVES ? AOTH_KEYS_LEAVES : AOTH_KEYS_BUFFERS, &k);
  kit_text_deinit(&k.key);
  return status;
}
