/* Tensors of other libraries, and for them. dlpack_program PIPELINE MODEL: the mlp. */
#include "api_check.h"

#include <aothost_dlpack.h>
#include <stdlib.h>

static int n_deleted;

/* ---- a library that makes tensors ---- */

static void delete_mine(DLManagedTensorVersioned *m) {
  n_deleted++;
  free(m->dl_tensor.data);
  free(m);
}

static DLManagedTensorVersioned *make(uint8_t code, uint8_t bits, int32_t rank, int64_t *shape, int64_t *strides,
                                      const void *data, size_t nbytes, size_t at) {
  DLManagedTensorVersioned *m = calloc(1, sizeof *m);
  char *memory = malloc(nbytes + at);
  if (!m || !memory) exit(2);
  memcpy(memory + at, data, nbytes);
  m->version.major = 1;
  m->deleter = delete_mine;
  m->dl_tensor.data = memory;
  m->dl_tensor.device.device_type = kDLCPU;
  m->dl_tensor.ndim = rank;
  m->dl_tensor.dtype.code = code;
  m->dl_tensor.dtype.bits = bits;
  m->dl_tensor.dtype.lanes = 1;
  m->dl_tensor.shape = shape;
  m->dl_tensor.strides = strides;
  m->dl_tensor.byte_offset = at;
  return m;
}

static int64_t x_shape[2] = {8, 16}, x_turned[2] = {1, 8}, y_shape[1] = {8};

static void taken_in(aothost_t *h) {
  aot_tensor_t in[2], mine[2];
  float turned[16][8];
  make_inputs(in);
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  const float loss = number(h, "output.0");
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 16; j++) turned[j][i] = x_data[i * 16 + j];
  DLManagedTensorVersioned *x = make(kDLFloat, 32, 2, x_shape, x_turned, turned, sizeof turned, 128);
  DLManagedTensorVersioned *y = make(kDLInt, 64, 1, y_shape, NULL, y_data, sizeof y_data, 0);
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_OK && aothost_from_dlpack(h, y, &mine[1]) == AOT_OK);
  CHECK(mine[0].data == (char *)x->dl_tensor.data + 128 && mine[0].nbytes == sizeof turned);
  CHECK(mine[1].nbytes == sizeof y_data && mine[1].dtype == AOT_I64);
  CHECK(aothost_forward(h, mine, 2) == AOT_OK && number(h, "output.0") == loss);
  /* what programs do not have */
  x->dl_tensor.device.device_type = kDLCUDA;
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_E_UNIMPLEMENTED && strstr(last_message, "not on the CPU"));
  x->dl_tensor.device.device_type = kDLCPU;
  x->dl_tensor.dtype.lanes = 4;
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_E_UNIMPLEMENTED && strstr(last_message, "4 lanes"));
  x->dl_tensor.dtype.lanes = 1;
  x->dl_tensor.dtype.bits = 8;
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_E_UNIMPLEMENTED);
  x->dl_tensor.dtype.bits = 32;
  x->version.major = 2;
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_E_UNIMPLEMENTED && strstr(last_message, "version 2"));
  x->version.major = 1;
  x_turned[0] = -1;
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_E_UNIMPLEMENTED && !mine[0].data);
  x_turned[0] = 1;
  x->dl_tensor.ndim = 99;
  CHECK(aothost_from_dlpack(h, x, &mine[0]) == AOT_E_UNIMPLEMENTED);
  x->deleter(x);
  y->deleter(y);
  CHECK(n_deleted == 2);
}

/* ---- a library that takes them ---- */

static DLManagedTensorVersioned *given_out(aothost_t *h, int is_shared) {
  aot_tensor_t in[2], t;
  DLManagedTensorVersioned *g = NULL, *w = NULL, *b = NULL;
  make_inputs(in);
  CHECK(aothost_to_dlpack(h, "grad.nobody", &g) == AOT_E_NOT_FOUND && !g);
  CHECK(aothost_forward(h, in, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK);
  CHECK(aothost_get(h, "grad.m.0.weight", &t) == AOT_OK);
  const float first = ((const float *)t.data)[0], loss = number(h, "output.0");
  /* a result is a copy, which stays as it is */
  CHECK(aothost_to_dlpack(h, "grad.m.0.weight", &g) == AOT_OK && g->version.major == 1);
  CHECK(g->dl_tensor.ndim == 2 && g->dl_tensor.shape[0] == 32 && g->dl_tensor.strides[0] == 16);
  CHECK(g->dl_tensor.dtype.code == kDLFloat && g->dl_tensor.dtype.bits == 32 && g->dl_tensor.dtype.lanes == 1);
  CHECK(g->dl_tensor.device.device_type == kDLCPU && g->flags == DLPACK_FLAG_BITMASK_IS_COPIED);
  /* a leaf is the memory itself, and the backward does not take it for changed */
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(aothost_to_dlpack(h, "param.m.0.weight", &w) == AOT_OK &&
        w->flags == (is_shared ? 0 : DLPACK_FLAG_BITMASK_IS_COPIED));
  CHECK(aothost_backward(h, NULL, 0) == AOT_OK && number(h, "output.0") == loss);
  float *weights = w->dl_tensor.data;
  const float was = weights[0];
  weights[0] += 1;
  CHECK(aothost_forward(h, in, 2) == AOT_OK && (number(h, "output.0") != loss) == is_shared);
  CHECK(aothost_backward(h, NULL, 0) == AOT_OK);
  CHECK(aothost_update(h, 0.1) == AOT_OK && (weights[0] != was + 1) == is_shared);
  CHECK(((float *)g->dl_tensor.data)[0] == first);
  CHECK(aothost_reset(h) == AOT_OK && weights[0] == (is_shared ? was : was + 1));
  CHECK(aothost_get(h, "param.m.0.weight", &t) == AOT_OK);
  if (is_shared)
    CHECK(aothost_bind(h, "param.m.0.weight", &t) == AOT_E_PRECONDITION && strstr(last_message, "exported"));
  CHECK(aothost_to_dlpack(h, "param.m.4.bias", &b) == AOT_OK);
  b->deleter(b);
  g->deleter(g);
  return w;
}

/* ---- the older form ---- */

static int n_older;
static void delete_older(DLManagedTensor *m) {
  n_older++;
  free(m);
}

static void converted(aothost_t *h) {
  DLManagedTensor *older = calloc(1, sizeof *older), *back = NULL;
  DLManagedTensorVersioned *newer = NULL;
  aot_tensor_t t;
  if (!older) exit(2);
  older->deleter = delete_older;
  older->dl_tensor.data = y_data;
  older->dl_tensor.device.device_type = kDLCPU;
  older->dl_tensor.ndim = 1;
  older->dl_tensor.dtype = (DLDataType){kDLInt, 64, 1};
  older->dl_tensor.shape = y_shape;
  CHECK(aothost_dlpack_upgrade(older, &newer) == AOT_OK && aothost_from_dlpack(h, newer, &t) == AOT_OK);
  CHECK(t.data == y_data && t.rank == 1 && t.sizes[0] == 8 && t.nbytes == sizeof y_data);
  newer->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  CHECK(aothost_dlpack_downgrade(newer, &back) == AOT_E_INVALID && !back);
  newer->flags = 0;
  CHECK(aothost_dlpack_downgrade(newer, &back) == AOT_OK && back->dl_tensor.data == y_data && n_older == 0);
  back->deleter(back);
  CHECK(n_older == 1);
}

int main(int argc, char **argv) {
  aothost_config_t config = {0};
  aothost_t *h = NULL;
  if (argc < 3) return 2;
  const int is_shared = strstr(argv[1], "strict") == NULL;
  config.struct_size = sizeof config;
  config.message = note;
  config.model = argv[2];
  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK);
  DLManagedTensorVersioned *none = NULL;
  CHECK(aothost_to_dlpack(h, "param.m.0.weight", &none) == AOT_E_NOT_FOUND && !none);
  CHECK(aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK);
  taken_in(h);
  converted(h);
  DLManagedTensorVersioned *w = given_out(h, is_shared);
  aothost_close(h); /* what was exported lives on */
  float sum = 0;
  for (int i = 0; i < 32 * 16; i++) sum += ((float *)w->dl_tensor.data)[i];
  CHECK(sum == sum);
  w->deleter(w);
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
