/* A memory plan as JSON. docs/MEMORY.md has the keys. */
#include <cli/inspect/memory_view.h>

#include <cli/plugins/unit_json.h>
#include <stdlib.h>
#include <string.h>

static json_t *kinds_json(const uint64_t bytes[AOTH_MEMORY_KINDS]) {
  json_t *o = json_object();
  for (int32_t k = 1; k < (int32_t)AOTH_MEMORY_KINDS; k++)
    json_object_set_new(o, aoth_memory_kind(k), json_integer((json_int_t)bytes[k]));
  return o;
}

static json_t *holder_json(const aoth_holder_t *h) {
  return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:o}", "value", h->name, "kind", aoth_memory_kind(h->kind),
                   "bytes", (json_int_t)h->nbytes, "type", h->type, "operator", h->op, "module", h->module, "first",
                   (json_int_t)h->first, "last", (json_int_t)h->last, "place",
                   h->place == UINT64_MAX ? json_null() : json_integer((json_int_t)h->place));
}

static json_t *modules_json(const aoth_memory_view_t *v, kit_arena_t *arena) {
  enum { MODULES = 64 };
  aoth_module_share_t *rows;
  json_t *list = json_array();
  uint32_t n;
  if (aoth_memory_by_module(v, MODULES, arena, &rows, &n) != AOT_OK) n = 0;
  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:I}", "module", rows[i].module, "bytes", (json_int_t)rows[i].nbytes));
  return list;
}

/* By step: bytes alive, of each kind and all; what it is a part of. */
static json_t *timeline_json(const aoth_memory_view_t *v) {
  const uint64_t n = v->plan.n_steps;
  uint64_t *change = calloc((size_t)n + 2, sizeof *change);
  json_t *o = json_object(), *all = json_array();
  for (int32_t kind = 1; change && kind < (int32_t)AOTH_MEMORY_KINDS; kind++) {
    json_t *list = json_array();
    uint64_t now = 0;
    memset(change, 0, ((size_t)n + 2) * sizeof *change);
    for (uint64_t i = 0; i < v->plan.n_buffers; i++) {
      if (v->holders[i].kind != kind) continue;
      change[v->holders[i].first] += v->holders[i].nbytes;
      change[v->holders[i].last + 1] -= v->holders[i].nbytes;
    }
    for (uint64_t t = 0; t < n; t++) json_array_append_new(list, json_integer((json_int_t)(now += change[t])));
    json_object_set_new(o, aoth_memory_kind(kind), list);
  }
  json_t *parts = json_array();
  for (uint64_t t = 0; t < n; t++) json_array_append_new(parts, json_string(aoth_memory_part(v, t)));
  json_object_set_new(o, "part", parts);
  for (uint64_t t = 0; t < n; t++) json_array_append_new(all, json_integer((json_int_t)v->alive[t]));
  json_object_set_new(o, "alive", all);
  free(change);
  return o;
}

static json_t *view_json(const aoth_memory_view_t *v, const aoth_memory_report_t *r, kit_arena_t *arena) {
  uint64_t kinds[AOTH_MEMORY_KINDS];
  json_t *largest = json_array();
  aoth_memory_by_kind(v, v->plan.peak_step, kinds);
  for (uint32_t i = 0; i < v->n_largest && i < r->top; i++)
    json_array_append_new(largest, holder_json(&v->holders[v->largest[i]]));
  json_t *o = json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "unit", v->title, "step_graph",
                        v->is_step_graph, "steps", (json_int_t)v->plan.n_steps, "forward_steps",
                        (json_int_t)v->plan.n_forward_steps, "update_steps", (json_int_t)v->n_updates, "peak_bytes",
                        (json_int_t)v->plan.peak_nbytes, "arena_bytes", (json_int_t)v->plan.arena_nbytes, "alive_bytes",
                        (json_int_t)v->peak_alive, "peak_step", (json_int_t)v->plan.peak_step, "peak_at", v->peak_at);
  json_object_set_new(o, "within_budget", r->budget ? json_boolean(v->plan.peak_nbytes <= r->budget) : json_null());
  json_object_set_new(o, "buffers", json_integer((json_int_t)v->plan.n_buffers));
  json_object_set_new(o, "by_kind", kinds_json(kinds));
  json_object_set_new(o, "by_module", modules_json(v, arena));
  json_object_set_new(o, "largest", largest);
  json_object_set_new(o, "timeline", timeline_json(v));
  return o;
}

json_t *aoth_memory_json(const aoth_memory_report_t *r, kit_arena_t *arena) {
  json_t *plans = json_array();
  for (uint32_t i = 0; i < r->n_views; i++) json_array_append_new(plans, view_json(&r->views[i], r, arena));
  return json_pack("{s:s, s:o, s:o}", "file", r->file, "budget_bytes",
                   r->budget ? json_integer((json_int_t)r->budget) : json_null(), "plans", plans);
}
