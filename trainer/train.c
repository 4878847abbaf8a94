/* The loop is a straight line: everything that can be wrong is looked for before the first step. Nothing but the feed
 * draws random numbers, so that equal seeds give equal runs. */
#include <trainer/train.h>

#include "kit/base/vector.h"
#include <aot/inline.h>
#include <math.h>
#include <compiler/rank_consistency.h>
#include <trainer/file_line.h>
#include <compiler/run_ranks.h>
#include <trainer/tensors/safetensors.h>
#include <trainer/checkpoint.h>
#include <trainer/feed.h>
#include <trainer/interrupt.h>
#include <trainer/loss_ring.h>
#include <trainer/progress.h>
#include <trainer/lr_schedule.h>
#include <trainer/writable.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum {
  IN_FLIGHT = 8,   /* steps that are on the queue, or whose losses were not looked at yet, at most */
  MAX_LOSSES = 512 /* of micro steps that are on their way, at most */
};

typedef struct flight { /* a step on the queue */
  double lr;
  uint64_t begin_ns;
  double loss;     /* the mean, as far as it has come .. */
  int64_t n_heard; /* .. of so many micro steps */
} flight_t;

typedef struct loop {
  aoth_feed_ranks_t ranks;
  aoth_checkpoint_ranks_t writers;
  aoth_step_t *step;
  aot_prog_t *prog;
  const aoth_train_spec_t *spec;
  aoth_sink_t *sink;
  aoth_trace_t *trace;
  aoth_train_result_t *result;
  aoth_feed_t *feed;
  aoth_random_t random;
  aoth_schedule_t schedule;
  aoth_progress_t progress;
  int64_t seed;                /* of the run that the checkpoint began, or this one's */
  int64_t put;                 /* steps that were put on the queue .. */
  int64_t done;                /* .. and of them those whose losses have come */
  int64_t n_batches;           /* of a step */
  flight_t flights[IN_FLIGHT]; /* by step, modulo */
  aoth_loss_ring_t losses;
  int64_t saved;                  /* steps at the last checkpoint; -1: none in this run */
  uint64_t moved;                 /* bytes between host and device by the steps since the first */
  uint64_t crossed;               /* from device to device, likewise */
  const aoth_tensor_t **tangents; /* by user output: 1 for the loss */
  double one;                     /* storage of the loss's tangent */
  aoth_tensor_t tangent;
} loop_t;

static aot_status_t fail(const loop_t *l, const aoth_where_t *where, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static aot_status_t fail(const loop_t *l, const aoth_where_t *where, const char *code, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, where && where->line ? where : &l->spec->where, code, "%s", text);
  return AOT_E_INVALID;
}

/* ---- before the first step ---- */

static aot_status_t check_graphs(const loop_t *l) {
  if (aoth_step_has(l->step, AOT_GRAPH_STEP)) return AOT_OK; /* the stage that made it has looked */
  if (!aoth_step_has(l->step, AOT_GRAPH_BACKWARD))
    return fail(
        l, NULL, "train.backward",
        "training requires a backward graph, and the program has none; add stage autograd and a partition stage");
  if (!aoth_step_has(l->step, AOT_GRAPH_UPDATE))
    return fail(l, &l->spec->where_optimizer, "train.update",
                "no stage has added an optimizer's update to the program");
  if (l->spec->loss >= aoth_step_n_outputs(l->step))
    return fail(l, &l->spec->where_loss, "train.loss", "loss index %lld is out of range; the model has %u outputs",
                (long long)l->spec->loss, aoth_step_n_outputs(l->step));
  const int64_t own = aoth_step_own_loss(l->step);
  if (own >= 0 && own != l->spec->loss)
    return fail(l, &l->spec->where_loss, "train.loss",
                "the model was exported with the gradients of user output %lld, so that is the loss", (long long)own);
  if (own < 0 && !aoth_step_takes_tangent(l->step, (uint32_t)l->spec->loss))
    return fail(l, &l->spec->where_loss, "train.loss", "output %lld cannot be the loss; it depends on no parameter",
                (long long)l->spec->loss);
  return AOT_OK;
}

static aot_status_t resume(loop_t *l) {
  aoth_checkpoint_t at = {.optimizer = l->spec->optimizer.use};
  if (!l->spec->resume) return AOT_OK;
  aot_status_t status = aoth_checkpoint_load(l->spec->resume, l->step, &l->writers, &at, l->sink);
  if (status != AOT_OK) {
    aoth_sink_report(l->sink, AOT_SEVERITY_NOTE, &l->spec->where_resume, "train.resume", "while resuming");
    return status;
  }
  l->done = at.step;
  l->random = at.random;
  l->seed = at.seed;
  aoth_step_seed(l->step, at.seed, at.offset + l->ranks.first_draw);
  if (at.seed != l->spec->seed)
    aoth_sink_report(l->sink, AOT_SEVERITY_WARNING, &l->spec->where_resume, "train.seed",
                     "resuming with the checkpoint's seed %lld; the configured seed %lld is ignored",
                     (long long)at.seed, (long long)l->spec->seed);
  return AOT_OK;
}

/* Ranks of several machines read files of their own. */
static aot_status_t agree(const loop_t *l) {
  enum { DATA, RESUMED, N };
  const aoth_train_spec_t *t = l->spec;
  aoth_said_t said[N] = {{.what = "the data"}, {.what = "the resumed checkpoint"}};
  aot_status_t status = AOT_OK;
  if (l->ranks.n == 1) return AOT_OK;
  if (t->data.path) status = aoth_said_file(&said[DATA].text, t->data.path, l->sink);
  if (status == AOT_OK && t->resume) status = aoth_checkpoint_say(t->resume, &said[RESUMED].text, l->sink);
  if (status == AOT_OK) status = aoth_ranks_alike(l->writers.session, said, N, "what the ranks train on");
  for (int k = 0; k < N; k++) kit_text_deinit(&said[k].text);
  return status;
}

/* What the format cannot hold would be found out after the last step. */
static aot_status_t check_dtype(void *self, const char *key, const aoth_tensor_t *t) {
  const loop_t *l = self;
  if (aoth_st_has_dtype(t->dtype)) return AOT_OK;
  return fail(l, &l->spec->where_checkpoint, "train.checkpoint",
              "a checkpoint cannot hold \"%s\", which is %s: safetensors has no such dtype; leave 'checkpoint' out",
              key, aot_dtype_name(t->dtype));
}

static aot_status_t check_checkpoint(loop_t *l) {
  const aoth_train_spec_t *t = l->spec;
  if (!t->checkpoint_path) return AOT_OK;
  AOT_TRY(aoth_step_keys(l->step, AOTH_KEYS_LEAVES | AOTH_KEYS_TYPES, check_dtype, l));
  if (l->ranks.n > 1)
    return aoth_checkpoint_check_folder(t->checkpoint_path, &l->writers, &t->where_checkpoint, l->sink);
  AOT_TRY(aoth_check_regular(t->checkpoint_path, "the checkpoint", &t->where_checkpoint, l->sink));
  return aoth_check_writable(t->checkpoint_path, "the checkpoint", &t->where_checkpoint, l->sink);
}

static aot_status_t prepare(loop_t *l, aot_prog_t *prog, FILE *out) {
  const aoth_train_spec_t *t = l->spec;
  AOT_TRY(check_graphs(l));
  AOT_TRY(check_checkpoint(l));
  AOT_TRY(aoth_feed_open(&t->data, &l->ranks, l->step, prog, l->sink, &l->feed));
  l->tangents = calloc((size_t)aoth_step_n_outputs(l->step) + 1, sizeof *l->tangents);
  if (!l->tangents)
    return fail(l, NULL, "train.memory", "no memory for the tangents of %u outputs", aoth_step_n_outputs(l->step));
  l->seed = t->seed;
  aoth_random_seed(&l->random, (uint64_t)t->seed);
  aoth_step_seed(l->step, t->seed, l->ranks.first_draw);
  AOT_TRY(resume(l));
  AOT_TRY(agree(l));
  l->put = l->done;
  l->n_batches = t->accumulate > 1 ? t->accumulate : 1;
  const int64_t most = l->n_batches < MAX_LOSSES / IN_FLIGHT ? IN_FLIGHT * l->n_batches : MAX_LOSSES;
  AOT_TRY(aoth_loss_ring_init(&l->losses, aoth_step_queue(l->step), (uint32_t)most));
  l->schedule =
      (aoth_schedule_t){.kind = t->schedule, .lr = t->lr, .min_lr = t->min_lr, .warmup = t->warmup, .steps = t->steps};
  l->progress = (aoth_progress_t){
      .out = out,
      .live = out && isatty(fileno(out)),
      .steps = t->steps,
      .log_every = t->log_every,
      .items = aoth_feed_items(l->feed),
      .unit = aoth_feed_unit(l->feed),
  };
  l->result->items = l->progress.items;
  l->result->unit = l->progress.unit;
  l->result->first = l->result->done = l->done;
  return AOT_OK;
}

/* ---- a step ---- */

static aot_status_t save(loop_t *l) {
  aoth_checkpoint_t at = {
      .step = l->done,
      .random = l->random,
      .seed = l->seed,
      .offset = aoth_step_offset(l->step) - l->ranks.first_draw,
      .optimizer = l->spec->optimizer.use,
  };
  if (!l->spec->checkpoint_path || l->saved == l->done) return AOT_OK;
  uint64_t begin = aoth_now_ns();
  AOT_TRY(aoth_checkpoint_save(l->spec->checkpoint_path, l->step, &l->writers, &at, l->sink));
  aoth_trace_span(l->trace, "run", "checkpoint", begin, NULL);
  l->saved = l->done;
  return AOT_OK;
}

static aot_status_t note_loss(loop_t *l, double loss, double lr) {
  aoth_train_result_t *r = l->result;
  int64_t every = l->spec->log_every;
  r->last_loss = loss;
  if (l->done == r->first + 1) r->first_loss = loss;
  if (l->done != r->first + 1 && l->done != l->spec->steps && (every == 0 || l->done % every != 0)) return AOT_OK;
  aoth_loss_at_t *log = kit_grow(r->log, &r->log_capacity, (uint64_t)r->n_log + 1, sizeof *log);
  if (!log) return fail(l, NULL, "train.memory", "no memory for the record of losses");
  r->log = log;
  r->log[r->n_log++] = (aoth_loss_at_t){l->done, loss, lr};
  return AOT_OK;
}

/* The oldest loss that is on its way, for the mean of its step. */
static aot_status_t take_loss(loop_t *l) {
  const int64_t step = l->result->first + (int64_t)l->losses.n_taken / l->n_batches;
  flight_t *flight = &l->flights[step % IN_FLIGHT];
  double loss;
  AOT_TRY(aoth_loss_ring_take(&l->losses, &loss));
  AOT_TRY(aoth_session_ranks_well(l->writers.session)); /* else it is none: what waited was given up */
  flight->loss += loss / (double)l->n_batches;
  flight->n_heard++;
  return AOT_OK;
}

/* The loss of the batch that was put last comes when the queue has it; its tangent is 1 in its dtype. */
static aot_status_t put_loss(loop_t *l) {
  aoth_tensor_t t;
  if (!aoth_step_output(l->step, (uint32_t)l->spec->loss, &t) || aoth_tensor_numel(&t) != 1 ||
      !aot_dtype_is_float(t.dtype))
    return fail(l, &l->spec->where_loss, "train.loss",
                "output %lld cannot be the loss; expected one floating-point element", (long long)l->spec->loss);
  l->tangent = aoth_tensor_make(&l->one, t.dtype, t.rank, t.sizes);
  aoth_tensor_fill(&l->tangent, 1);
  l->tangents[l->spec->loss] = &l->tangent;
  if (aoth_loss_ring_is_full(&l->losses)) AOT_TRY(take_loss(l));
  return aoth_loss_ring_put(&l->losses, &t);
}

static aot_status_t go_back(loop_t *l, double lr) {
  uint64_t at = aoth_now_ns();
  AOT_TRY(aoth_step_backward(l->step, l->tangents, aoth_step_n_outputs(l->step)));
  aoth_trace_span(l->trace, "run", "backward", at, NULL);
  at = aoth_now_ns();
  AOT_TRY(aoth_step_update(l->step, lr));
  aoth_trace_span(l->trace, "run", "update", at, NULL);
  return AOT_OK;
}

/* One batch: a forward, or a whole step, or a micro step. */
static aot_status_t put_batch(loop_t *l, int64_t number, double lr) {
  const aoth_tensor_t *inputs;
  uint32_t n;
  uint64_t at = aoth_now_ns();
  AOT_TRY(aoth_feed_next(l->feed, &l->random, number, &inputs, &n));
  aoth_trace_span(l->trace, "run", "feed", at, NULL);
  at = aoth_now_ns();
  const int is_stitched = aoth_step_has(l->step, AOT_GRAPH_STEP);
  if (is_stitched) AOT_TRY(aoth_step_put(l->step, inputs, n, lr));
  else AOT_TRY(aoth_step_forward(l->step, inputs, n));
  aoth_trace_span(l->trace, "run", is_stitched ? "step graph" : "forward", at, NULL);
  return put_loss(l);
}

static aot_status_t put_step(loop_t *l) {
  const double lr = aoth_schedule_at(&l->schedule, l->put);
  const uint64_t moved = aoth_step_moved(l->step), crossed = aoth_step_crossed(l->step);
  l->flights[l->put % IN_FLIGHT] = (flight_t){.lr = lr, .begin_ns = aoth_now_ns()};
  for (int64_t k = 0; k < l->n_batches; k++) AOT_TRY(put_batch(l, l->put * l->n_batches + k, lr));
  AOT_TRY(aoth_step_has(l->step, AOT_GRAPH_STEP) ? aoth_step_put_apply(l->step, lr) : go_back(l, lr));
  if (l->put > l->result->first) {
    l->moved += aoth_step_moved(l->step) - moved;
    l->crossed += aoth_step_crossed(l->step) - crossed;
  }
  l->put++;
  return AOT_OK;
}

/* A leaf of the step graph that holds one number; 0: there is none. */
static int read_state(const loop_t *l, const char *key, double *out) {
  aoth_tensor_t t;
  if (!aoth_step_get(l->step, key, &t) || aoth_tensor_numel(&t) != 1) return 0;
  *out = kit_element_load(t.dtype, (const char *)t.data + t.offset * (int64_t)aot_dtype_size(t.dtype));
  return 1;
}

/* The step graph has left everything as it was where a gradient is not finite, and says whose it is. Waits for the step
 * that was put last. */
static aot_status_t check_gradients(loop_t *l) {
  double id;
  aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
  if (!read_state(l, "state.check-finite.leaf", &id) || id == 0) return AOT_OK;
  AOT_TRY(aoth_graph_leaf_info(l->prog, (aot_leaf_t){(uint32_t)id}, &leaf));
  const aot_str_t name = leaf.n_names ? leaf.names[0] : aot_str("?");
  l->result->diverged = 1;
  aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, &l->spec->where, "train.gradient",
                   "non-finite gradient of \"%.*s\" at step %lld; the update was skipped and training stops",
                   (int)name.size, name.data, (long long)l->put);
  return AOT_OK;
}

/* The oldest step whose loss was not looked at: where it is no number, that step and all after it do not count. */
static aot_status_t hear_step(loop_t *l) {
  const flight_t *flight = &l->flights[l->done % IN_FLIGHT];
  while (flight->n_heard < l->n_batches) AOT_TRY(take_loss(l));
  const double loss = flight->loss;
  if (!isfinite(loss) && l->spec->loss_scale.kind == AOTH_SCALE_NONE) { /* with a scale the step is skipped */
    l->result->diverged = 1;
    aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, &l->spec->where, "train.diverged",
                     "loss is %s at step %lld; reduce lr or add warmup", isnan(loss) ? "NaN" : "infinite",
                     (long long)l->done + 1);
    return AOT_OK;
  }
  l->done++;
  aoth_trace_span(l->trace, "run", "step", flight->begin_ns, NULL);
  aoth_trace_counter(l->trace, "loss", loss);
  aoth_progress_step(&l->progress, l->done, loss, flight->lr, aoth_now_ns());
  return note_loss(l, loss, flight->lr);
}

/* Losses that are there, and as many as the next step needs room for; or all. */
static aot_status_t hear(loop_t *l, int all) {
  while (l->done < l->put && !l->result->diverged) {
    const int is_full = l->put - l->done == IN_FLIGHT;
    const int64_t n_missing = l->n_batches - l->flights[l->done % IN_FLIGHT].n_heard;
    if (!all && !is_full && !aoth_loss_ring_has(&l->losses, n_missing)) return AOT_OK;
    AOT_TRY(hear_step(l));
  }
  return AOT_OK;
}

/* Of several ranks all stop at the same step, if one was queried to: they report each other now and then, when nothing
 * of the program's is under way. */
static aot_status_t look_for_interrupt(loop_t *l) {
  const uint8_t own = (uint8_t)aoth_interrupt_asked();
  if (l->ranks.n == 1) l->result->interrupted = own;
  if (l->ranks.n == 1 || l->put % IN_FLIGHT) return AOT_OK;
  AOT_TRY(hear(l, 1));
  uint8_t *all = calloc(l->ranks.n, 1);
  if (!all) return fail(l, NULL, "train.memory", "no memory for %u ranks", l->ranks.n);
  const aot_status_t status = aoth_session_gather(l->writers.session, &own, 1, all, "whether to stop");
  for (uint32_t r = 0; r < l->ranks.n; r++) l->result->interrupted |= all[r];
  free(all);
  return status;
}

/* A checkpoint is of steps that have all come to their end, with losses that are numbers. */
static aot_status_t run(loop_t *l) {
  const int64_t every = l->spec->checkpoint_every;
  while (l->put < l->spec->steps && !l->result->diverged && !l->result->interrupted) {
    AOT_TRY(put_step(l));
    if (l->spec->check_finite) AOT_TRY(check_gradients(l));
    const int is_due = every && l->put % every == 0;
    AOT_TRY(hear(l, is_due || l->spec->check_finite));
    if (is_due && !l->result->diverged) AOT_TRY(save(l));
    AOT_TRY(look_for_interrupt(l));
  }
  AOT_TRY(hear(l, 1));
  return l->result->diverged || l->done == l->result->first ? AOT_OK : save(l);
}

static void tell_stop(const loop_t *l) {
  char saved[64] = "no checkpoint was written";
  if (l->saved >= 0) snprintf(saved, sizeof saved, "the last checkpoint is of step %lld", (long long)l->saved);
  aoth_sink_report(l->sink, AOT_SEVERITY_NOTE, &l->spec->where, "train.stopped", "the run stops at step %lld; %s",
                   (long long)l->done + 1, saved);
}

aot_status_t aoth_train(aoth_step_t *s, aot_prog_t *prog, const aoth_train_spec_t *spec, const aoth_feed_ranks_t *ranks,
                        aoth_session_t *session, FILE *out, aoth_sink_t *sink, aoth_trace_t *trace,
                        aoth_train_result_t *result) {
  loop_t l = {.ranks = *ranks,
              .writers = {ranks->rank, ranks->n, session},
              .step = s,
              .prog = prog,
              .spec = spec,
              .sink = sink,
              .trace = trace,
              .result = result,
              .saved = -1};
  *result = (aoth_train_result_t){.first_loss = NAN, .last_loss = NAN, .unit = "rows"};
  aoth_interrupt_t interrupt = {.ask = NULL};
  const uint32_t errors = aoth_sink_count(sink, AOT_SEVERITY_ERROR);
  aot_status_t status = prepare(&l, prog, out);
  if (status == AOT_OK) {
    uint64_t begin = aoth_now_ns();
    aoth_progress_begin(&l.progress, l.done, begin);
    aoth_interrupt_begin(&interrupt);
    status = run(&l);
    if (status != AOT_OK) tell_stop(&l);
    aoth_interrupt_end(&interrupt);
    aoth_progress_end(&l.progress);
    result->seconds = (double)(aoth_now_ns() - begin) / 1e9;
    result->done = l.done;
    if (l.done > result->first + 1) result->moved = l.moved / (uint64_t)(l.done - result->first - 1);
    if (l.done > result->first + 1) result->crossed = l.crossed / (uint64_t)(l.done - result->first - 1);
    if (status == AOT_OK && read_state(&l, "state.loss-scale.scale", &result->loss_scale))
      read_state(&l, "state.loss-scale.skipped", &result->n_skipped);
  }
  status = aoth_sink_exhausted(sink, errors, status, "train");
  const aot_status_t ended = aoth_loss_ring_deinit(&l.losses);
  aoth_feed_close(l.feed);
  free(l.tangents);
  return status != AOT_OK ? status : ended;
}

void aoth_train_deinit(aoth_train_result_t *result) {
  free(result->log);
  result->log = NULL;
}
