#include <trainer/feed.h>

#include <aot/inline.h>
#include <base/file.h>
#include <ir/tables.h>
#include <trainer/tensors/given_file.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct source { /* of one user input */
  aoth_tensor_t tensor; /* what the next call gets */
  void *owned;          /* memory of the tensor, unless it is in a file */
  const char *file;     /* SAFETENSORS with batches: the first one */
  int64_t n_steps;      /* SAFETENSORS: rows of its leading dimension; 0: the same at every call */
  uint64_t low, range;  /* RANDOM integers: low + [0, range) */
} source_t;

struct aoth_feed {
  const aoth_data_spec_t *spec;
  aoth_feed_ranks_t ranks;
  aoth_sink_t *sink;
  uint32_t n;
  source_t *source; /* by user input */
  aoth_tensor_t *tensors;
  aoth_st_t *file; /* SAFETENSORS */
  aoth_map_t map;  /* TOKENS */
  int64_t n_tokens, batch, block;
};

static aot_status_t fail(const aoth_feed_t *f, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static aot_status_t fail(const aoth_feed_t *f, const char *code, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aoth_sink_report(f->sink, AOT_SEVERITY_ERROR, &f->spec->where, code, "%s", text);
  return AOT_E_INVALID;
}

/* The geometry that the model expects, symbols at their values in the export, and memory for it. */
static aot_status_t make_tensor(const aoth_feed_t *f, aot_prog_t *prog, const aot_leaf_info_t *leaf, source_t *s) {
  int64_t sizes[AOT_MAX_RANK];
  if (leaf->type.kind != AOT_TYPE_TENSOR)
    return fail(f, "data.kind", "input %u is no tensor; its value cannot be made up", leaf->ordinal);
  for (int32_t d = 0; d < leaf->type.rank; d++) sizes[d] = aoth_graph_dim_hint(prog, leaf->type.sizes[d]);
  if (f->spec->kind == AOTH_DATA_TOKENS) {
    sizes[0] = f->batch;
    sizes[1] = f->block;
  }
  s->tensor = aoth_tensor_make(NULL, leaf->type.dtype, leaf->type.rank, sizes);
  s->owned = s->tensor.data = calloc(1, (size_t)s->tensor.nbytes + 1);
  if (s->owned) return AOT_OK;
  fail(f, "data.memory", "no memory for input %u: %llu bytes were asked for", leaf->ordinal,
       (unsigned long long)s->tensor.nbytes);
  return AOT_E_EXHAUSTED;
}

/* ---- random ---- */

/* Integers stay inside what the model's own sample shows to be valid (token numbers, classes). */
static void find_range(const aot_leaf_info_t *leaf, source_t *s) {
  aoth_tensor_t sample = {.data = (void *)(uintptr_t)leaf->data, .nbytes = leaf->nbytes};
  const aot_type_t *t = &leaf->type;
  int64_t low = INT64_MAX, high = INT64_MIN;
  uint64_t reach;
  s->low = 0;
  s->range = 2;
  if (!leaf->data) return;
  sample.dtype = t->dtype;
  sample.rank = t->rank;
  sample.offset = t->offset;
  for (int32_t d = 0; d < t->rank; d++) {
    if (AOT_DIM_IS_SYM(t->sizes[d]) || (t->strides && AOT_DIM_IS_SYM(t->strides[d]))) return;
    sample.sizes[d] = t->sizes[d];
  }
  aoth_tensor_contiguous(&sample);
  for (int32_t d = 0; t->strides && d < t->rank; d++) sample.strides[d] = t->strides[d];
  sample.offset = t->offset;
  if (!aoth_tensor_extent(&sample, &reach) || reach > sample.nbytes) return;
  aoth_walk_t w;
  for (aoth_walk_begin(&w, &sample, NULL); w.left > 0; aoth_walk_next(&w)) {
    int64_t i = kit_element_load_int(t->dtype, w.at[0]);
    if (i < low) low = i;
    if (i > high) high = i;
  }
  if (low > high) return;
  s->low = (uint64_t)low;
  s->range = (uint64_t)high - (uint64_t)low + 1;
}

static void store_random(aoth_random_t *r, const source_t *s, char *at) {
  int32_t dtype = s->tensor.dtype;
  if (aot_dtype_is_complex(dtype)) {
    int32_t part = aot_dtype_part(dtype);
    kit_element_store(part, at, aoth_random_normal(r));
    kit_element_store(part, at + aot_dtype_size(part), aoth_random_normal(r));
  } else if (aot_dtype_is_float(dtype)) {
    kit_element_store(dtype, at, aoth_random_normal(r));
  } else if (dtype == AOT_BOOL) {
    kit_element_store(dtype, at, (double)aoth_random_below(r, 2));
  } else {
    uint64_t number = s->low + (s->range ? aoth_random_below(r, s->range) : aoth_random_u64(r)); /* little-endian cut */
    memcpy(at, &number, (size_t)aot_dtype_size(dtype));
  }
}

static void next_random(aoth_feed_t *f, aoth_random_t *r) {
  for (uint32_t k = 0; k < f->n; k++) {
    aoth_walk_t w;
    for (aoth_walk_begin(&w, &f->source[k].tensor, NULL); w.left > 0; aoth_walk_next(&w))
      store_random(r, &f->source[k], w.at[0]);
  }
}

/* ---- safetensors ---- */

/* "input.K" or an alias; or just "K". */
static aot_status_t find_input(const aoth_feed_t *f, uint32_t k, uint32_t number, aoth_tensor_t *out) {
  char key[32];
  aot_status_t status = aoth_given_input(f->file, number, f->sink, out);
  if (status != AOT_E_NOT_FOUND) return status;
  snprintf(key, sizeof key, "%u", k);
  const aoth_st_entry_t *e = aoth_st_find(f->file, key);
  if (!e)
    return fail(f, "data.missing", "%s: missing tensor \"input.%u\"; the model has %u inputs", f->spec->path, k, f->n);
  *out = e->tensor;
  return AOT_OK;
}

static aot_status_t find_inputs(aoth_feed_t *f, const aoth_step_t *step, const uint32_t *numbers) {
  int64_t n_steps = 0;
  for (uint32_t k = 0; k < f->n; k++) {
    source_t *s = &f->source[k];
    const aot_type_t *t = &aoth_step_input(step, k)->type;
    AOT_TRY(find_input(f, k, numbers[k], &s->tensor));
    if (t->kind != AOT_TYPE_TENSOR || s->tensor.rank != t->rank + 1 || !aoth_tensor_is_contiguous(&s->tensor)) continue;
    s->n_steps = s->tensor.sizes[0];
    if (s->n_steps == 0) return fail(f, "data.empty", "%s: input %u holds no batch", f->spec->path, k);
    if (n_steps && s->n_steps != n_steps)
      return fail(f, "data.batches", "%s: input %u holds %lld batches, another input %lld", f->spec->path, k,
                  (long long)s->n_steps, (long long)n_steps);
    n_steps = s->n_steps;
    s->file = (const char *)s->tensor.data + s->tensor.offset * (int64_t)aot_dtype_size(s->tensor.dtype);
    s->tensor = aoth_tensor_make((void *)(uintptr_t)s->file, s->tensor.dtype, s->tensor.rank - 1, s->tensor.sizes + 1);
  }
  return AOT_OK;
}

static aot_status_t open_file(aoth_feed_t *f, const aoth_step_t *step) {
  uint32_t *numbers = calloc((size_t)f->n + 1, sizeof *numbers);
  if (!numbers) return AOT_E_EXHAUSTED;
  aot_status_t status = aoth_st_open(f->spec->path, f->sink, &f->file);
  if (status == AOT_OK) {
    aoth_given_numbers(f->file, f->n, numbers);
    status = find_inputs(f, step, numbers);
  }
  free(numbers);
  return status;
}

static void next_file(aoth_feed_t *f, int64_t step) {
  for (uint32_t k = 0; k < f->n; k++) {
    source_t *s = &f->source[k];
    if (s->n_steps) s->tensor.data = (void *)(uintptr_t)(s->file + (uint64_t)(step % s->n_steps) * s->tensor.nbytes);
  }
}

/* ---- tokens ---- */

/* batch and block from the spec, else from the first token input's sizes. */
static aot_status_t find_window(aoth_feed_t *f, const aoth_step_t *step) {
  const aoth_data_spec_t *spec = f->spec;
  for (int i = 0; i < 2; i++) {
    const aot_leaf_info_t *leaf = aoth_step_input(step, spec->inputs[i]);
    if (!leaf)
      return fail(f, "data.inputs", "token input %u is out of range; the model has %u inputs", spec->inputs[i], f->n);
    if (leaf->type.kind != AOT_TYPE_TENSOR || leaf->type.rank != 2 ||
        (leaf->type.dtype != AOT_I64 && leaf->type.dtype != AOT_I32))
      return fail(f, "data.inputs", "tokens go to input %u, which must be an i64 or i32 tensor [batch, block]",
                  spec->inputs[i]);
  }
  const int64_t *sizes = aoth_step_input(step, spec->inputs[0])->type.sizes;
  if (spec->batch % f->ranks.n)
    return fail(f, "data.batch", "batch size %lld is not divisible by the %u ranks", (long long)spec->batch,
                f->ranks.n);
  f->batch = spec->batch ? spec->batch / f->ranks.n : sizes[0];
  f->block = spec->block ? spec->block : sizes[1];
  if (AOT_DIM_IS_SYM(f->batch)) return fail(f, "data.batch", "the model's batch dimension is symbolic; set 'batch: N'");
  if (AOT_DIM_IS_SYM(f->block))
    return fail(f, "data.block", "the model's sequence dimension is symbolic; set 'block: N'");
  if (!AOT_DIM_IS_SYM(sizes[0]) && f->batch != sizes[0])
    return fail(f, "data.batch", "batch is %lld, but the model was exported for %lld", (long long)f->batch,
                (long long)sizes[0]);
  if (!AOT_DIM_IS_SYM(sizes[1]) && f->block != sizes[1])
    return fail(f, "data.block", "block is %lld, but the model was exported for %lld", (long long)f->block,
                (long long)sizes[1]);
  return AOT_OK;
}

static aot_status_t open_tokens(aoth_feed_t *f, const aoth_step_t *step, aot_prog_t *prog) {
  uint64_t size = aot_dtype_size(f->spec->dtype);
  if (f->n != 2)
    return fail(f, "data.inputs", "tokens fill two inputs, the tokens and the next tokens; the model takes %u", f->n);
  AOT_TRY(find_window(f, step));
  AOT_TRY(aoth_file_map(f->spec->path, f->sink, &f->map));
  if (f->map.nbytes % size != 0)
    return fail(f, "data.tokens", "%s has %llu bytes, which is no whole number of %s tokens", f->spec->path,
                (unsigned long long)f->map.nbytes, aot_dtype_name(f->spec->dtype));
  f->n_tokens = (int64_t)(f->map.nbytes / size);
  if (f->n_tokens <= f->block)
    return fail(f, "data.tokens", "%s has %lld tokens; a window of %lld and the token after it need %lld",
                f->spec->path, (long long)f->n_tokens, (long long)f->block, (long long)f->block + 1);
  for (uint32_t k = 0; k < f->n; k++) AOT_TRY(make_tensor(f, prog, aoth_step_input(step, k), &f->source[k]));
  return AOT_OK;
}

static void next_tokens(aoth_feed_t *f, aoth_random_t *r) {
  uint64_t size = aot_dtype_size(f->spec->dtype);
  const source_t *x = &f->source[f->spec->inputs[0]], *y = &f->source[f->spec->inputs[1]];
  for (int64_t row = 0; row < f->batch; row++) {
    uint64_t start = aoth_random_below(r, (uint64_t)(f->n_tokens - f->block));
    for (int64_t i = 0; i <= f->block; i++) {
      const char *at = (const char *)f->map.data + (start + (uint64_t)i) * size;
      int64_t token = kit_element_load_int(f->spec->dtype, at), to = row * f->block + i; /* little-endian cut to i32 */
      uint64_t nx = aot_dtype_size(x->tensor.dtype), ny = aot_dtype_size(y->tensor.dtype);
      if (i < f->block) memcpy((char *)x->owned + (uint64_t)to * nx, &token, (size_t)nx);
      if (i > 0) memcpy((char *)y->owned + (uint64_t)(to - 1) * ny, &token, (size_t)ny);
    }
  }
}

/* ---- the feed ---- */

static aot_status_t open_random(aoth_feed_t *f, const aoth_step_t *step, aot_prog_t *prog) {
  for (uint32_t k = 0; k < f->n; k++) {
    AOT_TRY(make_tensor(f, prog, aoth_step_input(step, k), &f->source[k]));
    find_range(aoth_step_input(step, k), &f->source[k]);
  }
  return AOT_OK;
}

static aot_status_t open_kind(aoth_feed_t *f, const aoth_step_t *step, aot_prog_t *prog) {
  switch (f->spec->kind) {
    case AOTH_DATA_RANDOM: return open_random(f, step, prog);
    case AOTH_DATA_SAFETENSORS: return open_file(f, step);
    case AOTH_DATA_TOKENS: return open_tokens(f, step, prog);
    default:
      return fail(f, "data.none",
                  "the run has no inputs; name them: --inputs FILE.safetensors, or 'inputs:' in the run section");
  }
}

aot_status_t aoth_feed_open(const aoth_data_spec_t *spec, const aoth_feed_ranks_t *ranks, const aoth_step_t *step,
                            aot_prog_t *prog, aoth_sink_t *sink, aoth_feed_t **out) {
  aoth_feed_t *f = calloc(1, sizeof *f);
  *out = NULL;
  if (f) {
    f->n = aoth_step_n_inputs(step);
    f->source = calloc((size_t)f->n + 1, sizeof *f->source);
    f->tensors = calloc((size_t)f->n + 1, sizeof *f->tensors);
  }
  if (!f || !f->source || !f->tensors) {
    aoth_feed_close(f);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &spec->where, "data.memory", "no memory for the inputs");
    return AOT_E_EXHAUSTED;
  }
  f->spec = spec;
  f->ranks = *ranks;
  f->sink = sink;
  aot_status_t status = open_kind(f, step, prog);
  if (status != AOT_OK) aoth_feed_close(f);
  else *out = f;
  return status;
}

void aoth_feed_close(aoth_feed_t *f) {
  if (!f) return;
  for (uint32_t k = 0; f->source && k < f->n; k++) free(f->source[k].owned);
  aoth_st_close(f->file);
  if (f->map.nbytes) aoth_file_unmap(&f->map);
  free(f->source);
  free(f->tensors);
  free(f);
}

static void draw(aoth_feed_t *f, aoth_random_t *r) {
  if (f->spec->kind == AOTH_DATA_RANDOM) next_random(f, r);
  if (f->spec->kind == AOTH_DATA_TOKENS) next_tokens(f, r);
}

aot_status_t aoth_feed_next(aoth_feed_t *f, aoth_random_t *r, int64_t step, const aoth_tensor_t **out,
                            uint32_t *out_n) {
  if (f->spec->kind == AOTH_DATA_SAFETENSORS) next_file(f, step * f->ranks.n + f->ranks.rank);
  aoth_random_t own = *r;
  for (uint32_t k = 0; k < f->ranks.n; k++) { /* the others' are drawn, too: r continues alike on all ranks */
    if (k == f->ranks.rank) own = *r;
    draw(f, r);
  }
  if (f->ranks.rank + 1 != f->ranks.n) draw(f, &own);
  for (uint32_t k = 0; k < f->n; k++) f->tensors[k] = f->source[k].tensor;
  *out = f->tensors;
  *out_n = f->n;
  return AOT_OK;
}

uint64_t aoth_feed_items(const aoth_feed_t *f) {
  if (f->spec->kind == AOTH_DATA_TOKENS) return (uint64_t)(f->ranks.n * f->batch * f->block);
  return f->ranks.n * (f->n && f->source[0].tensor.rank ? (uint64_t)f->source[0].tensor.sizes[0] : 1);
}

const char *aoth_feed_unit(const aoth_feed_t *f) { return f->spec->kind == AOTH_DATA_TOKENS ? "tokens" : "rows"; }
