#include "kit/base/geometry.h"
#include "kit/base/errors.h"
#include <sandbox/kernel_guards.h>

#include <aot/float_env.h>
#include <aot/inline.h>
#include <device/guarded.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel as backends have it. */
typedef struct stand_in {
  aot_kernel_t table; /* first: what is called is found by it */
  const aot_kernel_t *kernel;
  int starts; /* AOT_KERNEL_STARTS */
  const aot_op_desc_t *op;
  const char *plugin; /* "acme 1.0"; "" where it is not known */
  aoth_kernel_guards_t *guards;
  struct stand_in *next;
} stand_in_t;

/* A tensor of a call. */
typedef struct guard_region {
  aot_tensor_t given; /* of one that outlives its call: sizes and strides are `shape` */
  aot_tensor_t copy;
  int64_t *shape; /* owned; NULL: those of the call */
  aoth_guarded_t memory;
  char *before;   /* what the copy's memory held; NULL: the copy is none of this call's */
  uint32_t which; /* number of the argument or result */
  int is_written, is_result;
  int is_back;                  /* what was written is where it came from */
  struct call *of;              /* the call that is awaited by this one, and whose copy this is; NULL: none */
  struct guard_region *awaited; /* likewise */
} guard_region_t;

typedef struct call {
  const stand_in_t *kernel;
  aot_kernel_arg_t *args;
  aot_tensor_t *results;
  const aot_tensor_t **lists;
  guard_region_t *places;
  uint32_t n_places, n_listed;
  int is_under_way;  /* its kernel has returned, and has only started */
  int is_lost;       /* .. and memory that it writes was given to another since: nothing waits for it */
  struct call *next; /* of those that run */
} call_t;

struct aoth_kernel_guards {
  const aoth_session_t *session;
  stand_in_t *kernels;
  pthread_mutex_t lock; /* of running */
  call_t *running;
};

aoth_kernel_guards_t *aoth_kernel_guards_create(const aoth_session_t *s) {
  aoth_kernel_guards_t *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->session = s;
  pthread_mutex_init(&g->lock, NULL);
  return g;
}

/* ---- elements ---- */

static uint64_t numel(const aot_tensor_t *t) {
  uint64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= (uint64_t)t->sizes[d];
  return n;
}

/* The elements of the tensor, from one memory that lies as it does to another; what is between them stays. */
static void copy_elements(const aot_tensor_t *t, char *to, const char *from) {
  const int64_t size = (int64_t)aot_dtype_size(t->dtype);
  int64_t index[AOT_MAX_RANK] = {0}, place = t->offset;
  for (uint64_t n = numel(t); n; n--) {
    memcpy(to + place * size, from + place * size, (size_t)size);
    tn_next(t->rank, t->sizes, index, 1, &t->strides, &place);
  }
}

/* ---- calls that run, and those that continue ---- */

static void note_running(aoth_kernel_guards_t *g, call_t *c, int is_running) {
  pthread_mutex_lock(&g->lock);
  call_t **at = &g->running;
  if (is_running) {
    c->next = *at;
    *at = c;
  } else {
    while (*at != c) at = &(*at)->next;
    *at = c->next;
  }
  pthread_mutex_unlock(&g->lock);
}

static int meets(const aot_tensor_t *a, const aot_tensor_t *b) {
  const char *first = a->data, *second = b->data;
  return first < second + b->nbytes && second < first + a->nbytes;
}

/* What a call under way writes, and the tensor begins in; NULL: nothing. */
static guard_region_t *find_awaited(aoth_kernel_guards_t *g, const aot_tensor_t *t, call_t **out) {
  guard_region_t *found = NULL;
  pthread_mutex_lock(&g->lock);
  for (call_t *c = g->running; c && !found; c = c->next)
    for (uint32_t i = 0; i < c->n_places && c->is_under_way && !c->is_lost && !found; i++) {
      guard_region_t *p = &c->places[i];
      const char *begin = p->given.data, *data = t->data;
      if (!p->before || !p->is_written || p->is_back || data < begin || data >= begin + p->given.nbytes) continue;
      found = p;
      *out = c;
    }
  pthread_mutex_unlock(&g->lock);
  return found;
}

/* Memory that is written again is awaited of nothing else any more. */
static void lose_earlier(aoth_kernel_guards_t *g, const call_t *now) {
  pthread_mutex_lock(&g->lock);
  for (call_t *c = g->running; c; c = c->next)
    for (uint32_t i = 0; i < c->n_places && c->is_under_way && c != now; i++)
      for (uint32_t k = 0; k < now->n_places; k++)
        c->is_lost |= now->places[k].is_written && c->places[i].is_written && !c->places[i].is_back &&
                      meets(&now->places[k].given, &c->places[i].given);
  pthread_mutex_unlock(&g->lock);
}

/* ---- a call on copies ---- */

static const char *role(const guard_region_t *p) { return p->is_result ? "result" : "argument"; }

static int keep_shape(guard_region_t *p) {
  const size_t rank = (size_t)p->given.rank;
  p->shape = malloc((2 * rank + 1) * sizeof *p->shape);
  if (!p->shape) return 0;
  if (rank) memcpy(p->shape, p->given.sizes, rank * sizeof *p->shape);
  if (rank) memcpy(p->shape + rank, p->given.strides, rank * sizeof *p->shape);
  p->given.sizes = p->copy.sizes = p->shape;
  p->given.strides = p->copy.strides = p->shape + rank;
  return 1;
}

/* One that is written twice is one memory, as the program says; what another call is still writing stays where that one
 * has it. NULL: no memory. */
static const aot_tensor_t *put(call_t *c, const aot_tensor_t *t, uint32_t which, int is_written, int is_result) {
  guard_region_t *p = &c->places[c->n_places++];
  *p = (guard_region_t){.given = *t, .copy = *t, .which = which, .is_written = is_written, .is_result = is_result};
  if (!t->data || !t->nbytes) return &p->copy;
  if (c->kernel->starts && !keep_shape(p)) return NULL;
  if (!is_result) p->awaited = find_awaited(c->kernel->guards, t, &p->of);
  if (p->awaited) {
    p->copy.data = p->awaited->memory.data + ((const char *)t->data - (const char *)p->awaited->given.data);
    return &p->copy;
  }
  for (uint32_t i = 0; is_written && i + 1 < c->n_places; i++) {
    const guard_region_t *o = &c->places[i];
    if (!o->is_written || o->given.data != t->data) continue;
    p->copy.data = o->copy.data;
    return &p->copy;
  }
  char *before = malloc((size_t)t->nbytes);
  if (!before || !aoth_guarded_map(t->nbytes, &p->memory)) {
    free(before);
    return NULL;
  }
  p->before = before;
  if (!is_result) memcpy(p->memory.data, t->data, (size_t)t->nbytes);
  memcpy(p->before, p->memory.data, (size_t)t->nbytes);
  p->copy.data = p->memory.data;
  return &p->copy;
}

static int is_written(const aot_op_desc_t *op, const aot_kernel_call_t *call, uint32_t arg) {
  if (arg >= op->n_args || !(op->args[arg].flags & AOT_SARG_WRITE)) return 0;
  const int32_t condition = op->args[arg].write_if;
  return !condition || ((uint32_t)condition <= call->n_args && call->args[condition - 1].u.i != 0);
}

static uint32_t n_tensors(const aot_kernel_call_t *call) {
  uint32_t n = call->n_results;
  for (uint32_t a = 0; a < call->n_args; a++)
    n += call->args[a].kind == AOT_ARG_VALUE ? 1 : call->args[a].kind == AOT_ARG_VALUES ? call->args[a].n : 0;
  return n;
}

static int put_list(call_t *c, aot_kernel_arg_t *arg, uint32_t which, int is_out) {
  const aot_tensor_t *const *given = arg->u.tensors;
  const aot_tensor_t **copies = c->lists + c->n_listed;
  for (uint32_t e = 0; e < arg->n; e++) {
    copies[e] = given[e] ? put(c, given[e], which, is_out, 0) : NULL;
    if (given[e] && !copies[e]) return 0;
  }
  c->n_listed += arg->n;
  arg->u.tensors = copies;
  return 1;
}

/* 0: no memory. */
static int make_copies(call_t *c, const aot_kernel_call_t *call) {
  const uint32_t n = n_tensors(call) + 1;
  c->args = calloc((size_t)call->n_args + 1, sizeof *c->args);
  c->results = calloc((size_t)call->n_results + 1, sizeof *c->results);
  c->lists = calloc(n, sizeof *c->lists);
  c->places = calloc(n, sizeof *c->places);
  if (!c->args || !c->results || !c->lists || !c->places) return 0;
  if (call->n_args) memcpy(c->args, call->args, call->n_args * sizeof *c->args);
  for (uint32_t a = 0; a < call->n_args; a++) {
    const int is_out = is_written(c->kernel->op, call, a);
    if (c->args[a].kind == AOT_ARG_VALUES && !put_list(c, &c->args[a], a, is_out)) return 0;
    if (c->args[a].kind != AOT_ARG_VALUE) continue;
    c->args[a].u.tensor = put(c, c->args[a].u.tensor, a, is_out, 0);
    if (!c->args[a].u.tensor) return 0;
  }
  for (uint32_t r = 0; r < call->n_results; r++) {
    const aot_tensor_t *t = put(c, &call->results[r], r, 1, 1);
    if (!t) return 0;
    c->results[r] = *t;
  }
  return 1;
}

static void drop(call_t *c) {
  for (uint32_t i = 0; c->places && i < c->n_places; i++) {
    free(c->places[i].shape);
    if (!c->places[i].before) continue;
    aoth_guarded_unmap(&c->places[i].memory);
    free(c->places[i].before);
  }
  free(c->places);
  free(c->lists);
  free(c->results);
  free(c->args);
  free(c);
}

/* Of one kernel, or NULL: all. Nothing uses their memory any more. */
static void drop_started(aoth_kernel_guards_t *g, const stand_in_t *of) {
  call_t *dropped = NULL;
  pthread_mutex_lock(&g->lock);
  for (call_t **at = &g->running; *at;) {
    call_t *c = *at;
    if (!c->is_under_way || (of && c->kernel != of)) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    c->next = dropped;
    dropped = c;
  }
  pthread_mutex_unlock(&g->lock);
  for (call_t *c = dropped, *next; c; c = next) {
    next = c->next;
    drop(c);
  }
}

void aoth_kernel_guards_destroy(aoth_kernel_guards_t *g) {
  if (!g) return;
  drop_started(g, NULL);
  for (stand_in_t *k = g->kernels, *next; k; k = next) {
    next = k->next;
    free(k);
  }
  pthread_mutex_destroy(&g->lock);
  free(g);
}

/* ---- what it did ---- */

/* Who waits for a call reports what that one did. */
static void begin_blame(const call_t *c, kit_text_t *t) {
  kit_text_f(t, "contract violation by plugin %s: its kernel ", c->kernel->plugin);
  if (c->is_under_way) kit_text_f(t, "of %.*s ", (int)c->kernel->op->name.size, c->kernel->op->name.data);
}

static aot_status_t end_blame(const aot_kernel_call_t *call, kit_text_t *t) {
  if (call->message && call->message_size) snprintf(call->message, call->message_size, "%s", t->data ? t->data : "");
  kit_text_deinit(t);
  return AOT_E_CONTRACT;
}

static aot_status_t blame(const call_t *c, const aot_kernel_call_t *call, const guard_region_t *p, const char *format,
                          int64_t at) __attribute__((format(printf, 4, 0)));
static aot_status_t blame(const call_t *c, const aot_kernel_call_t *call, const guard_region_t *p, const char *format,
                          int64_t at) {
  kit_text_t t = {0};
  begin_blame(c, &t);
  kit_text_f(&t, format, (long long)at);
  kit_text_f(&t, " its %s %u of %llu bytes", role(p), p->which, (unsigned long long)p->given.nbytes);
  return end_blame(call, &t);
}

static aot_status_t blame_float_env(const call_t *c, const aot_kernel_call_t *call, const char *left) {
  kit_text_t t = {0};
  begin_blame(c, &t);
  kit_text_f(&t, "left %s", left);
  return end_blame(call, &t);
}

static aot_status_t check_unwritten(const call_t *c, const aot_kernel_call_t *call, const guard_region_t *p) {
  uint64_t first;
  const uint64_t n = aoth_unwritten(&p->copy, &first);
  if (!n) return AOT_OK;
  kit_text_t t = {0};
  begin_blame(c, &t);
  kit_text_f(&t, "left %llu of the %llu elements of its result %u unwritten, the first is %llu", (unsigned long long)n,
             (unsigned long long)numel(&p->given), p->which, (unsigned long long)first);
  return end_blame(call, &t);
}

static uint64_t first_difference(const char *a, const char *b, uint64_t n) {
  uint64_t i = 0;
  while (i < n && a[i] == b[i]) i++;
  return i;
}

/* The copy's memory, with the elements that may be written as they were before. */
static aot_status_t check_rest(const call_t *c, const aot_kernel_call_t *call, const guard_region_t *p) {
  const aoth_guarded_t *m = &p->memory;
  char *tail = m->data + m->nbytes;
  const char *after = aoth_first_written(tail, m->end), *before = aoth_first_written(m->begin, m->data);
  if (after < m->end) return blame(c, call, p, "wrote to byte %lld of", after - m->data);
  if (before < m->data) return blame(c, call, p, "wrote %lld bytes before the beginning of", m->data - before);
  const uint64_t at = first_difference(m->data, p->before, m->nbytes);
  if (at == m->nbytes) return AOT_OK;
  return blame(c, call, p,
               p->is_written ? "wrote to byte %lld, which is in no element, of"
                             : "wrote to byte %lld, which it may only read, of",
               (int64_t)at);
}

static aot_status_t take_place(const call_t *c, const aot_kernel_call_t *call, guard_region_t *p, int is_done) {
  if (!p->before || p->is_back) return AOT_OK;
  const aot_status_t found = is_done && p->is_result ? check_unwritten(c, call, p) : AOT_OK;
  p->is_back = 1;
  if (p->is_written) {
    copy_elements(&p->given, p->given.data, p->memory.data);
    copy_elements(&p->given, p->memory.data, p->before);
  }
  return found == AOT_OK ? check_rest(c, call, p) : found;
}

static aot_status_t take_back(const call_t *c, const aot_kernel_call_t *call, int is_done) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < c->n_places; i++) {
    const aot_status_t found = take_place(c, call, &c->places[i], is_done);
    if (status == AOT_OK) status = found;
  }
  return status;
}

static int is_all_written_back(const call_t *c) {
  for (uint32_t i = 0; i < c->n_places; i++)
    if (c->places[i].before && c->places[i].is_written && !c->places[i].is_back) return 0;
  return 1;
}

/* What the call has waited for is there. What the other one has only read is looked at once all that it writes is. */
static aot_status_t take_awaited(const call_t *c, const aot_kernel_call_t *call) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < c->n_places; i++) {
    call_t *of = c->places[i].of;
    if (!of || c->places[i].awaited->is_back) continue;
    aot_status_t found = take_place(of, call, c->places[i].awaited, 1);
    if (is_all_written_back(of)) {
      const aot_status_t rest = take_back(of, call, 1);
      if (found == AOT_OK) found = rest;
    }
    if (status == AOT_OK) status = found;
  }
  for (uint32_t i = 0; i < c->n_places; i++) {
    call_t *of = c->places[i].of;
    if (!of || !is_all_written_back(of)) continue;
    for (uint32_t k = i; k < c->n_places; k++)
      if (c->places[k].of == of) c->places[k].of = NULL;
    note_running(c->kernel->guards, of, 0);
    drop(of);
  }
  return status;
}

/* A kernel that has only started keeps its copies until something else has waited for what it writes. */
static aot_status_t AOT_CALL on_run(const aot_kernel_t *k, const aot_kernel_call_t *given) {
  const stand_in_t *s = (const stand_in_t *)(const void *)k;
  call_t *c = calloc(1, sizeof *c);
  aot_kernel_call_t call = *given;
  if (!c)
    return kit_no_memory_text(given->message, (size_t)given->message_size, "for copies of its tensors (AOT_VALIDATE)");
  c->kernel = s;
  if (!make_copies(c, given)) {
    drop(c);
    return kit_no_memory_text(given->message, (size_t)given->message_size, "for copies of its tensors (AOT_VALIDATE)");
  }
  call.args = c->args;
  call.results = c->results;
  if (s->starts) lose_earlier(s->guards, c);
  note_running(s->guards, c, 1);
  const aot_float_env_t before = aot_float_env();
  aot_status_t status = s->kernel->run(s->kernel, &call);
  const char *left = aot_float_env_change(before, aot_float_env());
  if (left) aot_float_env_restore(before);
  if (s->starts) {
    c->is_lost = status != AOT_OK;
    c->is_under_way = 1;
    return status;
  }
  note_running(s->guards, c, 0);
  aot_status_t found = take_back(c, given, status == AOT_OK);
  if (left && status == AOT_OK && found == AOT_OK) found = blame_float_env(c, given, left);
  if (status == AOT_OK && found == AOT_OK) found = take_awaited(c, given);
  drop(c);
  return found != AOT_OK ? found : status;
}

static void AOT_CALL on_settle(const aot_kernel_t *k) {
  const stand_in_t *s = (const stand_in_t *)(const void *)k;
  s->kernel->settle(s->kernel);
  drop_started(s->guards, s);
}

/* Of those that hand memory on: on a queue they have their own ways, and memory that is not the host's. */
static const void *AOT_CALL on_ext(const aot_table_t *k, const char *id) {
  const stand_in_t *s = (const stand_in_t *)(const void *)k;
  return aot_ext(&s->kernel->head, id);
}

int aoth_kernel_guards_where(aoth_kernel_guards_t *g, uint64_t address, kit_text_t *out) {
  int is_found = 0;
  if (pthread_mutex_trylock(&g->lock) != 0) return 0;
  for (const call_t *c = g->running; c && !is_found; c = c->next)
    for (uint32_t i = 0; i < c->n_places && !is_found; i++) {
      const guard_region_t *p = &c->places[i];
      is_found = p->before && aoth_guarded_where(&p->memory, address, out);
      if (is_found)
        kit_text_f(out, " %s %u of %llu bytes of its kernel of %.*s", role(p), p->which,
                   (unsigned long long)p->given.nbytes, (int)c->kernel->op->name.size, c->kernel->op->name.data);
    }
  pthread_mutex_unlock(&g->lock);
  return is_found;
}

/* ---- standing in ---- */

static const char *plugin_of(const aoth_session_t *s, const aot_opset_t *opset, char *out, size_t size) {
  out[0] = 0;
  for (uint32_t i = 0; i < s->n_opsets; i++)
    if (s->opsets[i].self == &opset->head)
      snprintf(out, size, "%s %s", s->opsets[i].unit->plugin->note.id, s->opsets[i].unit->plugin->note.version);
  return out;
}

const aot_kernel_t *aoth_kernel_guarded(aoth_kernel_guards_t *g, const aot_kernel_t *kernel, const aot_op_desc_t *op,
                                        const aot_opset_t *opset) {
  char plugin[256];
  aot_kernel_t own; /* an older one has no settle */
  for (stand_in_t *k = g->kernels; k; k = k->next)
    if (k->kernel == kernel) return &k->table;
  const size_t size = strlen(plugin_of(g->session, opset, plugin, sizeof plugin)) + 1;
  stand_in_t *k = aot_import(&own, sizeof own, kernel) == AOT_OK ? calloc(1, sizeof *k + size) : NULL;
  if (!k) return NULL;
  const uint32_t flags = own.head.flags & (AOT_KERNEL_STARTS | AOT_KERNEL_PASSES);
  memcpy(k + 1, plugin, size);
  k->plugin = (const char *)(k + 1);
  k->table = (aot_kernel_t){
      .head = {.struct_size = sizeof k->table, .flags = flags, .get_ext = flags ? on_ext : NULL},
      .op = kernel->op,
      .run = on_run,
      .settle = own.settle ? on_settle : NULL,
  };
  k->kernel = kernel;
  k->starts = (flags & AOT_KERNEL_STARTS) != 0;
  k->op = op;
  k->guards = g;
  k->next = g->kernels;
  g->kernels = k;
  return &k->table;
}
