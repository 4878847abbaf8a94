/* Own attention on this machine's GPU: whether it is right, at small sizes and in parts of large ones, and how long it
 * takes, in several cuts of the work, next to cuDNN.
 *
 *     own_attention_bench [check] [time]
 *
 * Status 1: something is wrong. */
#include "plan_cache.h"
#include "own_attention.h"

#include <time.h>

enum { WARM = 3, TIMED = 20, N_TENSORS = 5, N_CUTS = 3 };

static const int written[N_TENSORS] = {GC_ATT_O, GC_ATT_STATS, GC_ATT_GQ, GC_ATT_GK, GC_ATT_GV};
static const char *const names[GC_ATT_N_IN_MEMORY] = {
    [GC_ATT_O] = "o",   [GC_ATT_STATS] = "stats", [GC_ATT_GQ] = "gq",
    [GC_ATT_GK] = "gk", [GC_ATT_GV] = "gv",       [GC_ATT_KEEP] = "bits"};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void show_call(const gc_own_attention_t *o) {
  const gc_attention_t *a = &o->call;
  printf("%2d x %2d (%d) x %4d x %4d x %3d %-4s %-6s %-7s", (int)a->n_batch, (int)a->n_head, (int)a->share,
         (int)a->n_query, (int)a->n_key, (int)a->width, aot_dtype_name(a->dtype), a->is_causal ? "causal" : "",
         a->keep_dtype ? "dropped" : "");
}
static void show_cut(const gc_own_cut_t *c) {
  printf(" %d x %d warps, %d resident, tile %d%s", (int)c->sixteens, (int)c->warps, (int)c->resident, (int)c->tile,
         c->is_held ? ", held" : "");
  printf(c->unrolled ? ", unrolled %d:" : ":", (int)c->unrolled);
}

/* One group of heads. How many tensors are wrong. */
static int check_heads(const own_device_t *d, own_call_t *c, int64_t b, int64_t h) {
  int n_wrong = 0;
  double worst;
  own_fault_t f;
  own_define(c, b, h);
  if (c->o.call.keep_dtype && !own_compare_bits(d, c, b, h, &f)) {
    printf("\n    WRONG bits: %lld, first batch %lld head %lld query %lld key %lld", (long long)f.n, (long long)f.b,
           (long long)f.h, (long long)f.i, (long long)f.e);
    n_wrong++;
  }
  for (int k = 0; k < N_TENSORS; k++) {
    const int is_right = own_compare(d, c, written[k], b, h, &worst, &f);
    if (is_right) printf(" %s %.1e", names[written[k]], worst);
    else
      printf("\n    WRONG %s: %lld are off, most by %.3g: %g for %g at batch %lld head %lld row %lld column %lld",
             names[written[k]], (long long)f.n, worst, f.got, f.expected, (long long)f.b, (long long)f.h,
             (long long)f.i, (long long)f.e);
    n_wrong += !is_right;
  }
  return n_wrong;
}

/* Two runs leave the same bytes. */
static int check_bytes(const own_device_t *d, own_call_t *c) {
  int n_wrong = 0;
  char *bytes[N_TENSORS][2];
  for (int turn = 0; turn < 2; turn++) {
    for (int32_t kind = 0; kind < GC_OWN_N_KINDS; kind++) own_launch(d, c, kind);
    for (int k = 0; k < N_TENSORS; k++) {
      const own_array_t *t = &c->t[written[k]];
      const size_t nbytes = (size_t)t->n * aot_dtype_size(t->dtype);
      bytes[k][turn] = malloc(nbytes);
      d->cu.memcpy_to_host(bytes[k][turn], t->at, nbytes, d->stream);
      d->cu.stream_synchronize(d->stream);
      if (turn && memcmp(bytes[k][0], bytes[k][1], nbytes) != 0) {
        printf("\n    WRONG %s: another run leaves other bytes", names[written[k]]);
        n_wrong++;
      }
    }
  }
  for (int k = 0; k < N_TENSORS; k++) free(bytes[k][0]), free(bytes[k][1]);
  return n_wrong;
}

/* Milliseconds; < 0: it fails. */
static double time_kernel(const own_device_t *d, own_call_t *c, int32_t kind) {
  gc_result_t result = GC_SUCCESS;
  double begin = 0;
  for (int k = 0; k < WARM + TIMED && result == GC_SUCCESS; k++) {
    if (k == WARM) result = d->cu.stream_synchronize(d->stream), begin = now_ms();
    if (result == GC_SUCCESS) result = own_launch(d, c, kind);
  }
  if (result == GC_SUCCESS) result = d->cu.stream_synchronize(d->stream);
  if (result != GC_SUCCESS) printf(" error %d of the driver", (int)result);
  return result == GC_SUCCESS ? (now_ms() - begin) / TIMED : -1;
}

static int check(const own_device_t *d) {
  static const struct {
    int64_t n_batch, n_head, share, n_query, n_key, width;
    int is_causal;
    double dropout;
    int32_t dtype;
  } cases[] = {
      {1, 1, 1, 16, 16, 64, 0, 0, AOT_BF16},     {1, 1, 1, 64, 64, 64, 0, 0, AOT_BF16},
      {1, 2, 1, 65, 65, 64, 0, 0.1, AOT_F16},    {2, 3, 1, 130, 130, 64, 1, 0.1, AOT_BF16},
      {2, 1, 1, 1, 20, 64, 0, 0.25, AOT_BF16},   {1, 2, 2, 17, 132, 64, 0, 0.1, AOT_BF16},
      {2, 3, 1, 256, 256, 64, 0, 0.1, AOT_BF16}, {2, 4, 2, 512, 384, 64, 1, 0.1, AOT_F16},
      {1, 1, 1, 17, 66, 128, 1, 0.5, AOT_F16},   {2, 3, 1, 257, 257, 128, 0, 0.1, AOT_BF16},
      {2, 3, 1, 384, 384, 128, 1, 0, AOT_BF16},
  };
  int n_wrong = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    own_call_t c = {.o = own_attention(cases[i].n_batch, cases[i].n_head, cases[i].share, cases[i].n_query,
                                       cases[i].n_key, cases[i].width, cases[i].is_causal, cases[i].dropout,
                                       cases[i].dtype)};
    char why[OWN_WHY] = "";
    gc_result_t result = GC_SUCCESS;
    show_call(&c.o);
    if (own_begin(d, &c, why)) return printf(" WRONG: %s\n", why), n_wrong + 1;
    for (int32_t kind = 0; kind < GC_OWN_N_KINDS && result == GC_SUCCESS; kind++) {
      result = own_launch(d, &c, kind);
      if (result == GC_SUCCESS) result = d->cu.stream_synchronize(d->stream);
      if (result != GC_SUCCESS) return printf(" WRONG: kernel %d: error %d\n", (int)kind, (int)result), n_wrong + 1;
    }
    n_wrong += check_heads(d, &c, c.o.call.n_batch - 1, c.o.call.n_head / c.o.call.share - 1);
    if (c.o.call.n_head > 1) n_wrong += check_heads(d, &c, 0, 0);
    n_wrong += check_bytes(d, &c);
    printf("\n");
    fflush(stdout);
    own_end(d, &c);
  }
  return n_wrong;
}

/* By width, 64 and 128; those that are chosen first. */
static const gc_own_cut_t cuts[2][GC_OWN_N_KINDS][N_CUTS] = {
    {{{1, 4, 3, 64, 1, 0}, {1, 8, 2, 64, 1, 0}, {2, 4, 2, 64, 0, 0}},
     {{1, 4, 3, 64, 1, 0}, {2, 4, 2, 64, 1, 0}, {1, 4, 3, 64, 1, 2}},
     {{2, 4, 2, 64, 0, 1}, {2, 4, 2, 64, 0, 0}, {1, 4, 2, 64, 1, 1}}},
    {{{1, 4, 2, 64, 1, 0}, {1, 4, 2, 64, 0, 0}, {2, 4, 1, 64, 0, 0}},
     {{1, 4, 2, 64, 1, 0}, {1, 4, 2, 64, 1, 1}, {1, 8, 1, 64, 1, 0}},
     {{1, 4, 2, 64, 0, 1}, {1, 4, 2, 32, 1, 1}, {1, 4, 2, 32, 0, 0}}}};

/* Every cut of the kernels is timed, and the last head of each checked. */
static int time_own(const own_device_t *d, gc_own_attention_t o, double product, size_t n_cuts) {
  static const char *const kinds[] = {"output", "queries", "keys"};
  static const int n_products[] = {2, 3, 4};
  const gc_attention_t *a = &o.call;
  own_call_t c = {.o = o};
  char why[OWN_WHY] = "";
  int n_wrong = 0, failed = own_begin(d, &c, why);
  for (size_t i = 0; i < n_cuts; i++) {
    for (int32_t kind = 0; kind < GC_OWN_N_KINDS && n_cuts > 1; kind++) c.o.cut[kind] = cuts[a->width > 64][kind][i];
    if (i) failed = own_cut_anew(d, &c, why);
    if (failed) {
      printf("  FAILS: %s\n", why);
      n_wrong++;
      continue;
    }
    for (int32_t kind = 0; kind < GC_OWN_N_KINDS; kind++) {
      printf("  %-8s", kinds[kind]);
      show_cut(&c.o.cut[kind]);
      const double ms = time_kernel(d, &c, kind);
      if (ms < 0) return printf("\n"), n_wrong + 1;
      printf(" %.3f ms, %.0f TFLOP/s\n", ms, n_products[kind] * product / ms * 1e-9);
    }
    printf("    the last head:");
    n_wrong += check_heads(d, &c, a->n_batch - 1, a->n_head / a->share - 1);
    printf("\n");
    fflush(stdout);
  }
  own_end(d, &c);
  return n_wrong;
}

static double time_graph(const own_device_t *d, gc_cudnn_t *dnn, const gc_dnn_graph_t *g) {
  const gc_dnn_plan_t *p = gc_dnn_plan(dnn, g);
  gc_address_t at[GC_DNN_MAX_TENSORS] = {0}, workspace = 0;
  double begin = 0;
  if (!p || !p->desc) return -1;
  int status = p->workspace_nbytes && d->cu.mem_alloc(&workspace, p->workspace_nbytes);
  for (uint32_t k = 0; k < g->n_tensors; k++) {
    const gc_dnn_tensor_t *t = &g->tensors[k];
    int64_t last = 0;
    if (t->kind != GC_DNN_MEMORY || !gc_dnn_is_used(g, k)) continue;
    for (int32_t i = 0; i < t->rank; i++) last += (t->sizes[i] - 1) * t->strides[i];
    const size_t nbytes = (size_t)(last + 1) * aot_dtype_size(t->dtype);
    status |= d->cu.mem_alloc(&at[k], nbytes) || d->cu.memset_bytes(at[k], 0x3c, nbytes, d->stream);
  }
  for (int k = 0; k < WARM + TIMED && !status; k++) {
    if (k == WARM) status = d->cu.stream_synchronize(d->stream), begin = now_ms();
    if (!status) status = gc_dnn_run(dnn, p, g, at, workspace, d->stream);
  }
  if (!status) status = d->cu.stream_synchronize(d->stream);
  const double ms = (now_ms() - begin) / TIMED;
  for (uint32_t k = 0; k < g->n_tensors; k++)
    if (at[k]) d->cu.mem_free(at[k]);
  if (workspace) d->cu.mem_free(workspace);
  return status ? -1 : ms;
}

static void time_cudnn(const own_device_t *d, gc_cudnn_t *dnn, gc_attention_t a, double product) {
  gc_dnn_graph_t g;
  a.strides[GC_ATT_KEEP].position = a.n_key;
  a.strides[GC_ATT_KEEP].head = a.n_query * a.n_key;
  a.strides[GC_ATT_KEEP].batch = a.n_head * a.strides[GC_ATT_KEEP].head;
  gc_attention_forward(&a, &g);
  const double forward = time_graph(d, dnn, &g);
  gc_attention_backward(&a, GC_ATT_ORDERED, &g);
  const double backward = time_graph(d, dnn, &g);
  printf("  cuDNN    forward %.3f ms, %.0f TFLOP/s; backward %.3f ms, %.0f TFLOP/s\n", forward,
         2 * product / forward * 1e-9, backward, 5 * product / backward * 1e-9);
  fflush(stdout);
}

static int time_all(const own_device_t *d) {
  static const struct {
    int64_t n_batch, n_head, n, width;
    int is_causal;
    double dropout;
    size_t n_cuts;
  } cases[] = {{32, 12, 512, 64, 0, 0.1, N_CUTS}, {4, 16, 2048, 128, 1, 0.1, N_CUTS}, {32, 12, 512, 64, 0, 0, 1},
               {32, 12, 1024, 64, 1, 0.1, 1},     {64, 12, 128, 64, 0, 0.1, 1},       {32, 12, 1024, 64, 1, 0, 1}};
  gc_cudnn_t dnn = {.folder = getenv("AOT_CUDNN")};
  const int has_cudnn = gc_cudnn_ready(&dnn);
  int n_wrong = 0;
  if (!has_cudnn) printf("no cuDNN: %s\n", dnn.why);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const gc_own_attention_t o = own_attention(cases[i].n_batch, cases[i].n_head, 1, cases[i].n, cases[i].n,
                                               cases[i].width, cases[i].is_causal, cases[i].dropout, AOT_BF16);
    const double product = (cases[i].is_causal ? 1 : 2) * (double)(cases[i].n_batch * cases[i].n_head) *
                           (double)(cases[i].n * cases[i].n * cases[i].width);
    show_call(&o);
    printf("\n");
    if (has_cudnn) time_cudnn(d, &dnn, o.call, product);
    n_wrong += time_own(d, o, product, cases[i].n_cuts);
  }
  gc_dnn_forget_plans(&dnn);
  gc_cudnn_close(&dnn);
  return n_wrong;
}

static int is_asked(int argc, char **argv, const char *what) {
  for (int k = 1; k < argc; k++)
    if (strcmp(argv[k], what) == 0) return 1;
  return argc == 1;
}

int main(int argc, char **argv) {
  own_device_t d = {0};
  char why[OWN_WHY] = "";
  int n_wrong = 0;
  if (own_open(&d, why, sizeof why)) {
    fprintf(stderr, "%s\n", why);
    return 2;
  }
  if (is_asked(argc, argv, "check")) n_wrong += check(&d);
  if (is_asked(argc, argv, "time")) n_wrong += time_all(&d);
  printf("%d wrong\n", n_wrong);
  return n_wrong != 0;
}
