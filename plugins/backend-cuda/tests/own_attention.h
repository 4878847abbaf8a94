/* Own attention (flash_kernels.h) by whatever libcuda.so.1 and NVRTC are found, against sums in double: for its test,
 * on the doubles, and its bench, on a GPU. */
#ifndef OWN_ATTENTION_H
#define OWN_ATTENTION_H

#include "flash_kernels.h"
#include "kit/cuda/nvrtc.h"
#include "kit/reference/rk_core.h"
#include "kit/random/philox.h"
#include "drawn.h"
#include "driver.h"

#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_SEED = 12345, OWN_OFFSET = 77, OWN_DRAW = 3, OWN_WHY = 4000 };

typedef struct own_device {
  gc_driver_t cu;
  gc_context_t context;
  gc_stream_t stream;
  nv_nvrtc_t nvrtc;
  int arch, is_double;
} own_device_t;

static inline int own_open(own_device_t *d, char *why, size_t size) {
  int major = 0, minor = 0;
  char name[64] = "";
  if (gc_driver_open(&d->cu, why, size)) return -1;
  if (d->cu.primary_ctx_retain(&d->context, 0) || d->cu.ctx_set_current(d->context) ||
      d->cu.stream_create(&d->stream, GC_STREAM_NON_BLOCKING, 0) ||
      d->cu.device_get_attribute(&major, GC_CAPABILITY_MAJOR, 0) ||
      d->cu.device_get_attribute(&minor, GC_CAPABILITY_MINOR, 0) || d->cu.device_get_name(name, sizeof name, 0))
    return snprintf(why, size, "the driver gives no context"), -1;
  d->arch = 10 * major + minor;
  d->is_double = strncmp(name, "a double", 8) == 0;
  return nv_nvrtc_open(&d->nvrtc, getenv("AOT_NVRTC"), why, size) ? 0 : -1;
}

/* ---- a call ---- */

typedef struct own_array {
  int32_t dtype;
  int64_t n; /* elements of memory */
  double *v; /* what is there, or is to come there */
  gc_address_t at;
} own_array_t;

typedef struct own_call {
  gc_own_attention_t o;
  own_array_t t[GC_ATT_N_IN_MEMORY]; /* of those that own attention has */
  gc_address_t bits, rows, seed;
  gc_module_t module;
  gc_function_t kernels[GC_OWN_N_KINDS];
} own_call_t;

static inline int own_is_of_keys(int what) {
  return what == GC_ATT_K || what == GC_ATT_V || what == GC_ATT_GK || what == GC_ATT_GV;
}
static inline int own_has(int what) { return what != GC_ATT_BIAS && what != GC_ATT_KEEP && what < GC_ATT_SUMS; }

/* Queries, keys and values as parts of one matrix, where they have as many heads and rows; others dense. */
static inline gc_own_attention_t own_attention(int64_t n_batch, int64_t n_head, int64_t share, int64_t n_query,
                                               int64_t n_key, int64_t width, int is_causal, double dropout,
                                               int32_t dtype) {
  gc_own_attention_t o = {.call = {.dtype = dtype,
                                   .n_batch = n_batch,
                                   .n_head = n_head,
                                   .n_query = n_query,
                                   .n_key = n_key,
                                   .width = width,
                                   .width_v = width,
                                   .share = share,
                                   .scale = 1 / sqrt((double)width),
                                   .is_causal = is_causal,
                                   .keep_dtype = dropout > 0 ? dtype : 0,
                                   .keep_scale = 1 / (1 - dropout)},
                          .n_kept = (uint32_t)ceil((1 - dropout) * (1 << 24))};
  const int is_packed = share == 1 && n_query == n_key;
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
    const int64_t rows = own_is_of_keys(what) ? n_key : n_query, heads = own_is_of_keys(what) ? n_head / share : n_head;
    const int64_t parts = is_packed && (what <= GC_ATT_V || (what >= GC_ATT_GQ && what <= GC_ATT_GV)) ? 3 : 1;
    o.call.strides[what].batch = parts * rows * heads * width;
    o.call.strides[what].head = is_packed ? width : rows * width;
    o.call.strides[what].position = is_packed ? parts * heads * width : width;
  }
  o.call.strides[GC_ATT_STATS].batch = n_head * n_query;
  o.call.strides[GC_ATT_STATS].head = n_query;
  o.call.strides[GC_ATT_STATS].position = 1;
  gc_own_choose(&o);
  return o;
}

static inline int64_t own_place(const gc_attention_t *a, int what, int64_t b, int64_t h, int64_t i, int64_t e) {
  return b * a->strides[what].batch + h * a->strides[what].head + i * a->strides[what].position + e;
}

static inline int own_put(const own_device_t *d, gc_address_t at, const void *from, size_t nbytes) {
  return d->cu.memcpy_to_device(at, from, nbytes, d->stream) || d->cu.stream_synchronize(d->stream);
}

/* Random numbers for what is read, a large one for what is written; of many numbers the first 2^16 again and again. */
static inline int own_fill(const own_device_t *d, own_array_t *a, int is_read) {
  enum { PERIOD = 65521 };
  const size_t size = aot_dtype_size(a->dtype);
  char *bytes = malloc((size_t)a->n * size);
  a->v = malloc((size_t)a->n * sizeof *a->v);
  if (!bytes || !a->v || d->cu.mem_alloc(&a->at, (size_t)a->n * size)) return free(bytes), -1;
  for (int64_t i = 0; i < a->n; i++) {
    if (i < PERIOD) rk_store_f(bytes + (size_t)i * size, a->dtype, is_read ? 1.7 * random_number() : 1e4);
    else memcpy(bytes + (size_t)i * size, bytes + (size_t)(i - PERIOD) * size, size);
    a->v[i] = i < PERIOD ? rk_load_f(bytes + (size_t)i * size, a->dtype) : a->v[i - PERIOD];
  }
  const int failed = own_put(d, a->at, bytes, (size_t)a->n * size);
  free(bytes);
  return failed;
}

static inline int own_compile(const own_device_t *d, own_call_t *c, char *why) {
  lp_text_t text = {0};
  char *image = NULL;
  size_t nbytes = 0;
  int failed = 1;
  lp_prelude_cuda_add(&text);
  for (int32_t kind = 0; kind < GC_OWN_N_KINDS; kind++) {
    gc_own_attention_t o = c->o;
    char name[16];
    snprintf(name, sizeof name, "own_%d", (int)kind);
    o.kind = kind;
    gc_print_own_attention(&o, name, &text);
  }
  if (text.failed) snprintf(why, OWN_WHY, "no text");
  else if (!nv_nvrtc_compile(&d->nvrtc, text.data, "own.cu", d->arch, &image, &nbytes))
    snprintf(why, OWN_WHY, "%s", image ? image : "no memory");
  else if (d->cu.module_load_data(&c->module, image)) snprintf(why, OWN_WHY, "the driver does not take the code");
  else failed = 0;
  for (int32_t kind = 0; kind < GC_OWN_N_KINDS && !failed; kind++) {
    uint32_t blocks, threads, shared;
    char name[16];
    snprintf(name, sizeof name, "own_%d", (int)kind);
    c->o.kind = kind;
    gc_own_launch(&c->o, &blocks, &threads, &shared);
    failed = d->cu.module_get_function(&c->kernels[kind], c->module, name) ||
             (shared && d->cu.func_set_attribute(c->kernels[kind], GC_FUNCTION_MAX_DYNAMIC_SHARED, (int)shared));
    if (failed) snprintf(why, OWN_WHY, "%s with %u bytes of shared memory: refused", name, shared);
  }
  free(image);
  lp_text_deinit(&text);
  return failed ? -1 : 0;
}

/* Another cut of the work on the same memory. */
static inline int own_cut_anew(const own_device_t *d, own_call_t *c, char *why) {
  if (c->module) d->cu.module_unload(c->module);
  c->module = NULL;
  return own_compile(d, c, why);
}

/* Everything that a call needs. 0, or -1 with a reason in why (OWN_WHY bytes). */
static inline int own_begin(const own_device_t *d, own_call_t *c, char *why) {
  const gc_attention_t *a = &c->o.call;
  const int64_t numbers[2] = {OWN_SEED, OWN_OFFSET};
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
    own_array_t *t = &c->t[what];
    if (!own_has(what)) continue;
    const int64_t heads = own_is_of_keys(what) ? a->n_head / a->share : a->n_head;
    const int64_t rows = own_is_of_keys(what) ? a->n_key : a->n_query, width = what == GC_ATT_STATS ? 1 : a->width;
    t->dtype = what == GC_ATT_STATS ? AOT_F32 : a->dtype;
    t->n = own_place(a, what, a->n_batch - 1, heads - 1, rows - 1, width - 1) + 1;
    if (own_fill(d, t, what <= GC_ATT_V || what == GC_ATT_GO)) return snprintf(why, OWN_WHY, "no memory"), -1;
  }
  if (d->cu.mem_alloc(&c->bits, gc_own_bits_nbytes(a)) || d->cu.mem_alloc(&c->rows, gc_own_rows_nbytes(a)) ||
      d->cu.mem_alloc(&c->seed, sizeof numbers) || own_put(d, c->seed, numbers, sizeof numbers))
    return snprintf(why, OWN_WHY, "no memory"), -1;
  return own_compile(d, c, why);
}

static inline void own_end(const own_device_t *d, own_call_t *c) {
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
    if (c->t[what].at) d->cu.mem_free(c->t[what].at);
    free(c->t[what].v);
  }
  if (c->bits) d->cu.mem_free(c->bits);
  if (c->rows) d->cu.mem_free(c->rows);
  if (c->seed) d->cu.mem_free(c->seed);
  if (c->module) d->cu.module_unload(c->module);
}

static inline gc_result_t own_launch(const own_device_t *d, own_call_t *c, int32_t kind) {
  const own_array_t *t = c->t;
  gc_address_t pointers[GC_OWN_N_KINDS][GC_OWN_N_POINTERS] = {
      {t[GC_ATT_Q].at, t[GC_ATT_K].at, t[GC_ATT_V].at, t[GC_ATT_O].at, t[GC_ATT_STATS].at, c->bits, c->seed,
       c->seed + 8, OWN_DRAW},
      {t[GC_ATT_Q].at, t[GC_ATT_K].at, t[GC_ATT_V].at, t[GC_ATT_O].at, t[GC_ATT_STATS].at, t[GC_ATT_GO].at, c->bits,
       t[GC_ATT_GQ].at, c->rows},
      {t[GC_ATT_Q].at, t[GC_ATT_K].at, t[GC_ATT_V].at, t[GC_ATT_GO].at, c->rows, c->bits, t[GC_ATT_GK].at,
       t[GC_ATT_GV].at}};
  uint32_t blocks, threads, shared;
  c->o.kind = kind;
  gc_own_launch(&c->o, &blocks, &threads, &shared);
  size_t nbytes = (size_t)gc_own_n_pointers(&c->o) * sizeof(gc_address_t);
  void *extra[] = {GC_LAUNCH_BUFFER, pointers[kind], GC_LAUNCH_BUFFER_SIZE, &nbytes, GC_LAUNCH_END};
  return d->cu.launch_kernel(c->kernels[kind], blocks, 1, 1, threads, 1, 1, shared, d->stream, NULL, extra);
}

/* ---- the definition ---- */

static inline int own_is_kept(const gc_own_attention_t *o, int64_t element) {
  if (!o->call.keep_dtype) return 1;
  const ph_block_t b = ph_block(OWN_SEED, OWN_OFFSET + OWN_DRAW, (uint64_t)element / 4);
  return b.w[element % 4] >> 8 < o->n_kept;
}

/* Of one group of heads that share keys: what is expected in O, STATS, GQ, GK, GV. */
static inline void own_define(own_call_t *c, int64_t b, int64_t h_key) {
  const gc_attention_t *a = &c->o.call;
  const double keep_scale = a->keep_dtype ? a->keep_scale : 1;
  own_array_t *t = c->t;
  double *p = malloc(3 * (size_t)a->n_key * sizeof *p), *gp = p + a->n_key, *kept = gp + a->n_key;
  for (int64_t j = 0; j < a->n_key; j++)
    for (int64_t e = 0; e < a->width; e++)
      t[GC_ATT_GK].v[own_place(a, GC_ATT_GK, b, h_key, j, e)] =
          t[GC_ATT_GV].v[own_place(a, GC_ATT_GV, b, h_key, j, e)] = 0;
  for (int64_t h = h_key * a->share; h < (h_key + 1) * a->share; h++)
    for (int64_t i = 0; i < a->n_query; i++) {
      const int64_t n = a->is_causal && i + 1 < a->n_key ? i + 1 : a->n_key,
                    line = (b * a->n_head + h) * a->n_query + i;
      const double *q = &t[GC_ATT_Q].v[own_place(a, GC_ATT_Q, b, h, i, 0)];
      const double *go = &t[GC_ATT_GO].v[own_place(a, GC_ATT_GO, b, h, i, 0)];
      double *o = &t[GC_ATT_O].v[own_place(a, GC_ATT_O, b, h, i, 0)];
      double *gq = &t[GC_ATT_GQ].v[own_place(a, GC_ATT_GQ, b, h, i, 0)];
      double most = -INFINITY, sum = 0, rest = 0;
      for (int64_t j = 0; j < n; j++) {
        const double *k = &t[GC_ATT_K].v[own_place(a, GC_ATT_K, b, h_key, j, 0)];
        p[j] = 0;
        for (int64_t e = 0; e < a->width; e++) p[j] += a->scale * q[e] * k[e];
        if (p[j] > most) most = p[j];
        kept[j] = own_is_kept(&c->o, line * a->n_key + j) ? keep_scale : 0;
      }
      for (int64_t j = 0; j < n; j++) sum += p[j] = exp(p[j] - most);
      t[GC_ATT_STATS].v[line] = most + log(sum);
      for (int64_t e = 0; e < a->width; e++) o[e] = gq[e] = 0;
      for (int64_t j = 0; j < n; j++) {
        const double *v = &t[GC_ATT_V].v[own_place(a, GC_ATT_V, b, h_key, j, 0)];
        double *gv = &t[GC_ATT_GV].v[own_place(a, GC_ATT_GV, b, h_key, j, 0)];
        p[j] /= sum;
        gp[j] = 0;
        for (int64_t e = 0; e < a->width; e++) {
          o[e] += kept[j] * p[j] * v[e];
          gv[e] += kept[j] * p[j] * go[e];
          gp[j] += kept[j] * go[e] * v[e];
        }
        rest += gp[j] * p[j];
      }
      for (int64_t j = 0; j < n; j++) {
        const double *k = &t[GC_ATT_K].v[own_place(a, GC_ATT_K, b, h_key, j, 0)], gs = a->scale * p[j] * (gp[j] - rest);
        double *gk = &t[GC_ATT_GK].v[own_place(a, GC_ATT_GK, b, h_key, j, 0)];
        for (int64_t e = 0; e < a->width; e++) {
          gq[e] += gs * k[e];
          gk[e] += gs * q[e];
        }
      }
    }
  free(p);
}

/* ---- differences ---- */

typedef struct own_fault {
  int what;              /* of GC_ATT_*; GC_ATT_KEEP: a bit */
  int64_t b, h, i, e, n; /* the worst; how many are off */
  double got, expected, most_allowed;
} own_fault_t;

/* Of a group of heads as above. 1: right. */
static inline int own_compare(const own_device_t *d, const own_call_t *c, int what, int64_t b, int64_t h_key,
                              double *out_worst, own_fault_t *out) {
  const gc_attention_t *a = &c->o.call;
  const own_array_t *t = &c->t[what];
  const size_t size = aot_dtype_size(t->dtype);
  const int64_t share = own_is_of_keys(what) ? 1 : a->share, rows = own_is_of_keys(what) ? a->n_key : a->n_query;
  const int64_t width = what == GC_ATT_STATS ? 1 : a->width;
  const double unit = t->dtype == AOT_F32 ? 1e-4 : t->dtype == AOT_BF16 ? 1.0 / 64 : 1.0 / 512;
  char *bytes = malloc((size_t)t->n * size);
  *out = (own_fault_t){.what = what, .most_allowed = unit};
  *out_worst = 0;
  d->cu.memcpy_to_host(bytes, t->at, (size_t)t->n * size, d->stream);
  d->cu.stream_synchronize(d->stream);
  for (int64_t h = h_key * share; h < (h_key + 1) * share; h++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t e = 0; e < width; e++) {
        const int64_t at = own_place(a, what, b, h, i, e);
        const double got = rk_load_f(bytes + (size_t)at * size, t->dtype), expected = t->v[at];
        const double off = fabs(got - expected) / (1 + fabs(expected));
        if (!(off <= unit)) out->n++;
        if (!(off <= *out_worst)) {
          *out_worst = off;
          out->b = b, out->h = h, out->i = i, out->e = e, out->got = got, out->expected = expected;
        }
      }
  free(bytes);
  return out->n == 0;
}

/* Bits that the forward left, of a group of heads. 1: right. */
static inline int own_compare_bits(const own_device_t *d, const own_call_t *c, int64_t b, int64_t h_key,
                                   own_fault_t *out) {
  const gc_attention_t *a = &c->o.call;
  const int64_t words = 2 * ((a->n_key + 63) / 64);
  uint32_t *bits = malloc(gc_own_bits_nbytes(a));
  *out = (own_fault_t){.what = GC_ATT_KEEP};
  d->cu.memcpy_to_host(bits, c->bits, gc_own_bits_nbytes(a), d->stream);
  d->cu.stream_synchronize(d->stream);
  for (int64_t h = h_key * a->share; h < (h_key + 1) * a->share; h++)
    for (int64_t i = 0; i < a->n_query; i++)
      for (int64_t j = 0; j < (a->is_causal && i + 1 < a->n_key ? i + 1 : a->n_key); j++) {
        const int64_t line = (b * a->n_head + h) * a->n_query + i;
        const uint32_t word = bits[line * words + j / 64 * 2 + j / 4 % 2];
        const int got = word >> (j % 64 / 8 * 4 + j % 4) & 1u, expected = own_is_kept(&c->o, line * a->n_key + j);
        if (got != expected && !out->n++)
          out->b = b, out->h = h, out->i = i, out->e = j, out->got = got, out->expected = expected;
      }
  free(bits);
  return out->n == 0;
}

#endif
