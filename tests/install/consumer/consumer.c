/* A program outside of the tree: one forward of the installed library. consumer PIPELINE MODEL [FOLDER OF PLUGINS]..,
 * for a model with inputs f32[8, 16] and i64[8] and a loss. With two folders the second has a pass vendor-dead-code,
 * which is used. */
#include <aothost.h>

#include <stdio.h>

static void note(void *self, int32_t severity, const char *text) {
  (void)self;
  (void)severity;
  fputs(text, stderr);
}

int main(int argc, char **argv) {
  static const float x[8 * 16] = {0.5f, -1.0f, 2.0f, 0.25f};
  static const int64_t y[8] = {0, 1, 2, 3, 4, 5, 6, 7}, x_sizes[2] = {8, 16}, y_sizes[1] = {8};
  const char *sets[] = {"vars.cleanup=vendor-dead-code"};
  aothost_config_t config = {.struct_size = sizeof config};
  aot_tensor_t in[2] = {{0}}, loss;
  aothost_t *h = NULL;
  if (argc < 3) return 2;
  in[0].data = (void *)x;
  in[0].nbytes = sizeof x;
  in[0].dtype = AOT_F32;
  in[0].rank = 2;
  in[0].sizes = x_sizes;
  in[1].data = (void *)y;
  in[1].nbytes = sizeof y;
  in[1].dtype = AOT_I64;
  in[1].rank = 1;
  in[1].sizes = y_sizes;
  config.model = argv[2];
  config.plugin_dirs = (const char *const *)(argv + 3);
  config.n_plugin_dirs = (uint32_t)(argc - 3);
  config.sets = sets;
  config.n_sets = argc > 4;
  config.message = note;
  int ok = aothost_open(argv[1], &config, &h) == AOT_OK && aothost_compile(h, 0) == AOT_OK &&
           aothost_forward(h, in, 2) == AOT_OK && aothost_get(h, "output.0", &loss) == AOT_OK;
  if (ok) printf("loss %.4f\n", ((const float *)loss.data)[loss.offset]);
  aothost_close(h);
  return !ok;
}
