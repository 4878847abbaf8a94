/* The graphs that backend-cuda gives to cuDNN, at sizes of real models: which engine takes each, what it requests, and
 * how long it runs.
 *
 *     cudnn_graphs [attention] [convolutions]                on this machine's GPU
 *     cudnn_graphs --device FILE [attention] [..]            plans alone, for the device that cuDNN described in FILE
 *                                                            (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); no GPU
 *
 * Status 1: a graph is refused. */
#include "cudnn/attention_graphs.h"
#include "cudnn/conv_graphs.h"
#include "plan_cache.h"

#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 5, TIMED = 20 };

typedef struct fixture {
  gc_driver_t cu;
  gc_stream_t stream; /* NULL: plans alone */
  gc_cudnn_t dnn;
  int n_refused;
} fixture_t;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static gc_address_t alloc_zeros(const fixture_t *w, uint64_t nbytes) {
  gc_address_t at = 0;
  if (!nbytes || w->cu.mem_alloc(&at, nbytes) != GC_SUCCESS) return 0;
  w->cu.memset_bytes(at, 0, nbytes, w->stream);
  return at;
}

static uint64_t nbytes_of(const gc_dnn_tensor_t *t) {
  int64_t last = 0;
  for (int32_t d = 0; d < t->rank; d++) last += (t->sizes[d] - 1) * t->strides[d];
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

/* Milliseconds of a run; < 0: it fails. */
static double time_graph(const fixture_t *w, const gc_dnn_graph_t *g, const gc_dnn_plan_t *p) {
  gc_address_t at[GC_DNN_MAX_TENSORS] = {0};
  const gc_address_t workspace = alloc_zeros(w, p->workspace_nbytes);
  int status = p->workspace_nbytes && !workspace;
  double begin = 0;
  for (uint32_t k = 0; k < g->n_tensors; k++)
    if (g->tensors[k].kind == GC_DNN_MEMORY && gc_dnn_is_used(g, k)) at[k] = alloc_zeros(w, nbytes_of(&g->tensors[k]));
  for (int k = 0; k < WARM + TIMED && !status; k++) {
    if (k == WARM) status = w->cu.stream_synchronize(w->stream), begin = now_ms();
    if (!status) status = gc_dnn_run(&w->dnn, p, g, at, workspace, w->stream);
  }
  if (!status) status = w->cu.stream_synchronize(w->stream);
  const double ms = (now_ms() - begin) / TIMED;
  for (uint32_t k = 0; k < g->n_tensors; k++)
    if (at[k]) w->cu.mem_free(at[k]);
  if (workspace) w->cu.mem_free(workspace);
  return status ? -1 : ms;
}

static void show(fixture_t *w, const char *what, const char *direction, int32_t dtype, double flops,
                 const gc_dnn_graph_t *g) {
  const double begin = now_ms();
  const gc_dnn_plan_t *p = gc_dnn_plan(&w->dnn, g);
  const double plan_ms = now_ms() - begin;
  printf("%-32s %-9s %-5s", what, direction, aot_dtype_name(dtype));
  if (!p || !p->desc) {
    printf(" refused: %s\n", p ? p->why : "no memory");
    w->n_refused++;
    return;
  }
  printf(" %6lld %11.1f %8.0f", (long long)p->engine, (double)p->workspace_nbytes / 1048576, plan_ms);
  const double ms = w->stream ? time_graph(w, g, p) : 0;
  if (ms > 0) printf(" %9.3f %8.0f", ms, flops / ms * 1e-9);
  printf(ms < 0 ? " fails\n" : "\n");
  w->n_refused += ms < 0;
  fflush(stdout);
}

/* ---- what there is ---- */

static void show_attention(fixture_t *w) {
  static const struct {
    const char *what;
    int64_t n_batch, n_head, n, width;
    int is_causal;
    int64_t share;
    int32_t bias_dtype; /* of each batch, for all heads */
    int is_dropped;
  } cases[] = {{"GPT-2 32 x 12 x 1024 x 64", 32, 12, 1024, 64, 1, 1, 0, 0},
               {"ViT-B/16 64 x 12 x 197 x 64", 64, 12, 197, 64, 0, 1, 0, 0},
               {"the same, a mask", 64, 12, 197, 64, 0, 1, AOT_BF16, 0},
               {"BERT 32 x 12 x 512 x 64", 32, 12, 512, 64, 0, 1, 0, 0},
               {"the same, dropout", 32, 12, 512, 64, 0, 1, 0, 1},
               {"the same, dropout and a mask", 32, 12, 512, 64, 0, 1, AOT_BF16, 1},
               {"953M 4 x 16 x 2048 x 128", 4, 16, 2048, 128, 1, 1, 0, 0},
               {"the same, a mask", 4, 16, 2048, 128, 0, 1, AOT_BF16, 0},
               {"the same, a mask in float", 4, 16, 2048, 128, 0, 1, AOT_F32, 0},
               {"the same, 4 heads share keys", 4, 16, 2048, 128, 1, 4, 0, 0},
               {"the same, dropout", 4, 16, 2048, 128, 1, 4, 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gc_attention_t a = {.dtype = AOT_BF16,
                        .n_batch = cases[i].n_batch,
                        .n_head = cases[i].n_head,
                        .n_query = cases[i].n,
                        .n_key = cases[i].n,
                        .width = cases[i].width,
                        .width_v = cases[i].width,
                        .share = cases[i].share,
                        .bias_dtype = cases[i].bias_dtype,
                        .bias_sizes = {cases[i].n_batch, 1, cases[i].n},
                        .keep_dtype = cases[i].is_dropped ? AOT_BF16 : 0,
                        .keep_scale = 1 / 0.9,
                        .scale = 0.125,
                        .is_causal = cases[i].is_causal};
    const double part = a.is_causal ? 0.5 : 1;
    const double product = 2 * part * (double)(a.n_batch * a.n_head * a.n_query) * (double)(a.n_key * a.width);
    gc_dnn_graph_t g;
    for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
      const int is_operand = what <= GC_ATT_V || (what >= GC_ATT_GQ && what <= GC_ATT_GV);
      const int64_t heads = is_operand ? a.n_head + 2 * a.n_head / a.share : a.n_head; /* packed */
      a.strides[what].head = a.width;
      a.strides[what].position = heads * a.width;
      a.strides[what].batch = a.n_query * a.strides[what].position;
    }
    for (int what = GC_ATT_BIAS; what <= GC_ATT_KEEP; what++) {
      a.strides[what].position = a.n_key;
      a.strides[what].head = a.n_query * a.n_key;
      a.strides[what].batch = (what == GC_ATT_BIAS ? 1 : a.n_head) * a.strides[what].head;
    }
    gc_attention_forward(&a, &g);
    show(w, cases[i].what, "forward", a.dtype, 2 * product, &g);
    gc_attention_backward(&a, GC_ATT_ORDERED, &g);
    show(w, cases[i].what, "backward", a.dtype, 5 * product, &g);
    gc_attention_backward(&a, GC_ATT_IN_ANY_ORDER, &g);
    show(w, cases[i].what, "any order", a.dtype, 5 * product, &g);
  }
}

static void set_dense(int64_t *strides, const int64_t *sizes, int is_channels_last) {
  const int order[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
  int64_t n = 1;
  for (int k = 0; k < 4; k++) {
    const int d = order[is_channels_last][k];
    strides[d] = n;
    n *= sizes[d];
  }
}

static void show_convolutions(fixture_t *w) {
  static const struct {
    const char *what;
    int64_t n, c, k, groups, size, kernel, stride, pad;
    int is_channels_last;
  } cases[] = {{"ResNet 128 x 3 x 224, 7 / 2", 128, 3, 64, 1, 224, 7, 2, 3, 0},
               {"the same, channels last", 128, 3, 64, 1, 224, 7, 2, 3, 1},
               {"ResNet 128 x 64 x 56, 3", 128, 64, 64, 1, 56, 3, 1, 1, 0},
               {"the same, channels last", 128, 64, 64, 1, 56, 3, 1, 1, 1},
               {"ResNet 128 x 256 x 56, 1 / 2", 128, 256, 512, 1, 56, 1, 2, 0, 1},
               {"ConvNeXt 64 x 96 x 56, 7 each", 64, 96, 96, 96, 56, 7, 1, 3, 0},
               {"the same, channels last", 64, 96, 96, 96, 56, 7, 1, 3, 1},
               {"ViT 64 x 3 x 224, 16 / 16", 64, 3, 768, 1, 224, 16, 16, 0, 0}};
  static const char *const directions[] = {
      [GC_DNN_CONV_FORWARD] = "forward", [GC_DNN_CONV_DATA] = "data", [GC_DNN_CONV_WEIGHTS] = "weights"};
  static const int32_t dtypes[] = {AOT_F32, AOT_BF16};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
      for (int32_t kind = GC_DNN_CONV_FORWARD; kind <= GC_DNN_CONV_WEIGHTS; kind++) {
        const int64_t out = (cases[i].size + 2 * cases[i].pad - cases[i].kernel) / cases[i].stride + 1;
        const int64_t c_group = cases[i].c / cases[i].groups, kernel = cases[i].kernel;
        gc_conv_t c = {.dtype = dtypes[t],
                       .rank = 2,
                       .sizes = {{cases[i].n, cases[i].c, cases[i].size, cases[i].size},
                                 {cases[i].k, c_group, kernel, kernel},
                                 {cases[i].n, cases[i].k, out, out}},
                       .window = {2, {cases[i].pad, cases[i].pad}, {cases[i].stride, cases[i].stride}, {1, 1}}};
        gc_dnn_graph_t g;
        for (int k = 0; k < GC_CONV_N_TENSORS; k++) set_dense(c.strides[k], c.sizes[k], cases[i].is_channels_last);
        gc_conv_graph(&c, kind, &g);
        show(w, cases[i].what, directions[kind], c.dtype,
             2.0 * (double)(cases[i].n * cases[i].k * out * out) * (double)(c_group * kernel * kernel), &g);
      }
}

/* ---- the machine ---- */

static int begin_offline(fixture_t *w, const char *path, char *why, size_t size) {
  char text[8192] = "";
  FILE *f = fopen(path, "r");
  const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f) fclose(f);
  if (!n) return snprintf(why, size, "%s cannot be read", path), -1;
  return gc_cudnn_open(&w->dnn, why, size) ? -1 : gc_cudnn_start_for(&w->dnn, text, why, size);
}

static int begin_here(fixture_t *w, char *why, size_t size) {
  gc_context_t context;
  if (gc_driver_open(&w->cu, why, size)) return -1;
  if (w->cu.primary_ctx_retain(&context, 0) || w->cu.ctx_set_current(context) ||
      w->cu.stream_create(&w->stream, GC_STREAM_NON_BLOCKING, 0))
    return snprintf(why, size, "the driver gives no context"), -1;
  if (gc_cudnn_ready(&w->dnn)) return 0;
  return snprintf(why, size, "%s", w->dnn.why), -1;
}

static int is_asked(int argc, char **argv, int first, const char *what) {
  for (int k = first; k < argc; k++)
    if (strcmp(argv[k], what) == 0) return 1;
  return first == argc;
}

int main(int argc, char **argv) {
  const int is_offline = argc > 2 && strcmp(argv[1], "--device") == 0, first = is_offline ? 3 : 1;
  fixture_t w = {.dnn = {.folder = getenv("AOT_CUDNN")}};
  char why[400] = "";
  if (is_offline ? begin_offline(&w, argv[2], why, sizeof why) : begin_here(&w, why, sizeof why)) {
    fprintf(stderr, "%s\n", why);
    return 2;
  }
  printf("cuDNN %zu\n%-32s %-9s %-5s %6s %11s %8s %9s %8s\n", w.dnn.version, "graph", "", "dtype", "engine",
         "workspace", "plan ms", "ms", "TFLOP/s");
  if (is_asked(argc, argv, first, "attention")) show_attention(&w);
  if (is_asked(argc, argv, first, "convolutions")) show_convolutions(&w);
  gc_dnn_forget_plans(&w.dnn);
  gc_cudnn_close(&w.dnn);
  return w.n_refused != 0;
}
