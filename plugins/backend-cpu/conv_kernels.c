#include "conv_kernels.h"

#include "blas.h"
#include <aot/inline.h>
#include <string.h>

/* Rows of the columns. */
static int64_t n_rows(const bc_conv_t *c) { return c->c_in / c->groups * bc_conv_window(c); }

static int is_plain(const bc_conv_t *c) {
  for (int d = 0; d < BC_CONV_RANK; d++)
    if (c->kernel[d] != 1 || c->stride[d] != 1 || c->pad[d] != 0) return 0;
  return 1;
}

uint64_t bc_conv_work(const bc_conv_t *c) { return (uint64_t)n_rows(c) * (uint64_t)bc_conv_positions(c); }

/* ---- columns ---- */

/* The outputs [begin, end) along one dimension whose inputs under one place of the window exist; shift: the input of
 * output 0. */
typedef struct span {
  int64_t begin, end, shift;
} span_t;

static span_t inside(const bc_conv_t *c, int d, int64_t tap) {
  const int64_t size = c->in[d], stride = c->stride[d];
  span_t s = {.shift = tap * c->dilation[d] - c->pad[d]};
  s.begin = s.shift >= 0 ? 0 : (-s.shift + stride - 1) / stride;
  s.end = size - s.shift <= 0 ? 0 : (size - s.shift + stride - 1) / stride;
  if (s.end > c->out[d]) s.end = c->out[d];
  if (s.begin > s.end) s.begin = s.end;
  return s;
}

/* A row of the columns: one place of the window in one channel. */
typedef struct row {
  int64_t channel;
  span_t along[BC_CONV_RANK];
} row_t;

static row_t row_at(const bc_conv_t *c, int64_t index) {
  row_t row;
  for (int d = BC_WIDTH; d >= BC_DEPTH; index /= c->kernel[d--]) row.along[d] = inside(c, d, index % c->kernel[d]);
  row.channel = index;
  return row;
}

/* n elements of a line, every step-th of x, into y that lies without steps; and added back. */
static void copy_line(int32_t dtype, int64_t n, const char *x, int64_t step, char *y) {
  if (step == 1) memcpy(y, x, (size_t)n * aot_dtype_size(dtype));
  else if (dtype == AOT_F32)
    for (int64_t i = 0; i < n; i++) memcpy(y + i * 4, x + i * step * 4, 4);
  else
    for (int64_t i = 0; i < n; i++) memcpy(y + i * 8, x + i * step * 8, 8);
}

static void add_line(int32_t dtype, int64_t n, const char *y, char *x, int64_t step) {
  const float *fy = (const float *)(const void *)y;
  const double *dy = (const double *)(const void *)y;
  float *fx = (float *)(void *)x;
  double *dx = (double *)(void *)x;
  if (dtype == AOT_F32)
    for (int64_t i = 0; i < n; i++) fx[i * step] += fy[i];
  else
    for (int64_t i = 0; i < n; i++) dx[i * step] += dy[i];
}

/* x: the image of one group. to_columns: they are gathered there, zeros in the padding; else added to the image. */
static void move_row(int32_t dtype, const bc_conv_t *c, int64_t index, int to_columns, char *x, char *columns) {
  const int64_t size = (int64_t)aot_dtype_size(dtype), step = c->stride[BC_WIDTH];
  const row_t row = row_at(c, index);
  const span_t *depth = &row.along[BC_DEPTH], *height = &row.along[BC_HEIGHT], *width = &row.along[BC_WIDTH];
  char *to = columns + index * bc_conv_positions(c) * size;
  if (to_columns) memset(to, 0, (size_t)(bc_conv_positions(c) * size));
  for (int64_t d = depth->begin; d < depth->end; d++)
    for (int64_t h = height->begin; h < height->end; h++) {
      const int64_t plane = row.channel * c->in[BC_DEPTH] + d * c->stride[BC_DEPTH] + depth->shift;
      const int64_t line = plane * c->in[BC_HEIGHT] + h * c->stride[BC_HEIGHT] + height->shift;
      char *in = x + (line * c->in[BC_WIDTH] + width->begin * step + width->shift) * size;
      char *out = to + ((d * c->out[BC_HEIGHT] + h) * c->out[BC_WIDTH] + width->begin) * size;
      if (to_columns) copy_line(dtype, width->end - width->begin, in, step, out);
      else add_line(dtype, width->end - width->begin, out, in, step);
    }
}

static const void *columns_of(int32_t dtype, const bc_conv_t *c, char *x, void *work) {
  if (is_plain(c)) return x;
  for (int64_t k = 0; k < n_rows(c); k++) move_row(dtype, c, k, 1, x, work);
  return work;
}

/* ---- products ---- */

static bc_matrix_t matrix(int64_t rows, int64_t columns) {
  return (bc_matrix_t){.rows = rows, .columns = columns, .ld = columns};
}

/* The transposed matrix, in the same memory. */
static bc_matrix_t turned(bc_matrix_t m) {
  return (bc_matrix_t){.rows = m.columns, .columns = m.rows, .ld = m.ld, .transposed = 1};
}

static void multiply(int32_t dtype, bc_matrix_t a, bc_matrix_t b, bc_matrix_t c, int adds, const void *x, const void *y,
                     void *z) {
  const bc_product_t p = {.dtype = dtype, .alpha = 1, .beta = adds, .a = a, .b = b, .c = c};
  bc_product(&p, x, y, z);
}

/* n channels of n_batch images, to begin with. */
static void fill(int32_t dtype, int64_t n_batch, int64_t n, int64_t n_position, const char *bias, char *y) {
  const int64_t size = (int64_t)aot_dtype_size(dtype);
  if (!bias) memset(y, 0, (size_t)(n_batch * n * n_position * size));
  else
    for (int64_t k = 0; k < n_batch * n; k++)
      for (int64_t i = 0; i < n_position; i++)
        memcpy(y + (k * n_position + i) * size, bias + k % n * size, (size_t)size);
}

/* Where an image and a group begin, in bytes; the matrices of one. */
typedef struct part {
  int64_t x, w, y;
} part_t;

typedef struct shapes {
  bc_matrix_t weights, columns, out;
} shapes_t;

static part_t part_at(int32_t dtype, const bc_conv_t *c, int64_t n, int64_t g) {
  const int64_t size = (int64_t)aot_dtype_size(dtype), ci = c->c_in / c->groups, co = c->c_out / c->groups;
  return (part_t){(n * c->c_in + g * ci) * bc_conv_inputs(c) * size, g * co * n_rows(c) * size,
                  (n * c->c_out + g * co) * bc_conv_positions(c) * size};
}

static shapes_t shapes_of(const bc_conv_t *c) {
  const int64_t co = c->c_out / c->groups, p = bc_conv_positions(c), k = n_rows(c);
  return (shapes_t){matrix(co, k), matrix(k, p), matrix(co, p)};
}

void bc_conv_forward(int32_t dtype, const bc_conv_t *c, const void *x, const void *w, const void *bias, void *y,
                     void *work) {
  const shapes_t s = shapes_of(c);
  if (bias) fill(dtype, c->n_batch, c->c_out, bc_conv_positions(c), bias, y);
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t g = 0; g < c->groups; g++) {
      const part_t at = part_at(dtype, c, n, g);
      const void *columns = columns_of(dtype, c, (char *)(uintptr_t)x + at.x, work);
      multiply(dtype, s.weights, s.columns, s.out, bias != NULL, (const char *)w + at.w, columns, (char *)y + at.y);
    }
}

void bc_conv_data(int32_t dtype, const bc_conv_t *c, const void *gy, const void *w, const void *bias, void *gx,
                  void *work) {
  const shapes_t s = shapes_of(c);
  fill(dtype, c->n_batch, c->c_in, bc_conv_inputs(c), bias, gx);
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t g = 0; g < c->groups; g++) {
      const part_t at = part_at(dtype, c, n, g);
      char *image = (char *)gx + at.x;
      multiply(dtype, turned(s.weights), s.out, s.columns, is_plain(c), (const char *)w + at.w, (const char *)gy + at.y,
               is_plain(c) ? image : work);
      for (int64_t k = 0; k < n_rows(c) && !is_plain(c); k++) move_row(dtype, c, k, 0, image, work);
    }
}

void bc_conv_weights(int32_t dtype, const bc_conv_t *c, const void *gy, const void *x, void *gw, void *work) {
  const shapes_t s = shapes_of(c);
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t g = 0; g < c->groups; g++) {
      const part_t at = part_at(dtype, c, n, g);
      const void *columns = columns_of(dtype, c, (char *)(uintptr_t)x + at.x, work);
      multiply(dtype, s.out, turned(s.columns), s.weights, n > 0, (const char *)gy + at.y, columns, (char *)gw + at.w);
    }
}
