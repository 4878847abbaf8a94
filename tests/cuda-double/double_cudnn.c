/* A double of cuDNN 9's backend interface: libcudnn.so.9 with the descriptors, attributes and operations that
 * backend-cuda uses, under cuDNN's names and numbers. A plan runs its operations one after the other in double, as an
 * item of the driver double's streams; virtual tensors are rounded to their dtype.
 *
 * What cuDNN refuses is refused: an attribute that a descriptor does not have, of another type or count, missing, or
 * set once it is final; operands that do not fit; graphs without an engine (attention that keeps no sums of
 * exponentials, heads of odd widths); at a run, memory that is not aligned as it was said, or is missing. The first
 * engine for a convolution of float32 rounds its inputs, as those for tensor cores do, and says so in its notes.
 * Convolutions of images whose batch is not outermost in memory are taken and give NaN: 9.14 takes them and gives wrong
 * numbers. A workspace has other contents after each run. Gradients of queries that are summed in memory, in float32,
 * have their terms in another order in each run. As on an H200 a factor of the sums of rows is treated as 1, and keys
 * that fill up the last 128 have scores of 0 in gradients that neither are causal nor hide them: the gradient of a
 * query is NaN where exp(0 - its log sum) is infinite. */
#include "double_api.h"
#include "kit/reference/rk_core.h"

#include <aot/inline.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* cuDNN's headers have them */
enum { SUCCESS = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, ALLOC_FAILED = 4003 };
enum { EXECUTION_FAILED = 5000 };

/* cudnnBackendDescriptorType_t */
enum { POINTWISE, CONVOLUTION, ENGINE, CONFIG, HEURISTIC, PLAN, CONV_FORWARD = 10, CONV_WEIGHTS, CONV_DATA };
enum { OP_POINTWISE = 13, GRAPH = 15, PACK, TENSOR, MATMUL, OP_MATMUL, REDUCTION = 21, OP_REDUCTION, OP_RESHAPE = 31 };
/* cudnnBackendAttributeType_t */
enum { T_HANDLE = 0, T_DATA_TYPE, T_BOOLEAN, T_INT64, T_FLOAT, T_DOUBLE, T_POINTER, T_CONV_MODE, T_HEUR_MODE };
enum { T_NOTE = 11, T_POINTWISE_MODE = 14, T_DESCRIPTOR, T_REDUCTION_MODE = 18, T_CHAR = 24 };

enum { MAX_RANK = 5, MANY = 64, VERSION = 91900 };
enum { MUL = 1, SUB = 9, IDENTITY = 21, CMP_GE = 303, CMP_LT }; /* cudnnPointwiseMode_t */

/* ---- descriptors are lists of attributes ---- */

typedef struct attribute {
  int descriptor, name, type;
  int least, most; /* values */
  int is_needed;
} attribute_t;
static const attribute_t attributes[] = {
    {POINTWISE, 0, T_POINTWISE_MODE, 1, 1, 1},
    {POINTWISE, 1, T_DATA_TYPE, 1, 1, 1},
    {POINTWISE, 9, T_INT64, 1, 1, 0},
    {CONVOLUTION, 100, T_DATA_TYPE, 1, 1, 1},
    {CONVOLUTION, 101, T_CONV_MODE, 1, 1, 1},
    {CONVOLUTION, 102, T_INT64, 2, 3, 1},
    {CONVOLUTION, 103, T_INT64, 2, 3, 1},
    {CONVOLUTION, 104, T_INT64, 2, 3, 1},
    {CONVOLUTION, 105, T_INT64, 2, 3, 1},
    {CONVOLUTION, 106, T_INT64, 1, 1, 1},
    {HEURISTIC, 200, T_HEUR_MODE, 1, 1, 1},
    {HEURISTIC, 201, T_DESCRIPTOR, 1, 1, 1},
    {PLAN, 400, T_HANDLE, 1, 1, 1},
    {PLAN, 401, T_DESCRIPTOR, 1, 1, 0},
    {PLAN, 405, T_CHAR, 1, 1 << 30, 0},
    {CONV_FORWARD, 700, T_FLOAT, 1, 1, 1},
    {CONV_FORWARD, 701, T_FLOAT, 1, 1, 1},
    {CONV_FORWARD, 702, T_DESCRIPTOR, 1, 1, 1},
    {CONV_FORWARD, 703, T_DESCRIPTOR, 1, 1, 1},
    {CONV_FORWARD, 704, T_DESCRIPTOR, 1, 1, 1},
    {CONV_FORWARD, 705, T_DESCRIPTOR, 1, 1, 1},
    {CONV_DATA, 706, T_FLOAT, 1, 1, 1},
    {CONV_DATA, 707, T_FLOAT, 1, 1, 1},
    {CONV_DATA, 708, T_DESCRIPTOR, 1, 1, 1},
    {CONV_DATA, 709, T_DESCRIPTOR, 1, 1, 1},
    {CONV_DATA, 710, T_DESCRIPTOR, 1, 1, 1},
    {CONV_DATA, 711, T_DESCRIPTOR, 1, 1, 1},
    {CONV_WEIGHTS, 712, T_FLOAT, 1, 1, 1},
    {CONV_WEIGHTS, 713, T_FLOAT, 1, 1, 1},
    {CONV_WEIGHTS, 714, T_DESCRIPTOR, 1, 1, 1},
    {CONV_WEIGHTS, 715, T_DESCRIPTOR, 1, 1, 1},
    {CONV_WEIGHTS, 716, T_DESCRIPTOR, 1, 1, 1},
    {CONV_WEIGHTS, 717, T_DESCRIPTOR, 1, 1, 1},
    {OP_POINTWISE, 750, T_DESCRIPTOR, 1, 1, 1},
    {OP_POINTWISE, 751, T_DESCRIPTOR, 1, 1, 1},
    {OP_POINTWISE, 752, T_DESCRIPTOR, 1, 1, 0},
    {OP_POINTWISE, 753, T_DESCRIPTOR, 1, 1, 1},
    {OP_POINTWISE, 754, T_FLOAT, 1, 1, 0},
    {OP_POINTWISE, 755, T_FLOAT, 1, 1, 0},
    {OP_POINTWISE, 758, T_DESCRIPTOR, 1, 1, 0},
    {GRAPH, 800, T_HANDLE, 1, 1, 1},
    {GRAPH, 801, T_DESCRIPTOR, 1, MANY, 1},
    {TENSOR, 900, T_INT64, 1, 1, 1},
    {TENSOR, 901, T_DATA_TYPE, 1, 1, 1},
    {TENSOR, 902, T_INT64, 1, MAX_RANK, 1},
    {TENSOR, 903, T_INT64, 1, MAX_RANK, 1},
    {TENSOR, 906, T_INT64, 1, 1, 1},
    {TENSOR, 907, T_BOOLEAN, 1, 1, 0},
    {TENSOR, 908, T_BOOLEAN, 1, 1, 0},
    {PACK, 1000, T_INT64, 1, MANY, 1},
    {PACK, 1001, T_POINTER, 1, MANY, 1},
    {PACK, 1003, T_POINTER, 1, 1, 1},
    {MATMUL, 1500, T_DATA_TYPE, 1, 1, 1},
    {OP_MATMUL, 1520, T_DESCRIPTOR, 1, 1, 1},
    {OP_MATMUL, 1521, T_DESCRIPTOR, 1, 1, 1},
    {OP_MATMUL, 1522, T_DESCRIPTOR, 1, 1, 1},
    {OP_MATMUL, 1523, T_DESCRIPTOR, 1, 1, 1},
    {REDUCTION, 1600, T_REDUCTION_MODE, 1, 1, 1},
    {REDUCTION, 1601, T_DATA_TYPE, 1, 1, 1},
    {OP_REDUCTION, 1610, T_DESCRIPTOR, 1, 1, 1},
    {OP_REDUCTION, 1611, T_DESCRIPTOR, 1, 1, 1},
    {OP_REDUCTION, 1612, T_DESCRIPTOR, 1, 1, 1},
    {OP_RESHAPE, 2200, T_DESCRIPTOR, 1, 1, 1},
    {OP_RESHAPE, 2201, T_DESCRIPTOR, 1, 1, 1},
};
enum { N_ATTRIBUTES = sizeof attributes / sizeof *attributes };

typedef struct value {
  int64_t n;
  char *bytes;
} value_t;

/* Of a tensor; descriptors may be gone before the plan that was made of them. */
typedef struct tensor {
  int64_t id, align, sizes[MAX_RANK], strides[MAX_RANK];
  int32_t rank, dtype; /* AOT_* */
  int is_virtual, is_by_value;
} tensor_t;
typedef struct operation {
  int kind, mode;
  int64_t axis;
  tensor_t x, b, t, y; /* id 0: none */
  int64_t rank, pad[3], stride[3], dilation[3];
} operation_t;
typedef struct program {
  operation_t ops[MANY];
  int32_t n;
} program_t;

typedef struct desc {
  int type, is_final;
  value_t values[N_ATTRIBUTES];
  program_t program; /* GRAPH, and what comes of it */
  int engine;        /* CONFIG, ENGINE, PLAN; 0: rounds the inputs of float32 */
} desc_t;

static _Thread_local char last_error[256];
static int refuse(int status, const char *why) {
  snprintf(last_error, sizeof last_error, "told by cuDNN's double: %s", why);
  return status;
}

static size_t size_of(int type) {
  switch (type) {
    case T_BOOLEAN: return sizeof(bool);
    case T_CHAR: return 1;
    case T_INT64: return 8;
    case T_DOUBLE: return 8;
    case T_HANDLE:
    case T_POINTER:
    case T_DESCRIPTOR: return sizeof(void *);
    default: return 4;
  }
}

static int row_of(int descriptor, int name) {
  for (int k = 0; k < N_ATTRIBUTES; k++)
    if (attributes[k].descriptor == descriptor && attributes[k].name == name) return k;
  return -1;
}
static const void *value_of(const desc_t *d, int name) {
  const int row = row_of(d->type, name);
  return row < 0 ? NULL : d->values[row].bytes;
}
static int64_t count_of(const desc_t *d, int name) { return d->values[row_of(d->type, name)].n; }
static int int_of(const desc_t *d, int name, int preset) {
  int v;
  const void *p = value_of(d, name);
  if (!p) return preset;
  memcpy(&v, p, sizeof v);
  return v;
}
static int64_t long_of(const desc_t *d, int name, int64_t preset) {
  int64_t v;
  const void *p = value_of(d, name);
  if (!p) return preset;
  memcpy(&v, p, sizeof v);
  return v;
}
static const desc_t *desc_of(const desc_t *d, int name) {
  const desc_t *v = NULL;
  const void *p = value_of(d, name);
  if (p) memcpy(&v, p, sizeof v);
  return v;
}

static int setting(const char *name, int preset) { /* of AOT_CUDA_DOUBLE */
  const char *settings = getenv("AOT_CUDA_DOUBLE"), *own = settings ? strstr(settings, name) : NULL;
  return own ? atoi(own + strlen(name)) : preset;
}
static int version(void) { return setting("cudnn-version=", VERSION); }
API size_t cudnnGetVersion(void) { return (size_t)version(); }
API const char *cudnnGetErrorString(int status) {
  return status == SUCCESS         ? "CUDNN_STATUS_SUCCESS"
         : status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_BAD_PARAM";
}
API void cudnnGetLastErrorString(char *out, size_t size) { snprintf(out, size, "%s", last_error); }

API int cudnnBackendCreateDescriptor(int type, void **out) {
  desc_t *d = calloc(1, sizeof *d);
  if (!d) return ALLOC_FAILED;
  d->type = type;
  return *out = d, SUCCESS;
}
API int cudnnBackendDestroyDescriptor(void *desc) {
  desc_t *d = desc;
  for (int k = 0; k < N_ATTRIBUTES; k++) free(d->values[k].bytes);
  return free(d), SUCCESS;
}

API int cudnnBackendSetAttribute(void *desc, int name, int type, int64_t n, const void *values) {
  desc_t *d = desc;
  const int row = row_of(d->type, name);
  if (d->is_final) return refuse(NOT_INITIALIZED, "an attribute of what is final");
  if (row < 0 || attributes[row].type != type) return refuse(BAD_PARAM, "an attribute of another kind");
  if (n < attributes[row].least || n > attributes[row].most || !values) return refuse(BAD_PARAM, "a count of values");
  if (type == T_DESCRIPTOR)
    for (int64_t k = 0; k < n; k++)
      if (!((desc_t *const *)values)[k] || !((desc_t *const *)values)[k]->is_final)
        return refuse(BAD_PARAM, "a descriptor that is not final");
  value_t *v = &d->values[row];
  free(v->bytes);
  v->bytes = malloc((size_t)n * size_of(type));
  if (!v->bytes) return ALLOC_FAILED;
  memcpy(v->bytes, values, (size_t)n * size_of(type));
  v->n = n;
  return SUCCESS;
}

/* ---- tensors and operations ---- */

static int32_t dtype_of(int type) {
  static const int32_t of[] = {AOT_F32, AOT_F64, AOT_F16, 0, AOT_I32, 0, 0, 0, 0, AOT_BF16, 0, AOT_BOOL};
  return type >= 0 && type < (int)(sizeof of / sizeof *of) ? of[type] : 0;
}

static tensor_t tensor_of(const desc_t *d) {
  tensor_t t = {.id = 0};
  if (!d) return t;
  t.id = long_of(d, 906, 0);
  t.align = long_of(d, 900, 0);
  t.dtype = dtype_of(int_of(d, 901, 0));
  t.rank = (int32_t)count_of(d, 902);
  memcpy(t.sizes, value_of(d, 902), (size_t)t.rank * sizeof *t.sizes);
  memcpy(t.strides, value_of(d, 903), (size_t)t.rank * sizeof *t.strides);
  t.is_virtual = value_of(d, 907) && *(const bool *)value_of(d, 907);
  t.is_by_value = value_of(d, 908) && *(const bool *)value_of(d, 908);
  return t;
}

static int finalize_tensor(const desc_t *d) {
  if (count_of(d, 902) != count_of(d, 903)) return refuse(BAD_PARAM, "as many strides as sizes");
  const tensor_t t = tensor_of(d);
  if (!t.dtype || t.id <= 0 || t.align <= 0 || (t.align & (t.align - 1))) return refuse(BAD_PARAM, "a tensor");
  for (int32_t k = 0; k < t.rank; k++)
    if (t.sizes[k] <= 0 || t.strides[k] < 0) return refuse(BAD_PARAM, "sizes of a tensor");
  return SUCCESS;
}

static operation_t operation_of(const desc_t *d) {
  operation_t op = {.kind = d->type, .axis = -1};
  static const struct {
    int kind, params, x, b, t, y, mode;
  } rows[] = {
      {OP_MATMUL, 1523, 1520, 1521, 0, 1522, -1},   {OP_POINTWISE, 750, 751, 752, 758, 753, 0},
      {OP_REDUCTION, 1612, 1610, 0, 0, 1611, 1600}, {OP_RESHAPE, 0, 2200, 0, 0, 2201, -1},
      {CONV_FORWARD, 702, 704, 703, 0, 705, -1},    {CONV_DATA, 708, 711, 709, 0, 710, -1},
      {CONV_WEIGHTS, 714, 716, 717, 0, 715, -1},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (rows[k].kind != d->type) continue;
    const desc_t *params = desc_of(d, rows[k].params);
    op.x = tensor_of(desc_of(d, rows[k].x));
    op.b = tensor_of(desc_of(d, rows[k].b));
    op.t = tensor_of(desc_of(d, rows[k].t));
    op.y = tensor_of(desc_of(d, rows[k].y));
    if (rows[k].mode >= 0) op.mode = int_of(params, rows[k].mode, -1);
    if (d->type == OP_POINTWISE) op.axis = long_of(params, 9, -1);
    if (!params || params->type != CONVOLUTION) continue;
    op.rank = long_of(params, 106, 0);
    memcpy(op.dilation, value_of(params, 102), (size_t)op.rank * 8);
    memcpy(op.stride, value_of(params, 103), (size_t)op.rank * 8);
    memcpy(op.pad, value_of(params, 105), (size_t)op.rank * 8);
  }
  return op;
}

static int finalize_convolution(const desc_t *d) {
  const int64_t rank = long_of(d, 106, 0);
  for (int name = 102; name <= 105; name++)
    if (count_of(d, name) != rank) return refuse(BAD_PARAM, "a number for each dimension of a convolution");
  if (memcmp(value_of(d, 104), value_of(d, 105), (size_t)rank * 8)) return refuse(NOT_SUPPORTED, "uneven padding");
  return int_of(d, 101, 0) == 1 ? SUCCESS : refuse(NOT_SUPPORTED, "a flipped convolution");
}

static int broadcasts(const tensor_t *from, const tensor_t *to) {
  if (!from->id) return 1;
  if (from->rank != to->rank) return 0;
  for (int32_t d = 0; d < to->rank; d++)
    if (from->sizes[d] != to->sizes[d] && from->sizes[d] != 1) return 0;
  return 1;
}

/* Sums of one, of all, or of as many neighbours each as there are for one of y. */
static int divides(const tensor_t *y, const tensor_t *x) {
  if (x->rank != y->rank) return 0;
  for (int32_t d = 0; d < x->rank; d++)
    if (x->sizes[d] % y->sizes[d]) return 0;
  return 1;
}

static int fits_matmul(const operation_t *op) {
  const tensor_t *x = &op->x, *b = &op->b, *y = &op->y;
  const int32_t r = y->rank;
  if (r < 3 || x->rank != r || b->rank != r) return 0;
  for (int32_t d = 0; d < r - 2; d++) /* an operand's matrices may serve several of the result's, side by side */
    if (y->sizes[d] % x->sizes[d] || y->sizes[d] % b->sizes[d]) return 0;
  return x->sizes[r - 2] == y->sizes[r - 2] && b->sizes[r - 1] == y->sizes[r - 1] && x->sizes[r - 1] == b->sizes[r - 2];
}

/* What is at the ends of a convolution: image, weights, output. */
static void ends(const operation_t *op, const tensor_t **x, const tensor_t **w, const tensor_t **y) {
  *x = op->kind == CONV_DATA ? &op->y : &op->x;
  *w = op->kind == CONV_WEIGHTS ? &op->y : &op->b;
  *y = op->kind == CONV_DATA ? &op->x : op->kind == CONV_WEIGHTS ? &op->b : &op->y;
}

static int fits_conv(const operation_t *op) {
  const tensor_t *x, *w, *y;
  ends(op, &x, &w, &y);
  if (x->rank != op->rank + 2 || w->rank != x->rank || y->rank != x->rank || x->sizes[0] != y->sizes[0]) return 0;
  if (x->sizes[1] % w->sizes[1] || y->sizes[1] != w->sizes[0] || w->sizes[0] % (x->sizes[1] / w->sizes[1])) return 0;
  for (int64_t d = 0; d < op->rank; d++) {
    const int64_t reach = x->sizes[2 + d] + 2 * op->pad[d] - op->dilation[d] * (w->sizes[2 + d] - 1) - 1;
    if (op->stride[d] < 1 || op->dilation[d] < 1 || op->pad[d] < 0 || reach < 0) return 0;
    if (reach / op->stride[d] + 1 != y->sizes[2 + d]) return 0;
  }
  return x->dtype == w->dtype && y->dtype == x->dtype;
}

static int64_t numel(const tensor_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

static int finalize_operation(const desc_t *d) {
  const operation_t op = operation_of(d);
  int fits = 1;
  switch (op.kind) {
    case OP_MATMUL: fits = fits_matmul(&op); break;
    case OP_POINTWISE:
      fits = broadcasts(&op.x, &op.y) && broadcasts(&op.b, &op.y) && broadcasts(&op.t, &op.y);
      if (op.mode == 501 && (op.axis < 0 || op.axis >= op.y.rank)) fits = 0;
      break;
    case OP_REDUCTION: fits = divides(&op.y, &op.x); break;
    case OP_RESHAPE: fits = numel(&op.x) == numel(&op.y); break;
    default: fits = fits_conv(&op);
  }
  return fits ? SUCCESS : refuse(BAD_PARAM, "operands of an operation that do not fit");
}

/* ---- graphs and engines ---- */

static int is_made_before(const program_t *p, int32_t n, int64_t id) {
  for (int32_t k = 0; k < n; k++)
    if (p->ops[k].y.id == id) return 1;
  return 0;
}

/* A virtual tensor is made by one operation, before it is read. */
static int finalize_graph(desc_t *d) {
  program_t *p = &d->program;
  const desc_t *const *ops = value_of(d, 801);
  p->n = (int32_t)count_of(d, 801);
  for (int32_t k = 0; k < p->n; k++) {
    const operation_t op = p->ops[k] = operation_of(ops[k]);
    const tensor_t *const read[] = {&op.x, &op.b, &op.t};
    for (int i = 0; i < 3; i++)
      if (read[i]->is_virtual && !is_made_before(p, k, read[i]->id)) return refuse(BAD_PARAM, "a virtual operand");
    if (op.y.is_by_value || is_made_before(p, k, op.y.id)) return refuse(BAD_PARAM, "a result");
  }
  return SUCCESS;
}

static int is_conv(const program_t *p) {
  const int kind = p->ops[0].kind;
  return p->n == 1 && (kind == CONV_FORWARD || kind == CONV_DATA || kind == CONV_WEIGHTS);
}

/* [batch, head, ..] of f16 or bf16: elements of a head side by side, and a number of them that engines have. */
static int is_head(const tensor_t *t) {
  int32_t side = -1;
  if (t->rank != 4 || (t->dtype != AOT_F16 && t->dtype != AOT_BF16)) return 0;
  for (int32_t d = 0; d < 4; d++)
    if (t->strides[d] == 1 && (side < 0 || t->sizes[d] > 1)) side = d;
  if (side < 2 || t->sizes[side] % 8 || t->sizes[side] > 256) return 0;
  for (int32_t d = 0; d < 4; d++)
    if (d != side && t->sizes[d] > 1 && t->strides[d] % 8) return 0;
  return 1;
}

/* The product of the last but one operation, in float32 in memory, which the last one rounds: blocks add their parts
 * there as they come. */
static const operation_t *sums_in_any_order(const program_t *p) {
  if (p->n < 2) return NULL;
  const operation_t *rounds = &p->ops[p->n - 1], *sums = &p->ops[p->n - 2];
  const int is_read = rounds->kind == OP_POINTWISE && rounds->mode == IDENTITY && rounds->x.id == sums->y.id;
  return is_read && sums->kind == OP_MATMUL && !sums->y.is_virtual && sums->y.dtype == AOT_F32 ? sums : NULL;
}

static const operation_t *made_by(const program_t *p, const tensor_t *t) {
  for (int32_t k = 0; k < p->n; k++)
    if (p->ops[k].y.id == t->id) return &p->ops[k];
  return NULL;
}

static int is_factor_of_rows(const program_t *p, const operation_t *op) {
  const operation_t *sum = op->kind == OP_POINTWISE && op->mode == MUL && op->b.is_by_value ? made_by(p, &op->x) : NULL;
  return sum && sum->kind == OP_REDUCTION;
}

/* The log sums that scores are less by, in attention's gradients whose keys do not fill the last 128 and are not
 * compared with anything. */
static const tensor_t *sums_with_keys_beyond(const program_t *p) {
  const tensor_t *sums = NULL;
  for (int32_t k = 0; k < p->n; k++) {
    const operation_t *op = &p->ops[k];
    const int is_pointwise = op->kind == OP_POINTWISE;
    if (is_pointwise && (op->mode == CMP_GE || op->mode == CMP_LT)) return NULL;
    const int is_of_rows = is_pointwise && op->mode == SUB && !op->b.is_virtual && !op->b.is_by_value;
    if (is_of_rows && !sums && op->x.sizes[op->x.rank - 1] % 128) sums = &op->b;
  }
  return sums;
}

static int is_contiguous(const tensor_t *t) {
  int64_t step = 1;
  for (int32_t d = t->rank; d-- > 0; step *= t->sizes[d])
    if (t->strides[d] != step) return 0;
  return 1;
}

static int is_attention(const program_t *p) {
  const operation_t *sums = sums_in_any_order(p);
  int has_exp = 0, has_log = 0, n_products = 0;
  if (sums && (!is_contiguous(&sums->y) || setting("cudnn-ordered=", 0))) return 0;
  for (int32_t k = 0; k < p->n; k++) {
    const operation_t *op = &p->ops[k];
    const tensor_t *const all[] = {&op->x, &op->b, &op->y};
    has_exp |= op->kind == OP_POINTWISE && op->mode == 13;
    has_log |= op->kind == OP_POINTWISE && op->mode == 15;
    n_products += op->kind == OP_MATMUL;
    for (int i = 0; i < 3 && op->kind == OP_MATMUL; i++)
      if (!all[i]->is_virtual && !is_head(all[i]) && !(op == sums && i == 2)) return 0;
  }
  return has_exp && ((n_products == 2 && has_log) || n_products == 5);
}

static int is_supported(const program_t *p) {
  if (is_conv(p)) return p->ops[0].x.dtype != AOT_F64;
  return is_attention(p);
}

/* Of attention's gradients, whose first change of shape is that of the scores, what cuDNN 9.19 requested on an H100. */
static int64_t workspace_of(const program_t *p) {
  int32_t k = 0;
  while (k < p->n && p->ops[k].kind != OP_RESHAPE) k++;
  const int64_t least = 256 + setting("cudnn-extra=", 0);
  if (k == p->n || sums_in_any_order(p)) return least;
  const int64_t *sizes = p->ops[k].x.sizes;
  return least + 2 * sizes[0] * sizes[1] * ((sizes[2] + 63) / 64 * 64) * ((sizes[3] + 127) / 128 * 128);
}

/* ---- plans as text: the version, the engine, and the program's bytes ---- */

enum { HEAD = 64 };
static int64_t words_size(void) { return HEAD + 2 * (int64_t)sizeof(program_t); }

static void write_words(const desc_t *d, char *out) {
  const unsigned char *bytes = (const unsigned char *)&d->program;
  char head[HEAD + 1];
  snprintf(head, sizeof head, "{\"cudnn\": %8d, \"engine\": %3d}", version(), d->engine);
  memset(out, ' ', HEAD);
  memcpy(out, head, strlen(head));
  for (size_t k = 0; k < sizeof d->program; k++) {
    out[HEAD + 2 * k] = "0123456789abcdef"[bytes[k] >> 4];
    out[HEAD + 2 * k + 1] = "0123456789abcdef"[bytes[k] & 15];
  }
}

static int digit(char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; }

static int read_words(desc_t *d) {
  const value_t *words = &d->values[row_of(PLAN, 405)];
  unsigned char *bytes = (unsigned char *)&d->program;
  char head[HEAD + 1] = "";
  int of = 0;
  if (words->n != words_size()) return refuse(BAD_PARAM, "the text of a plan");
  memcpy(head, words->bytes, HEAD);
  if (sscanf(head, "{\"cudnn\": %d, \"engine\": %d}", &of, &d->engine) != 2)
    return refuse(BAD_PARAM, "the text of a plan");
  if (of != version()) return refuse(BAD_PARAM, "a plan of another version");
  for (size_t k = 0; k < sizeof d->program; k++)
    bytes[k] = (unsigned char)(digit(words->bytes[HEAD + 2 * k]) << 4 | digit(words->bytes[HEAD + 2 * k + 1]));
  return SUCCESS;
}

static int finalize_plan(desc_t *d) {
  const desc_t *config = desc_of(d, 401);
  if (value_of(d, 405)) return read_words(d);
  if (!config) return refuse(BAD_PARAM, "a plan of nothing");
  d->program = config->program;
  d->engine = config->engine;
  return SUCCESS;
}

API int cudnnBackendFinalize(void *desc) {
  desc_t *d = desc;
  int status = SUCCESS;
  for (int k = 0; k < N_ATTRIBUTES; k++)
    if (attributes[k].descriptor == d->type && attributes[k].is_needed && !d->values[k].n)
      return refuse(BAD_PARAM, "an attribute is missing");
  switch (d->type) {
    case TENSOR: status = finalize_tensor(d); break;
    case CONVOLUTION: status = finalize_convolution(d); break;
    case POINTWISE:
    case MATMUL:
    case REDUCTION: break;
    case GRAPH: status = finalize_graph(d); break;
    case HEURISTIC: d->program = desc_of(d, 201)->program; break;
    case PLAN: status = finalize_plan(d); break;
    case PACK:
      if (count_of(d, 1000) != count_of(d, 1001)) status = refuse(BAD_PARAM, "as many pointers as numbers");
      break;
    default: status = finalize_operation(d);
  }
  d->is_final = status == SUCCESS;
  return status;
}

/* Two engines for a convolution, one for attention. */
static int give_configs(const desc_t *d, int64_t n, int64_t *out_n, desc_t **out) {
  const int n_engines = !is_supported(&d->program) || int_of(d, 200, 0) == 2 ? 0 : is_conv(&d->program) ? 2 : 1;
  for (*out_n = 0; *out_n < n_engines && *out_n < n; ++*out_n) {
    desc_t *config = out[*out_n];
    if (config->type != CONFIG) return refuse(BAD_PARAM, "configurations of engines");
    config->program = d->program;
    config->engine = (int)*out_n;
    config->is_final = 1;
  }
  return SUCCESS;
}

API int cudnnBackendGetAttribute(void *desc, int name, int type, int64_t n, int64_t *out_n, void *out) {
  const desc_t *d = desc;
  if (!d->is_final) return refuse(BAD_PARAM, "what is not final is asked");
  *out_n = 1;
  if (d->type == HEURISTIC && name == 202 && type == T_DESCRIPTOR) return give_configs(d, n, out_n, out);
  if (d->type == CONFIG && name == 300 && type == T_DESCRIPTOR) {
    desc_t *engine = *(desc_t **)out;
    if (engine->type != ENGINE) return refuse(BAD_PARAM, "an engine");
    engine->engine = d->engine;
    engine->program = d->program;
    return engine->is_final = 1, SUCCESS;
  }
  if (d->type == ENGINE && name == 1301 && type == T_INT64) return *(int64_t *)out = d->engine, SUCCESS;
  if (d->type == ENGINE && name == 1303 && type == T_NOTE) {
    *out_n = is_conv(&d->program) && d->engine == 0;
    if (*out_n) *(int *)out = 0; /* tensor cores */
    return SUCCESS;
  }
  if (d->type == PLAN && name == 405 && type == T_CHAR) {
    *out_n = words_size();
    if (n >= words_size()) write_words(d, out);
    return SUCCESS;
  }
  if (d->type == PLAN && name == 402 && type == T_INT64) return *(int64_t *)out = workspace_of(&d->program), SUCCESS;
  return refuse(BAD_PARAM, "an attribute that is not given");
}

/* ---- running ---- */

typedef int (*enqueue_fn)(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes);
static struct handle {
  enqueue_fn enqueue; /* of the driver's double */
  void *stream;
} handle;

API int cudnnCreate(void **out) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL),
       *symbol = driver ? dlsym(driver, "aot_double_enqueue") : NULL;
  memcpy(&handle.enqueue, &symbol, sizeof symbol);
  return *out = &handle, symbol ? SUCCESS : NOT_INITIALIZED;
}
API int cudnnDestroy(void *h) { return h == &handle ? SUCCESS : BAD_PARAM; }
API int cudnnSetStream(void *h, void *stream) {
  if (h != &handle) return BAD_PARAM;
  return handle.stream = stream, SUCCESS;
}

/* A run: the plan, and where tensors in memory lie. Numbers are read when the run is requested. */
typedef struct run {
  program_t program;
  int engine;
  int64_t turn; /* how many runs there were before */
  int64_t ids[MANY], workspace_nbytes;
  void *pointers[MANY];
  float numbers[MANY];
  int64_t n;
  void *workspace;
} run_t;

/* A tensor while a plan runs: memory, or an array of doubles for what is virtual. */
typedef struct tensor_slot {
  int64_t id;
  char *memory;
  double *array;
  float number;
} tensor_slot_t;
typedef struct places {
  tensor_slot_t rows[2 * MANY];
  int n;
} places_t;

static int64_t reach_of(const tensor_t *t) {
  int64_t last = 0;
  for (int32_t d = 0; d < t->rank; d++) last += (t->sizes[d] - 1) * t->strides[d];
  return last + 1;
}

static tensor_slot_t *place_of(places_t *p, const run_t *r, const tensor_t *t) {
  for (int k = 0; k < p->n; k++)
    if (p->rows[k].id == t->id) return &p->rows[k];
  tensor_slot_t *place = &p->rows[p->n++];
  *place = (tensor_slot_t){.id = t->id};
  for (int64_t k = 0; k < r->n; k++)
    if (r->ids[k] == t->id) place->memory = r->pointers[k], place->number = r->numbers[k];
  if (t->is_virtual) place->array = calloc((size_t)reach_of(t), sizeof(double));
  return place;
}

static int64_t at(const tensor_t *t, const int64_t *index) {
  int64_t place = 0;
  for (int32_t d = 0; d < t->rank; d++) place += t->sizes[d] == 1 ? 0 : index[d] * t->strides[d];
  return place;
}
static double get(const tensor_t *t, const tensor_slot_t *p, int64_t i) {
  if (t->is_by_value) return p->number;
  return t->is_virtual ? p->array[i] : rk_load_f(p->memory + i * (int64_t)aot_dtype_size(t->dtype), t->dtype);
}
static double rounded(int32_t dtype, double v) {
  char bytes[8];
  if (dtype != AOT_F16 && dtype != AOT_BF16 && dtype != AOT_F32) return v;
  rk_store_f(bytes, dtype, v);
  return rk_load_f(bytes, dtype);
}
static void put(const tensor_t *t, const tensor_slot_t *p, int64_t i, double v) {
  if (t->is_virtual) p->array[i] = rounded(t->dtype, v);
  else rk_store_f(p->memory + i * (int64_t)aot_dtype_size(t->dtype), t->dtype, v);
}

static int next(const tensor_t *t, int64_t *index) {
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    if (++index[d] < t->sizes[d]) return 1;
    index[d] = 0;
  }
  return 0;
}

static double pointwise(const operation_t *op, double x, double b, double t, const int64_t *index) {
  switch (op->mode) {
    case 0: return x + b;
    case MUL: return x * b;
    case 6: return x / b;
    case SUB: return x - b;
    case 13: return exp(x);
    case 15: return log(x);
    case IDENTITY: return x;
    case CMP_GE: return x >= b;
    case CMP_LT: return x < b;
    case 501: return (double)index[op->axis];
    case 601: return t != 0 ? x : b;
    default: return NAN;
  }
}

static void run_pointwise(const operation_t *op, const tensor_slot_t *x, const tensor_slot_t *b, const tensor_slot_t *t,
                          const tensor_slot_t *y, int is_by_one) {
  int64_t index[MAX_RANK] = {0};
  do {
    const double vx = get(&op->x, x, at(&op->x, index));
    const double vb = is_by_one ? 1 : b ? get(&op->b, b, at(&op->b, index)) : 0;
    const double vt = t ? get(&op->t, t, at(&op->t, index)) : 0;
    put(&op->y, y, at(&op->y, index), pointwise(op, vx, vb, vt, index));
  } while (next(&op->y, index));
}

/* The element of `t` that the one of `of` belongs to, where t has fewer. */
static void fit_index(const tensor_t *t, const tensor_t *of, const int64_t *index, int64_t *out) {
  for (int32_t d = 0; d < of->rank; d++) out[d] = index[d] * t->sizes[d] / of->sizes[d];
}

/* first: the term that sums in float32 begin with; < 0: sums are in double. */
static void run_matmul(const operation_t *op, int64_t first, const tensor_slot_t *x, const tensor_slot_t *b,
                       const tensor_slot_t *y) {
  const int32_t r = op->y.rank;
  const int64_t n = op->x.sizes[r - 1];
  int64_t index[MAX_RANK] = {0};
  do {
    int64_t ix[MAX_RANK], ib[MAX_RANK];
    double sum = 0;
    fit_index(&op->x, &op->y, index, ix);
    fit_index(&op->b, &op->y, index, ib);
    ix[r - 2] = index[r - 2];
    ib[r - 1] = index[r - 1];
    for (int64_t k = 0; k < n; k++) {
      ix[r - 1] = ib[r - 2] = first < 0 ? k : (first + k) % n;
      sum += get(&op->x, x, at(&op->x, ix)) * get(&op->b, b, at(&op->b, ib));
      if (first >= 0) sum = (float)sum;
    }
    put(&op->y, y, at(&op->y, index), sum);
  } while (next(&op->y, index));
}

static void run_reduction(const operation_t *op, const tensor_slot_t *x, const tensor_slot_t *y) {
  int64_t index[MAX_RANK] = {0}, iy[MAX_RANK];
  double *sums = malloc((size_t)reach_of(&op->y) * sizeof *sums);
  for (int64_t k = 0; k < reach_of(&op->y); k++) sums[k] = op->mode == 3 ? -INFINITY : 0;
  do {
    const double v = get(&op->x, x, at(&op->x, index));
    fit_index(&op->y, &op->x, index, iy);
    double *sum = &sums[at(&op->y, iy)];
    *sum = op->mode == 3 ? fmax(*sum, v) : *sum + v;
  } while (next(&op->x, index));
  memset(index, 0, sizeof index);
  do put(&op->y, y, at(&op->y, index), sums[at(&op->y, index)]);
  while (next(&op->y, index));
  free(sums);
}

/* The same memory with other sizes and strides. */
static void run_reshape(const operation_t *op, const tensor_slot_t *x, const tensor_slot_t *y) {
  int64_t index[MAX_RANK] = {0};
  do put(&op->y, y, at(&op->y, index), get(&op->x, x, at(&op->y, index)));
  while (next(&op->y, index));
}

/* Rows of y whose log sum makes the exponential of a score of 0 infinite. */
static void spoil_rows(const tensor_t *sums, const tensor_slot_t *at_sums, const tensor_t *y,
                       const tensor_slot_t *at_y) {
  int64_t index[MAX_RANK] = {0};
  do {
    if (isinf((float)exp(-get(sums, at_sums, at(sums, index))))) put(y, at_y, at(y, index), NAN);
  } while (next(y, index));
}

static int has_batch_inside(const tensor_t *t) {
  for (int32_t d = 1; d < t->rank && t->sizes[0] > 1; d++)
    if (t->sizes[d] > 1 && t->strides[d] >= t->strides[0] * t->sizes[0]) return 1;
  return 0;
}

/* Every term of y[n, k, o] = sum of x[n, c, o * stride + r * dilation - pad] w[k, c', r], given to what is wanted. */
static void run_conv(const operation_t *op, int rounds, const tensor_slot_t *px, const tensor_slot_t *pb,
                     const tensor_slot_t *py) {
  const tensor_t *x, *w, *y;
  ends(op, &x, &w, &y);
  const tensor_slot_t *at_x = op->kind == CONV_DATA ? py : px, *at_w = op->kind == CONV_WEIGHTS ? py : pb;
  const tensor_slot_t *at_y = op->kind == CONV_DATA ? px : op->kind == CONV_WEIGHTS ? pb : py;
  const int64_t groups = x->sizes[1] / w->sizes[1], k_group = w->sizes[0] / groups;
  const int32_t narrow = rounds && x->dtype == AOT_F32 ? AOT_BF16 : AOT_F64;
  double *sums = calloc((size_t)reach_of(&op->y), sizeof *sums);
  int64_t iy[MAX_RANK] = {0}, index[MAX_RANK] = {0};
  do {
    int64_t iw[MAX_RANK] = {0};
    tensor_t window = *w;
    window.sizes[0] = 1;
    do {
      int64_t ix[MAX_RANK] = {iy[0], iy[1] / k_group * w->sizes[1] + iw[1]}, ik[MAX_RANK];
      int is_inside = 1;
      memcpy(ik, iw, sizeof ik);
      ik[0] = iy[1];
      for (int64_t d = 0; d < op->rank; d++) {
        ix[2 + d] = iy[2 + d] * op->stride[d] + iw[2 + d] * op->dilation[d] - op->pad[d];
        is_inside &= ix[2 + d] >= 0 && ix[2 + d] < x->sizes[2 + d];
      }
      if (!is_inside) continue;
      const int64_t ax = at(x, ix), aw = at(w, ik), ay = at(y, iy);
      if (op->kind == CONV_FORWARD) sums[ay] += rounded(narrow, get(x, at_x, ax)) * rounded(narrow, get(w, at_w, aw));
      else if (op->kind == CONV_DATA) sums[ax] += rounded(narrow, get(y, at_y, ay)) * rounded(narrow, get(w, at_w, aw));
      else sums[aw] += rounded(narrow, get(y, at_y, ay)) * rounded(narrow, get(x, at_x, ax));
    } while (next(&window, iw));
  } while (next(y, iy));
  const int is_wrong = has_batch_inside(x) || has_batch_inside(y);
  do put(&op->y, py, at(&op->y, index), is_wrong ? NAN : sums[at(&op->y, index)]);
  while (next(&op->y, index));
  free(sums);
}

static int run_plan(void *argument) {
  const run_t *r = argument;
  const operation_t *sums = sums_in_any_order(&r->program);
  const tensor_t *spoils = sums_with_keys_beyond(&r->program);
  places_t places = {.n = 0};
  memset(r->workspace, 0xff, (size_t)r->workspace_nbytes);
  for (int32_t k = 0; k < r->program.n; k++) {
    const operation_t *op = &r->program.ops[k];
    const tensor_slot_t *x = place_of(&places, r, &op->x);
    const tensor_slot_t *b = op->b.id ? place_of(&places, r, &op->b) : NULL;
    const tensor_slot_t *t = op->t.id ? place_of(&places, r, &op->t) : NULL;
    const tensor_slot_t *y = place_of(&places, r, &op->y);
    switch (op->kind) {
      case OP_POINTWISE: run_pointwise(op, x, b, t, y, is_factor_of_rows(&r->program, op)); break;
      case OP_MATMUL: run_matmul(op, op == sums ? r->turn : -1, x, b, y); break;
      case OP_REDUCTION: run_reduction(op, x, y); break;
      case OP_RESHAPE: run_reshape(op, x, y); break;
      default: run_conv(op, r->engine == 0, x, b, y);
    }
    if (spoils && k == r->program.n - 1) spoil_rows(spoils, place_of(&places, r, spoils), &op->y, y);
  }
  for (int k = 0; k < places.n; k++) free(places.rows[k].array);
  return 0;
}

/* What the run needs is there, aligned as it was said. */
static int find_memory(run_t *r, const tensor_t *t) {
  if (!t->id || t->is_virtual) return SUCCESS;
  for (int64_t k = 0; k < r->n; k++) {
    if (r->ids[k] != t->id) continue;
    if (!r->pointers[k]) return refuse(BAD_PARAM, "a tensor without memory");
    if (t->is_by_value) memcpy(&r->numbers[k], r->pointers[k], sizeof(float));
    else if ((uintptr_t)r->pointers[k] % (uintptr_t)t->align) return refuse(BAD_PARAM, "memory that is not aligned");
    return SUCCESS;
  }
  return refuse(BAD_PARAM, "a tensor that the pack does not have");
}

API int cudnnBackendExecute(void *h, void *plan, void *pack) {
  static _Atomic int64_t n_runs;
  const desc_t *d = plan, *p = pack;
  run_t *r = calloc(1, sizeof *r);
  int status = r ? SUCCESS : ALLOC_FAILED;
  if (r && (h != &handle || d->type != PLAN || !d->is_final || p->type != PACK || !p->is_final)) status = BAD_PARAM;
  if (status == SUCCESS) {
    r->program = d->program;
    r->engine = d->engine;
    r->turn = n_runs++;
    r->n = count_of(p, 1000);
    memcpy(r->ids, value_of(p, 1000), (size_t)r->n * sizeof *r->ids);
    memcpy(r->pointers, value_of(p, 1001), (size_t)r->n * sizeof *r->pointers);
    memcpy(&r->workspace, value_of(p, 1003), sizeof r->workspace);
    r->workspace_nbytes = workspace_of(&d->program);
    if (!r->workspace) status = refuse(BAD_PARAM, "no workspace");
    if ((uintptr_t)r->workspace % 256) status = refuse(BAD_PARAM, "a workspace that is no multiple of 256");
  }
  for (int32_t k = 0; status == SUCCESS && k < r->program.n; k++) {
    const operation_t *op = &r->program.ops[k];
    const tensor_t *const all[] = {&op->x, &op->b, &op->t, &op->y};
    for (int i = 0; i < 4 && status == SUCCESS; i++) status = find_memory(r, all[i]);
  }
  if (status == SUCCESS && handle.enqueue(handle.stream, run_plan, r, sizeof *r)) status = EXECUTION_FAILED;
  free(r);
  return status;
}
