/* Sizes that break a guard, by the library: the call is refused with the guard's text, and the next one runs.
 * guard_program PIPELINE MODEL: a model of x[n] that is valid for even n
 * (tests/fixtures/found2/guards_ignored/even). */
#include "api_check.h"

static aot_tensor_t input(int64_t *n, int64_t size) {
  aot_tensor_t t;
  memset(&t, 0, sizeof t);
  *n = size;
  t.data = x_data;
  t.nbytes = 4 * (uint64_t)size;
  t.dtype = AOT_F32;
  t.rank = 1;
  t.sizes = n;
  return t;
}

int main(int argc, char **argv) {
  static const char guard[] = "it was exported under the guard (L['args'][0].size()[0] % 2) == 0 (s33 = 5)";
  aothost_config_t config;
  aothost_t *h = NULL;
  aothost_call_t *call = NULL;
  aot_tensor_t in[2];
  int64_t n;
  if (argc < 3) return 2;
  make_inputs(in);
  memset(&config, 0, sizeof config);
  config.struct_size = sizeof config;
  config.model = argv[2];
  config.message = note;
  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK && aothost_compile(h, 0) == AOT_OK);
  for (int64_t size = 4; size <= 9; size++) {
    const aot_status_t wanted = size % 2 ? AOT_E_INVALID : AOT_OK;
    in[0] = input(&n, size);
    CHECK(aothost_forward(h, in, 1) == wanted);
    if (wanted == AOT_OK) CHECK(number(h, "output.0") == 2 * x_data[0]);
    if (size == 5) CHECK(strstr(last_message, guard) != NULL);
    CHECK(aothost_call_open(h, &call) == AOT_OK);
    CHECK(aothost_call_forward(call, in, 1, 0) == wanted);
    aothost_call_close(call);
  }
  aothost_close(h);
  return n_failed != 0;
}
