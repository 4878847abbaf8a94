/* Memory that the caller provides to a call for inputs, outputs, saved values, tangents and gradients.
 *
 * Where it lies as the program wants it, the call uses it directly: the slot takes no room in the block, and nothing is
 * copied. Otherwise contents are copied between it and the slot, before a call or after it. Linear in ports. */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <stdlib.h>

static aoth_lent_t *find_lent(const aoth_step_t *s, int32_t kind, uint32_t index) {
  aoth_lent_t *l = s->lent;
  while (l && (l->kind != kind || l->index != index)) l = l->next;
  return l;
}

static int fits(const aoth_tensor_t *a, const aoth_tensor_t *b) {
  return a->dtype == b->dtype && a->memory == b->memory && a->encoding == b->encoding && aoth_tensor_same_sizes(a, b);
}

/* Its storage as the slot would have it, if it lies so. 0: it does not. */
static int storage_for(const aoth_step_t *s, const aoth_lent_t *l, const aoth_tensor_t *slot, char **out) {
  const aoth_tensor_t *t = &l->tensor;
  const int64_t size = (int64_t)aot_dtype_size(t->dtype), begin = (t->offset - slot->offset) * size;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] != 1 && t->strides[d] != slot->strides[d]) return 0;
  if (begin < 0 || (uint64_t)begin + slot->nbytes > t->nbytes) return 0;
  *out = (char *)t->data + begin;
  return *out && (!s->exec.queue->is_shared || (uintptr_t)*out % s->exec.queue->alignment == 0);
}

/* Results that was in it are gone, and saved values: nothing follows but a forward. */
aot_status_t aoth_step_lend(aoth_step_t *s, const char *key, const aoth_tensor_t *memory) {
  int32_t kind;
  uint32_t index;
  if (!aoth_step_port_of(s, key, &kind, &index)) return AOT_E_NOT_FOUND;
  aoth_lent_t *l = find_lent(s, kind, index);
  s->phase = 0;
  s->planned = 0;
  if (!memory) return l ? aoth_step_drop_lent(s, l) : AOT_OK;
  if (!l) {
    l = calloc(1, sizeof *l);
    if (!l) {
      aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.memory", "no memory to bind %s", key);
      return AOT_E_EXHAUSTED;
    }
    l->next = s->lent;
    s->lent = l;
  }
  AOT_TRY(aoth_resident_free(&l->resident, s->exec.queue));
  l->kind = kind;
  l->index = index;
  l->tensor = *memory;
  return AOT_OK;
}

int aoth_step_has_lent(const aoth_step_t *s, int32_t kind) {
  const aoth_lent_t *l = s->lent;
  while (l && l->kind != kind) l = l->next;
  return l != NULL;
}

const aoth_tensor_t *aoth_step_lent_input(const aoth_step_t *s, uint32_t input) {
  const aoth_lent_t *l = find_lent(s, AOTH_LENT_INPUT, input);
  return l ? &l->tensor : NULL;
}

aot_status_t aoth_step_lend_leaf(aoth_step_t *s, const char *key, const aoth_tensor_t *memory) {
  const uint32_t leaf = aoth_step_leaf_of(s, key);
  if (leaf == AOT_NO_ID) return AOT_E_NOT_FOUND;
  const aoth_tensor_t *t = &s->leaves.leaf[leaf].tensor;
  aoth_step_replan(s);
  if (!memory) return aoth_leaves_take_back(&s->leaves, leaf);
  const aoth_lent_t l = {.tensor = *memory};
  char *storage = NULL;
  if (!fits(t, memory) || !storage_for(s, &l, t, &storage)) {
    kit_text_t wanted = {0};
    aoth_tensor_print_shape(t, &wanted);
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                     "cannot bind %s: expected %s, %llu bytes, same strides, aligned to %u bytes", key,
                     wanted.data ? wanted.data : "?", (unsigned long long)t->nbytes, s->exec.queue->alignment);
    kit_text_deinit(&wanted);
    return AOT_E_INVALID;
  }
  if (t->resident->is_exported) {
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                     "%s cannot be bound to other memory: it was exported, and stays where it is", key);
    return AOT_E_PRECONDITION;
  }
  return aoth_leaves_lend(&s->leaves, leaf, storage);
}

int aoth_step_export_leaf(aoth_step_t *s, const char *key, aoth_tensor_t *out) {
  const uint32_t leaf = aoth_step_leaf_of(s, key);
  if (leaf == AOT_NO_ID) return 0;
  aoth_mirrored_buffer_t *r = s->leaves.leaf[leaf].tensor.resident;
  if (!(r->home ? r->home : s->exec.queue)->is_shared) return 0;
  if (r->is_lent || aoth_resident_need(r, s->exec.queue) != AOT_OK || aoth_resident_own(r, s->exec.queue) != AOT_OK ||
      aoth_step_on_host(s, &s->leaves.leaf[leaf].tensor, out) != AOT_OK)
    return 0;
  r->is_exported = 1;
  return 1;
}

/* ---- its slot ---- */

static aoth_slot_t *with_role(aoth_slot_t *slots, uint32_t n, int32_t role, int32_t other, uint32_t index) {
  for (uint32_t i = 0; i < n; i++)
    if ((slots[i].role == role || slots[i].role == other) && slots[i].index == index) return &slots[i];
  return NULL;
}

/* NULL: the program has none. */
static aoth_slot_t *slot_of(aoth_step_t *s, int32_t kind, uint32_t index) {
  aoth_step_call_t *f = &s->call[aoth_step_first(s) == &s->call[AOTH_CALL_STEP] ? AOTH_CALL_STEP : AOTH_CALL_FORWARD];
  aoth_step_call_t *b = &s->call[AOTH_CALL_BACKWARD];
  switch (kind) {
    case AOTH_LENT_INPUT: return &s->given[index];
    case AOTH_LENT_OUTPUT: return with_role(f->out, f->n_out, AOT_ROLE_USER_OUTPUT, AOT_ROLE_LOSS, index);
    case AOTH_LENT_TANGENT: return with_role(b->in, b->n_in, AOT_ROLE_TANGENT, AOT_ROLE_TANGENT, index);
    case AOTH_LENT_SAVED: return s->saved[index] == AOT_NO_INDEX ? NULL : &f->out[s->saved[index]];
    default: return s->gradient[index] == AOT_NO_INDEX ? NULL : &b->out[s->gradient[index]];
  }
}

/* What a tensor of the caller's is in addition: entry rules make views, output rules make outputs, of other memory. */
static int is_plain(const aoth_step_t *s, const aoth_lent_t *l) {
  for (uint32_t i = 0; i < s->n_rules; i++) {
    const aot_rule_t *r = &s->rules[i];
    const int is_entry = r->kind == AOT_RULE_ENTRY_SAME || r->kind == AOT_RULE_ENTRY_VIEW;
    if (is_entry && (l->kind == AOTH_LENT_INPUT || l->kind == AOTH_LENT_GRADIENT)) return 0;
    if (l->kind == AOTH_LENT_OUTPUT && aoth_rule_makes_output(r->kind) && r->a == l->index) return 0;
  }
  return l->kind != AOTH_LENT_INPUT || !(s->changed[s->leaves.input[l->index]] & AOTH_CHANGED_NUMBERS);
}

static aot_status_t misfit(const aoth_step_t *s, const aoth_lent_t *l, const aoth_tensor_t *slot) {
  static const char *const kinds[] = {"", "input", "output", "tangent", "saved value", "gradient"};
  kit_text_t wanted = {0}, given = {0};
  aoth_tensor_print_shape(slot, &wanted);
  aoth_tensor_print_shape(&l->tensor, &given);
  if (l->kind == AOTH_LENT_GRADIENT) {
    const aot_str_t name = aoth_leaf_name(&s->leaves.leaf[l->index]);
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                     "the memory bound to the gradient of %.*s is %s, the program has %s there", (int)name.size,
                     name.data, given.data ? given.data : "?", wanted.data ? wanted.data : "?");
  } else {
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                     "the memory bound to %s %u is %s, the program has %s there", kinds[l->kind], l->index,
                     given.data ? given.data : "?", wanted.data ? wanted.data : "?");
  }
  kit_text_deinit(&wanted);
  kit_text_deinit(&given);
  return AOT_E_INVALID;
}

aot_status_t aoth_step_place_lent(aoth_step_t *s) {
  for (uint32_t k = 0; k < s->leaves.n_inputs; k++) s->given[k].lent = NULL;
  for (int c = 0; c < AOTH_N_CALLS; c++) {
    for (uint32_t i = 0; i < s->call[c].n_in; i++) s->call[c].in[i].lent = NULL;
    for (uint32_t i = 0; i < s->call[c].n_out; i++) s->call[c].out[i].lent = NULL;
  }
  for (aoth_lent_t *l = s->lent; l; l = l->next) {
    aoth_slot_t *p = slot_of(s, l->kind, l->index);
    const aoth_tensor_t slot = p ? p->tensor : (aoth_tensor_t){0};
    char *storage;
    AOT_TRY(aoth_resident_free(&l->resident, s->exec.queue));
    if (!slot.dtype || !is_plain(s, l) || !fits(&slot, &l->tensor) || !storage_for(s, l, &slot, &storage)) continue;
    l->resident = aoth_resident_lent(s->exec.queue, storage, slot.nbytes);
    l->resident.is_of_call = 1;
    p->lent = l;
  }
  return AOT_OK;
}

/* ---- does it fit ---- */

typedef struct range {
  uintptr_t begin, end;
  const aoth_lent_t *lent; /* NULL: a leaf */
  uint32_t leaf;
  int is_written;
} range_t;

static int by_begin(const void *a, const void *b) {
  const range_t *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void print_range(const aoth_step_t *s, const range_t *r, kit_text_t *out) {
  static const char *const kinds[] = {"", "input", "output", "tangent", "saved value"};
  if (r->lent && r->lent->kind != AOTH_LENT_GRADIENT) {
    kit_text_f(out, "%s %u", kinds[r->lent->kind], r->lent->index);
    return;
  }
  if (r->lent) kit_text_z(out, "the gradient of ");
  kit_text_str(out, aoth_leaf_name(&s->leaves.leaf[r->lent ? r->lent->index : r->leaf]));
}

static aot_status_t overlap(const aoth_step_t *s, const range_t *a, const range_t *b) {
  kit_text_t first = {0}, second = {0};
  print_range(s, a, &first);
  print_range(s, b, &second);
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                   "the memory bound to %s and that bound to %s overlap, and a call writes one of them",
                   first.data ? first.data : "?", second.data ? second.data : "?");
  kit_text_deinit(&first);
  kit_text_deinit(&second);
  return AOT_E_INVALID;
}

/* In order of their begins, each is held against the one that reaches farthest, and the farthest that is written. */
static aot_status_t check_ranges(const aoth_step_t *s, range_t *ranges, size_t n) {
  const range_t *any = NULL, *written = NULL;
  qsort(ranges, n, sizeof *ranges, by_begin);
  for (size_t i = 0; i < n; i++) {
    const range_t *r = &ranges[i], *other = r->is_written ? any : written;
    if (other && other->end > r->begin) return overlap(s, other, r);
    if (!any || r->end > any->end) any = r;
    if (r->is_written && (!written || r->end > written->end)) written = r;
  }
  return AOT_OK;
}

static aot_status_t check_overlap(const aoth_step_t *s) {
  size_t n = s->leaves.n + 1;
  for (const aoth_lent_t *l = s->lent; l; l = l->next) n++;
  range_t *ranges = malloc(n * sizeof *ranges);
  if (!ranges) {
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.memory", "no memory to look at what is bound");
    return AOT_E_EXHAUSTED;
  }
  n = 0;
  for (const aoth_lent_t *l = s->lent; l; l = l->next) {
    const uintptr_t begin = (uintptr_t)l->tensor.data;
    const int is_written = l->kind != AOTH_LENT_INPUT && l->kind != AOTH_LENT_TANGENT;
    if (l->tensor.nbytes) ranges[n++] = (range_t){begin, begin + l->tensor.nbytes, l, 0, is_written};
  }
  for (uint32_t i = 1; i < s->leaves.n; i++) {
    const aoth_mirrored_buffer_t *r = &s->leaves.leaf[i].resident;
    const uintptr_t begin = (uintptr_t)r->host;
    if (r->is_lent && r->nbytes) ranges[n++] = (range_t){begin, begin + r->nbytes, NULL, i, 1};
  }
  const aot_status_t status = check_ranges(s, ranges, n);
  free(ranges);
  return status;
}

/* Results that lie otherwise are copied. Saved values are not: the backward reads them where the forward has them. */
static aot_status_t check_shapes(aoth_step_t *s) {
  for (aoth_lent_t *l = s->lent; l; l = l->next) {
    const aoth_slot_t *p = slot_of(s, l->kind, l->index);
    if (!p || !p->tensor.dtype || p->lent || !is_plain(s, l)) continue;
    if (!fits(&p->tensor, &l->tensor)) return misfit(s, l, &p->tensor);
    if (l->kind != AOTH_LENT_SAVED) continue;
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                     "the memory bound to saved value %u does not lie as the program saves it: at a multiple of %u, "
                     "with its strides, whole",
                     l->index, s->exec.queue->alignment);
    return AOT_E_INVALID;
  }
  return AOT_OK;
}

aot_status_t aoth_step_check_lent(aoth_step_t *s) {
  if (s->lent_fits) return AOT_OK;
  AOT_TRY(check_shapes(s));
  AOT_TRY(check_overlap(s));
  s->lent_fits = 1;
  return AOT_OK;
}

/* ---- before and after a call ---- */

aot_status_t aoth_step_refresh_lent(const aoth_step_t *s, aoth_slot_t *p) {
  void *memory;
  return aoth_resident_edit(&p->lent->resident, s->exec.queue, 1, &memory);
}

/* The result of an output or a gradient, as the boundary leaves it. */
static const aoth_tensor_t *result_of(const aoth_step_t *s, const aoth_lent_t *l, aoth_tensor_t *room) {
  if (l->kind == AOTH_LENT_OUTPUT) return &s->outputs[l->index];
  return aoth_step_gradient(s, l->index, room) ? room : NULL;
}

aot_status_t aoth_step_deliver(aoth_step_t *s, int32_t kind) {
  for (aoth_lent_t *l = s->lent; l; l = l->next) {
    aoth_tensor_t room, on_host;
    if (l->kind != kind) continue;
    const aoth_tensor_t *result = result_of(s, l, &room);
    if (!result || !result->dtype) continue; /* None, or no gradient */
    if (!fits(result, &l->tensor)) return misfit(s, l, result);
    AOT_TRY(aoth_step_on_host(s, result, &on_host)); /* of a borrowed one: its own memory */
    if (result->resident != &l->resident) aoth_tensor_copy(&l->tensor, &on_host);
  }
  return AOT_OK;
}

aot_status_t aoth_step_take_gradients(aoth_step_t *s) {
  for (aoth_lent_t *l = s->lent; l; l = l->next) {
    aoth_slot_t *p = l->kind == AOTH_LENT_GRADIENT ? slot_of(s, l->kind, l->index) : NULL;
    aoth_tensor_t to;
    if (!p || !p->tensor.dtype || !is_plain(s, l)) continue;
    if (p->lent) {
      AOT_TRY(aoth_step_refresh_lent(s, p));
    } else {
      AOT_TRY(aoth_step_edit(s, &p->tensor, 0, &to));
      aoth_tensor_copy(&to, &l->tensor);
    }
  }
  return AOT_OK;
}

/* ---- sizes ---- */

/* A user output that a rule makes: of the geometry that the rule gives, or of what it is the same as. */
static void shape_of_output(aoth_step_t *s, uint32_t output, aoth_tensor_t *out) {
  const aoth_step_call_t *f = aoth_step_first(s);
  const aot_rule_t *view = NULL, *r;
  const aoth_tensor_t *source = NULL;
  const aoth_slot_t *p;
  for (uint32_t steps = 0; steps <= s->n_outputs && !source; steps++) {
    r = NULL;
    for (uint32_t i = 0; i < s->n_rules && !r; i++)
      if (aoth_rule_makes_output(s->now[i].kind) && s->now[i].a == output) r = &s->now[i];
    if (!r) {
      p = slot_of(s, AOTH_LENT_OUTPUT, output);
      source = p ? &p->tensor : NULL;
      break;
    }
    const int is_view = r->kind != AOT_RULE_SAME_INPUT && r->kind != AOT_RULE_SAME_OUTPUT;
    if (is_view && !view) view = r;
    if (r->kind == AOT_RULE_SAME_INPUT || r->kind == AOT_RULE_VIEW_INPUT) {
      const aoth_leaf_t *leaf = &s->leaves.leaf[r->b];
      source = leaf->info.role == AOT_ROLE_USER_INPUT ? &s->given[leaf->info.ordinal].tensor : &leaf->tensor;
    } else if (r->kind == AOT_RULE_VIEW_BASE) {
      p = with_role(f->out, f->n_out, AOT_ROLE_BASE, AOT_ROLE_BASE, r->b);
      source = p ? &p->tensor : NULL;
    }
    output = r->b;
  }
  *out = !source ? (aoth_tensor_t){0} : view ? aoth_rule_view(view, source) : *source;
}

aot_status_t aoth_step_shape(aoth_step_t *s, const char *key, aoth_tensor_t *out) {
  int32_t kind;
  uint32_t index;
  if (!aoth_step_port_of(s, key, &kind, &index)) return AOT_E_NOT_FOUND;
  if (!s->planned) {
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.order",
                     "the size of %s is known when a call was planned, or has run", key);
    return AOT_E_PRECONDITION;
  }
  const aoth_slot_t *p = slot_of(s, kind, index);
  if (kind == AOTH_LENT_OUTPUT) shape_of_output(s, index, out);
  else *out = p ? p->tensor : (aoth_tensor_t){0};
  if (p && p->open && !s->phase) {
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.open", "the size of %s is known when the call has run",
                     key);
    return AOT_E_PRECONDITION;
  }
  return out->dtype ? AOT_OK : AOT_E_NOT_FOUND;
}
