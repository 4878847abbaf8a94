/* cuda_loops [--json] [--tune] [--text] [NAME..]: the loops of a GPT-2 step as generated CUDA C, on a GPU.
 *
 * Every loop is scheduled, printed, compiled by NVRTC and run on its own memory at full size. Its results are compared
 * with those of generated C, over parts of them. Times are medians of 20 launches between events, on several sets of
 * buffers in turn, so that the second cache holds nothing of them; GB/s are bytes read and written once. The copy in
 * the first line is the limit that shares refer to.
 *
 * --tune runs other schedules of each loop, too; --text prints the text, and needs no GPU. */
#include "kit/cuda/nvrtc.h"
#include "kit/cuda/symbols.h"
#include "kit/loops/loop_print.h"
#include "kit/random/philox.h"
#include "device_properties.h"
#include "gpt2_loops.h"
#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ACCESSES = 16, MOST_SETS = 4, ROUNDS = 20, WARM = 3, SET_BYTES = 400000000, DRAW = 4 };
typedef void (*reference_fn)(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end);
extern const reference_fn references[];

typedef struct events {
  gc_result_t (*create)(gc_event_t *out, unsigned flags);
  gc_result_t (*record)(gc_event_t event, gc_stream_t stream);
  gc_result_t (*synchronize)(gc_event_t event);
  gc_result_t (*elapsed)(float *out_ms, gc_event_t begin, gc_event_t end);
  gc_result_t (*attribute)(int *out, int attribute, gc_function_t function);
} events_t;

typedef struct bench {
  gc_driver_t driver;
  events_t events;
  nv_nvrtc_t nvrtc;
  gc_stream_t stream;
  gc_event_t begin, end;
  lp_gpu_machine_t machine;
  int is_json, is_tuning, n_printed;
  double copy; /* GB/s */
} bench_t;

/* A loop, its memory on both sides, and its kernels. */
typedef struct work {
  int number;
  const char *name;
  lp_parsed_t parsed;
  lp_loop_t *loop;
  uint32_t n;
  size_t size[MOST_ACCESSES];
  char *
      host[MOST_ACCESSES]; /* loads: their data; stores: what the reference has written, from the first comparison on */
  gc_address_t device[MOST_SETS][MOST_ACCESSES];
  uint32_t n_sets;
  double bytes;
} work_t;

typedef struct kernels {
  gc_module_t module;
  gc_function_t begin, merge, main, end;
  gc_address_t scratch, wrong;
  int registers, local;
} kernels_t;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "cuda_loops: %s: %s\n", what, why);
  exit(1);
}

static void check(const bench_t *b, gc_result_t result, const char *what) {
  char buffer[160];
  if (result != GC_SUCCESS) fail(what, gc_driver_error(&b->driver, result, buffer, sizeof buffer));
}

static void *allocate(size_t n) {
  void *memory = malloc(n ? n : 1);
  if (!memory) fail("memory", "there is not enough");
  return memory;
}

/* ---- memory ---- */

static void fill(char *at, int32_t dtype, size_t n, int is_positive, uint32_t *state) {
  for (size_t k = 0; k < n; k++) {
    *state = *state * 1664525u + 1013904223u;
    const float unit = (float)(*state >> 8) * 0x1p-24f, v = is_positive ? unit : 2 * unit - 1;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (dtype == AOT_F32) ((uint32_t *)(void *)at)[k] = bits;
    else if (dtype == AOT_BF16) ((uint16_t *)(void *)at)[k] = (uint16_t)(bits >> 16);
    else if (dtype == AOT_I64) /* of a vocabulary; few of it are most of a text */
      ((int64_t *)(void *)at)[k] = (int64_t)(50000 * (is_positive ? unit * unit * unit * unit : unit));
    else fail("dtype", "no data of it are made");
  }
}

static void prepare(work_t *w, int number) {
  uint32_t state = 5;
  memset(w, 0, sizeof *w);
  w->number = number;
  w->name = gpt2_loops[number].name;
  const uint32_t wrong = lp_parse(gpt2_loops[number].text, &w->parsed);
  if (wrong || !lp_simplify(&w->parsed.loop)) fail(w->name, "it is no loop");
  w->loop = &w->parsed.loop;
  w->n = w->loop->n_loads + w->loop->n_stores;
  double elements = 1;
  for (int32_t d = 0; d < w->loop->rank; d++) elements *= (double)w->loop->sizes[d];
  if (w->n > MOST_ACCESSES) fail(w->name, "it has too many accesses");
  for (uint32_t k = 0; k < w->n; k++) {
    const lp_access_t *a = &w->loop->accesses[k];
    size_t n = 1;
    for (int32_t d = 0; d < w->loop->rank; d++) n += (size_t)((w->loop->sizes[d] - 1) * a->strides[d]);
    for (uint32_t i = 0; i < a->n_indices; i++) n += (size_t)((a->indices[i].size - 1) * a->indices[i].stride);
    w->size[k] = a->draws ? 0 : n * aot_dtype_size(a->dtype);
    w->bytes += (a->n_indices ? elements : (double)n) * (double)(a->draws ? 0 : aot_dtype_size(a->dtype));
    if (a->draws || k >= w->loop->n_loads) continue;
    w->host[k] = allocate(w->size[k]);
    fill(w->host[k], a->dtype, n, gpt2_loops[number].positive >> k & 1, &state);
  }
  w->n_sets = w->bytes > SET_BYTES ? 1 : (uint32_t)(SET_BYTES / w->bytes) + 1;
  if (w->n_sets > MOST_SETS) w->n_sets = MOST_SETS;
}

static void upload(const bench_t *b, work_t *w) {
  for (uint32_t set = 0; set < w->n_sets; set++)
    for (uint32_t k = 0; k < w->n; k++) {
      if (!w->size[k]) continue;
      check(b, b->driver.mem_alloc(&w->device[set][k], w->size[k]), "memory of the GPU");
      if (!w->host[k]) continue; /* a store */
      check(b, b->driver.memcpy_to_device(w->device[set][k], w->host[k], w->size[k], b->stream), "copy");
    }
  check(b, b->driver.stream_synchronize(b->stream), "copy");
}

static void release(const bench_t *b, work_t *w) {
  for (uint32_t set = 0; set < w->n_sets; set++)
    for (uint32_t k = 0; k < w->n; k++)
      if (w->device[set][k]) b->driver.mem_free(w->device[set][k]);
  for (uint32_t k = 0; k < w->n; k++) free(w->host[k]);
  lp_parsed_deinit(&w->parsed);
}

/* ---- kernels ---- */

static void print_text(const work_t *w, lp_text_t *out) {
  lp_prelude_cuda_add(out);
  lp_gen_cuda(w->loop, w->name, out);
  if (out->failed) fail(w->name, "its text is not printed");
}

static void load(const bench_t *b, const work_t *w, kernels_t *out) {
  lp_text_t text = {0};
  char *image, other[64];
  size_t size;
  memset(out, 0, sizeof *out);
  print_text(w, &text);
  if (!nv_nvrtc_compile(&b->nvrtc, text.data, w->name, (int)b->machine.arch, &image, &size))
    fail(w->name, image ? image : "it does not compile");
  check(b, b->driver.module_load_data(&out->module, image), w->name);
  check(b, b->driver.module_get_function(&out->main, out->module, w->name), w->name);
  check(b, b->driver.func_set_attribute(out->main, GC_FUNCTION_MAX_DYNAMIC_SHARED, (int)w->loop->gpu.shared), w->name);
  b->events.attribute(&out->registers, 4, out->main);
  b->events.attribute(&out->local, 3, out->main);
  snprintf(other, sizeof other, "%s_begin", w->name);
  if (lp_gpu_has_begin(w->loop)) check(b, b->driver.module_get_function(&out->begin, out->module, other), other);
  snprintf(other, sizeof other, "%s_merge", w->name);
  if (lp_gpu_has_merge(w->loop)) check(b, b->driver.module_get_function(&out->merge, out->module, other), other);
  snprintf(other, sizeof other, "%s_end", w->name);
  if (lp_gpu_has_end(w->loop)) check(b, b->driver.module_get_function(&out->end, out->module, other), other);
  if (lp_gpu_scratch(w->loop)) check(b, b->driver.mem_alloc(&out->scratch, lp_gpu_scratch(w->loop)), "scratch memory");
  if (lp_has_indices(w->loop)) check(b, b->driver.mem_alloc(&out->wrong, sizeof(int64_t)), "memory");
  free(image);
  lp_text_deinit(&text);
}

static void unload(const bench_t *b, kernels_t *k) {
  if (k->scratch) b->driver.mem_free(k->scratch);
  if (k->wrong) b->driver.mem_free(k->wrong);
  b->driver.module_unload(k->module);
}

static void launch(const bench_t *b, const work_t *w, const kernels_t *kernels, uint32_t set) {
  gc_address_t pointers[MOST_ACCESSES + 2];
  void *arguments[1] = {pointers};
  const lp_gpu_t *g = &w->loop->gpu;
  const lp_loop_t *l = w->loop;
  for (uint32_t k = 0; k < w->n; k++)
    pointers[lp_gpu_word(l, k)] = l->accesses[k].draws ? (gc_address_t)DRAW : w->device[set][k];
  if (l->gpu.tensors) {
    pointers[lp_gpu_shared_words(l) + LP_GPU_SIZE] = (gc_address_t)l->sizes[0];
    pointers[lp_gpu_shared_words(l) + LP_GPU_FIRST_BLOCK] = 0;
  } else {
    pointers[w->n] = kernels->wrong ? kernels->wrong : kernels->scratch;
    pointers[w->n + 1] = kernels->scratch;
  }
  if (kernels->begin)
    check(b,
          b->driver.launch_kernel(kernels->begin, lp_gpu_begin_blocks(w->loop), 1, 1, LP_GPU_BEGIN_THREADS, 1, 1, 0,
                                  b->stream, arguments, NULL),
          w->name);
  if (kernels->merge)
    check(b,
          b->driver.launch_kernel(kernels->merge, lp_gpu_merge_blocks(w->loop), 1, 1, LP_GPU_BEGIN_THREADS, 1, 1, 0,
                                  b->stream, arguments, NULL),
          w->name);
  check(
      b,
      b->driver.launch_kernel(kernels->main, g->blocks, 1, 1, g->threads, 1, 1, g->shared, b->stream, arguments, NULL),
      w->name);
  if (kernels->end)
    check(b,
          b->driver.launch_kernel(kernels->end, lp_gpu_end_blocks(w->loop), 1, 1, LP_GPU_END_THREADS, 1, 1, 0,
                                  b->stream, arguments, NULL),
          w->name);
}

static int by_size(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Milliseconds, the median. */
static double measure(const bench_t *b, const work_t *w, const kernels_t *kernels) {
  float times[ROUNDS];
  for (uint32_t k = 0; k < WARM + ROUNDS; k++) {
    check(b, b->events.record(b->begin, b->stream), "event");
    launch(b, w, kernels, k % w->n_sets);
    check(b, b->events.record(b->end, b->stream), "event");
    check(b, b->events.synchronize(b->end), w->name);
    if (k >= WARM) check(b, b->events.elapsed(&times[k - WARM], b->begin, b->end), "event");
  }
  qsort(times, ROUNDS, sizeof *times, by_size);
  return (double)(times[ROUNDS / 2 - 1] + times[ROUNDS / 2]) / 2;
}

/* ---- results ---- */

static void run_reference(work_t *w) {
  for (uint32_t k = w->loop->n_loads; k < w->n; k++) {
    w->host[k] = allocate(w->size[k]);
    memset(w->host[k], w->loop->accesses[k].adds ? 0 : 0xff, w->size[k]); /* NaN, and no bool */
  }
  lp_parsed_t p;
  lp_parse(gpt2_loops[w->number].text, &p);
  lp_simplify(&p.loop);
  lp_schedule(&p.loop);
  int is_whole = p.loop.sizes[0] < 64;
  for (uint32_t k = 0; k < p.loop.n_insts; k++) is_whole |= p.loop.insts[k].reduce == LP_ACROSS;
  is_whole |= p.loop.accesses[p.loop.n_loads].adds;
  const int64_t size = p.loop.sizes[0], part = is_whole ? size : size / 32;
  lp_draw_t draw = {.fill = ph_run_words32, .draw = DRAW};
  int64_t wrong = 0;
  char *pointers[MOST_ACCESSES + 8];
  int64_t *numbers = allocate(lp_n_numbers(&p.loop) * sizeof *numbers);
  lp_numbers(&p.loop, numbers);
  for (uint32_t k = 0; k < w->n; k++) pointers[k] = p.loop.accesses[k].draws ? (char *)&draw : w->host[k];
  for (uint32_t k = 0; k < p.loop.n_kept; k++)
    pointers[w->n + k] = allocate((size_t)p.loop.sizes[p.loop.rank - 1] * sizeof(double));
  pointers[w->n + p.loop.n_kept] = (char *)&wrong;
  references[w->number](pointers, p.loop.sizes, numbers, 0, part);
  if (!is_whole) references[w->number](pointers, p.loop.sizes, numbers, size - part, size);
  for (uint32_t k = 0; k < p.loop.n_kept; k++) free(pointers[w->n + k]);
  free(numbers);
  lp_parsed_deinit(&p);
}

static double value(const char *at, int32_t dtype, size_t k) {
  uint32_t bits;
  float f;
  if (dtype == AOT_BOOL) return at[k];
  if (dtype == AOT_F64) return ((const double *)(const void *)at)[k];
  if (dtype == AOT_BF16) bits = (uint32_t)((const uint16_t *)(const void *)at)[k] << 16;
  else bits = ((const uint32_t *)(const void *)at)[k];
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The largest distance from the reference, against 1 and the number; of what the reference has written. */
static double compare(const bench_t *b, work_t *w) {
  double most = 0;
  if (!w->host[w->loop->n_loads]) run_reference(w);
  for (uint32_t k = w->loop->n_loads; k < w->n; k++) {
    const int32_t dtype = w->loop->accesses[k].dtype;
    const size_t size = aot_dtype_size(dtype), n = w->size[k] / size;
    char *got = allocate(w->size[k]);
    size_t n_compared = 0;
    check(b, b->driver.memcpy_to_host(got, w->device[0][k], w->size[k], b->stream), "copy");
    check(b, b->driver.stream_synchronize(b->stream), "copy");
    for (size_t i = 0; i < n; i++) {
      if (memcmp(w->host[k] + i * size, "\xff\xff\xff\xff\xff\xff\xff\xff", size) == 0) continue;
      const double x = value(got, dtype, i), y = value(w->host[k], dtype, i), off = fabs(x - y) / (1 + fabs(y));
      n_compared++;
      if (!(off <= most)) most = off;
    }
    if (!n_compared) most = NAN;
    free(got);
  }
  return most;
}

/* What adds to memory has done so in every round: once more, to nothing. */
static void run_from_nothing(const bench_t *b, const work_t *w, const kernels_t *kernels) {
  int adds = 0;
  for (uint32_t k = w->loop->n_loads; k < w->n; k++) {
    if (!w->loop->accesses[k].adds) continue;
    check(b, b->driver.memset_bytes(w->device[0][k], 0, w->size[k], b->stream), "memory");
    adds = 1;
  }
  if (adds) launch(b, w, kernels, 0);
}

/* ---- the table ---- */

static const char *kind_name(int32_t kind) {
  static const char *const names[] = {"", "points", "rows", "columns", "places"};
  return names[kind];
}

static void print_row(bench_t *b, const work_t *w, const kernels_t *k, double ms, double off) {
  const lp_gpu_t *g = &w->loop->gpu;
  const double rate = w->bytes / ms / 1e6;
  if (b->is_json)
    printf("%s{\"loop\": \"%s\", \"kind\": \"%s\", \"blocks\": %u, \"threads\": %u, \"team\": %u, \"vector\": %u, "
           "\"chunks\": %u, \"splits\": %u, \"stages\": %u, \"bulk\": %u, \"shared\": %u, \"registers\": %d, "
           "\"local\": %d, \"ms\": "
           "%.5f, \"GB/s\": %.1f, "
           "\"share\": %.4f, \"error\": %s%.3g%s}",
           b->n_printed++ ? ",\n" : "", w->name, kind_name(g->kind), g->blocks, g->threads, g->team, g->vector,
           g->chunks, g->splits, g->stages, g->bulk, g->shared, k->registers, k->local, ms, rate, rate / b->copy,
           off == off ? "" : "\"", off, off == off ? "" : "\"");
  else
    printf("| %-25s | %-7s | %7u | %4u | %4u | %2u | %2u | %4u | %u%s | %3d | %3d | %8.4f | %7.0f | %5.1f | %8.2g |\n",
           w->name, kind_name(g->kind), g->blocks, g->threads, g->team, g->vector, g->chunks, g->splits, g->stages,
           g->bulk ? "b" : " ", k->registers, k->local, ms, rate, 100 * rate / b->copy, off);
  fflush(stdout);
}

static void run_schedule(bench_t *b, work_t *w) {
  kernels_t kernels;
  load(b, w, &kernels);
  const double ms = measure(b, w, &kernels);
  run_from_nothing(b, w, &kernels);
  const double off = compare(b, w);
  if (b->copy == 0) b->copy = w->bytes / ms / 1e6;
  print_row(b, w, &kernels, ms, off);
  unload(b, &kernels);
}

/* Another schedule of the loop: parsed anew, as a schedule may have dropped what is kept. */
static void run_other(bench_t *b, work_t *w, const lp_gpu_t *other) {
  lp_parsed_t kept = w->parsed, p;
  lp_parse(gpt2_loops[w->number].text, &p);
  lp_simplify(&p.loop);
  lp_gpu_schedule(&p.loop, &b->machine);
  const lp_gpu_t first = p.loop.gpu;
  p.loop.gpu = *other;
  p.loop.gpu.blocks = 0; /* as many as run at once, where it matters */
  if (lp_gpu_fit(&p.loop, &b->machine) && memcmp(&first, &p.loop.gpu, sizeof first) != 0) {
    w->parsed = p;
    w->loop = &w->parsed.loop;
    run_schedule(b, w);
    w->parsed = kept;
    w->loop = &w->parsed.loop;
  }
  lp_parsed_deinit(&p);
}

/* Rows through registers, and through shared memory: teams of a block, and rows of each on their way. */
static void tune_stages(bench_t *b, work_t *w) {
  lp_gpu_t g = w->loop->gpu;
  for (g.team = 32; g.team <= 1024; g.team += g.team < 256 ? 32 : 128)
    for (uint32_t teams = 1; teams * g.team <= 1024 && teams <= 8; teams *= 2)
      for (g.stages = 0; g.stages <= 4; g.stages++)
        for (g.bulk = 0; g.bulk <= (g.stages > 0); g.bulk++) {
          g.threads = g.team * teams;
          run_other(b, w, &g);
        }
}

/* Half and double of everything that the rule has chosen, and other blocks. */
static void tune(bench_t *b, work_t *w) {
  static const uint32_t threads[] = {64, 96, 128, 192, 256, 384, 512, 768, 1024}, teams[] = {8, 16, 32};
  const lp_gpu_t first = w->loop->gpu;
  const int are_columns = first.kind == LP_GPU_COLUMNS;
  if (first.stages) {
    tune_stages(b, w);
    return;
  }
  for (uint32_t vector = first.vector * 2; vector && vector >= first.vector / 2; vector /= 2) {
    lp_gpu_t g = first;
    g.vector = vector;
    for (size_t t = 0; t < sizeof threads / sizeof *threads && !are_columns; t++) {
      g.threads = g.team = threads[t];
      run_other(b, w, &g);
      g.team = 32;
      if (first.kind == LP_GPU_ROWS && threads[t] > 32 && threads[t] < 512) run_other(b, w, &g);
    }
    for (size_t t = 0; t < sizeof teams / sizeof *teams && are_columns; t++)
      for (g.chunks = 1; g.chunks <= 8; g.chunks *= 2) {
        g.team = teams[t];
        g.splits = first.splits * g.team / 32 ? first.splits * g.team / 32 : 1;
        run_other(b, w, &g);
      }
  }
  for (uint32_t splits = first.splits > 4 ? first.splits / 4 : 1; first.splits > 1 && splits <= 8 * first.splits;
       splits *= 2) {
    lp_gpu_t g = first;
    g.splits = splits;
    run_other(b, w, &g);
  }
}

static void run_loop(bench_t *b, int number) {
  work_t w;
  prepare(&w, number);
  if (!lp_gpu_schedule(w.loop, &b->machine)) fail(w.name, "it has no schedule");
  upload(b, &w);
  run_schedule(b, &w);
  if (b->is_tuning) tune(b, &w);
  release(b, &w);
}

/* ---- start ---- */

static void start(bench_t *b) {
  char why[256], name[128] = "";
  gc_ordinal_t device;
  gc_context_t context;
  if (gc_driver_open(&b->driver, why, sizeof why) != 0) fail("the driver", why);
  if (!nv_nvrtc_open(&b->nvrtc, getenv("AOT_NVRTC"), why, sizeof why)) fail("NVRTC", why);
  const nv_symbol_t symbols[] = {{"cuEventCreate", &b->events.create},
                                 {"cuEventRecord", &b->events.record},
                                 {"cuEventSynchronize", &b->events.synchronize},
                                 {"cuEventElapsedTime", &b->events.elapsed},
                                 {"cuFuncGetAttribute", &b->events.attribute}};
  if (!nv_find_symbols(b->driver.library, symbols, sizeof symbols / sizeof *symbols, why, sizeof why))
    fail("the driver", why);
  check(b, b->driver.device_get(&device, 0), "device 0");
  check(b, b->driver.primary_ctx_retain(&context, device), "context");
  check(b, b->driver.ctx_set_current(context), "context");
  check(b, b->driver.stream_create(&b->stream, GC_STREAM_NON_BLOCKING, 0), "stream");
  check(b, b->events.create(&b->begin, 0), "event");
  check(b, b->events.create(&b->end, 0), "event");
  b->driver.device_get_name(name, sizeof name, device);
  b->machine = gc_facts_of(&b->driver, device).machine;
  if (b->is_json) {
    printf("{\"device\": \"%s\", \"processors\": %d, \"nvrtc\": \"%d.%d\", \"loops\": [\n", name,
           (int)b->machine.n_processors, b->nvrtc.major, b->nvrtc.minor);
    return;
  }
  printf("%s, %d multiprocessors, sm_%d, NVRTC %d.%d; error: against generated C, over 1 + |x|\n\n", name,
         (int)b->machine.n_processors, (int)b->machine.arch, b->nvrtc.major, b->nvrtc.minor);
  printf("| loop | kind | blocks | threads | team | vector | chunks | splits | stages | registers | local | ms | GB/s "
         "| %% of "
         "copy | "
         "error |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static int print_all(void) {
  for (int k = 0; k < N_GPT2_LOOPS; k++) {
    lp_parsed_t p;
    lp_text_t out = {0};
    if (lp_parse(gpt2_loops[k].text, &p) || !lp_simplify(&p.loop) || !lp_gpu_schedule(&p.loop, &lp_gpu_h100))
      fail(gpt2_loops[k].name, "it has no schedule");
    lp_print_loop(&p.loop, &out);
    lp_print(&out, "\n");
    lp_gen_cuda(&p.loop, gpt2_loops[k].name, &out);
    puts(out.data);
    lp_text_deinit(&out);
    lp_parsed_deinit(&p);
  }
  return 0;
}

int main(int argc, char **argv) {
  bench_t b = {0};
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (strcmp(argv[first], "--text") == 0) return print_all();
    if (strcmp(argv[first], "--json") == 0) b.is_json = 1;
    else if (strcmp(argv[first], "--tune") == 0) b.is_tuning = 1;
    else fail(argv[first], "there is no such option");
  }
  start(&b);
  for (int k = 0; k < N_GPT2_LOOPS; k++) {
    int is_asked = first == argc || k == 0; /* the copy: shares refer to it */
    for (int a = first; a < argc; a++) is_asked |= strcmp(argv[a], gpt2_loops[k].name) == 0;
    if (is_asked) run_loop(&b, k);
  }
  if (b.is_json) printf("\n]}\n");
  return 0;
}
