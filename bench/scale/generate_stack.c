/* Prints a program in text form: a stack of transformer layers with about N nodes, every layer with its own parameters.
 *   generate_stack N > stack.ir
 *   generate_stack N regions > stack.ir    the layer as one region, called once a layer; nothing is written in place
 *   generate_stack N dropout > stack.ir    attention with dropout, as GPT-2 is trained */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_A_LAYER = 20, LEAVES_A_LAYER = 12, WIDTH = 32, HEADS = 2, BATCH = 2, LENGTH = 8 };

typedef struct shape {
  const char *name, *type;
} shape_t;
static const shape_t leaves[LEAVES_A_LAYER] = {
    {"ln1.weight", "f32[32]"},           {"ln1.bias", "f32[32]"},
    {"attn.qkv.weight", "f32[96, 32]"},  {"attn.qkv.bias", "f32[96]"},
    {"attn.out.weight", "f32[32, 32]"},  {"attn.out.bias", "f32[32]"},
    {"ln2.weight", "f32[32]"},           {"ln2.bias", "f32[32]"},
    {"mlp.up.weight", "f32[128, 32]"},   {"mlp.up.bias", "f32[128]"},
    {"mlp.down.weight", "f32[32, 128]"}, {"mlp.down.bias", "f32[32]"},
};

static void print_leaves(uint32_t layers) {
  printf("leaf 0 user_input 0 \"x\" : f32[%d, %d, %d]\n", BATCH, LENGTH, WIDTH);
  for (uint32_t l = 0; l < layers; l++)
    for (uint32_t k = 0; k < LEAVES_A_LAYER; k++)
      printf("leaf %" PRIu32 " parameter \"h.%" PRIu32 ".%s\" : %s grad\n", 1 + l * LEAVES_A_LAYER + k, l,
             leaves[k].name, leaves[k].type);
}

static void print_inputs(uint32_t layers) {
  printf("  in %%0 = user_input 0 : f32[%d, %d, %d]\n", BATCH, LENGTH, WIDTH);
  for (uint32_t l = 0; l < layers; l++)
    for (uint32_t k = 0; k < LEAVES_A_LAYER; k++) {
      uint32_t i = 1 + l * LEAVES_A_LAYER + k;
      printf("  in %%%" PRIu32 " = parameter %" PRIu32 " : %s grad\n", i, i, leaves[k].type);
    }
}

/* One layer from value x with parameters p, p + 1, ..; its values are numbered from v. Returns the number of its
 * result. */
static uint32_t print_layer(uint32_t x, uint32_t p, uint32_t v, const char *last, const char *dropout) {
#define V(i) (v + (i))
  printf("  %%%u = aten.layer_norm.default %%%u, [%d], %%%u, %%%u\n", V(0), x, WIDTH, p, p + 1);
  printf("  %%%u = aten.linear.default %%%u, %%%u, %%%u\n", V(1), V(0), p + 2, p + 3);
  printf("  %%%u, %%%u, %%%u = aten.split.Tensor %%%u, %d, 2\n", V(2), V(3), V(4), V(1), WIDTH);
  for (uint32_t i = 0; i < 3; i++)
    printf("  %%%u = aten.view.default %%%u, [%d, %d, %d, %d]\n", V(5 + i), V(2 + i), BATCH, LENGTH, HEADS,
           WIDTH / HEADS);
  for (uint32_t i = 0; i < 3; i++) printf("  %%%u = aten.transpose.int %%%u, 1, 2\n", V(8 + i), V(5 + i));
  printf("  %%%u = aten.scaled_dot_product_attention.default %%%u, %%%u, %%%u, none, %s, true\n", V(11), V(8), V(9),
         V(10), dropout);
  printf("  %%%u = aten.transpose.int %%%u, 1, 2\n", V(12), V(11));
  printf("  %%%u = aten.reshape.default %%%u, [%d, %d, %d]\n", V(13), V(12), BATCH, LENGTH, WIDTH);
  printf("  %%%u = aten.linear.default %%%u, %%%u, %%%u\n", V(14), V(13), p + 4, p + 5);
  printf("  %%%u = aten.add.Tensor %%%u, %%%u\n", V(15), x, V(14));
  printf("  %%%u = aten.layer_norm.default %%%u, [%d], %%%u, %%%u\n", V(16), V(15), WIDTH, p + 6, p + 7);
  printf("  %%%u = aten.linear.default %%%u, %%%u, %%%u\n", V(17), V(16), p + 8, p + 9);
  printf("  %%%u = aten.gelu.default %%%u\n", V(18), V(17));
  printf("  %%%u = aten.linear.default %%%u, %%%u, %%%u\n", V(19), V(18), p + 10, p + 11);
  printf("  %%%u = aten.add.Tensor %%%u, %%%u\n", V(20), V(15), V(19));
  printf("  %%%u = %s %%%u\n", V(21), last, V(20));
  return V(21);
#undef V
}

static void print_region(void) {
  printf("graph @layer region {\n  in %%0 = region 0 : f32[%d, %d, %d]\n", BATCH, LENGTH, WIDTH);
  for (uint32_t k = 0; k < LEAVES_A_LAYER; k++) printf("  in %%%u = region %u : %s\n", k + 1, k + 1, leaves[k].type);
  printf("  out region 0 = %%%u\n}\n", print_layer(0, 1, 1 + LEAVES_A_LAYER, "aten.relu.default", "0.0"));
}

static uint32_t print_call(uint32_t x, uint32_t p, uint32_t v) {
  printf("  %%%u = higher_order.invoke_subgraph @layer, \"layer\", %%%u", v, x);
  for (uint32_t k = 0; k < LEAVES_A_LAYER; k++) printf(", %%%u", p + k);
  printf("\n");
  return v;
}

int main(int argc, char **argv) {
  int regions = argc > 2 && strcmp(argv[2], "regions") == 0;
  const char *dropout = argc > 2 && strcmp(argv[2], "dropout") == 0 ? "0.1" : "0.0";
  long n = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  if (n < NODES_A_LAYER || n > 100000000) {
    fprintf(stderr, "usage: generate_stack NODES [regions | dropout] > stack.ir   (NODES from %d to 10^8)\n",
            NODES_A_LAYER);
    return 2;
  }
  uint32_t layers = (uint32_t)n / NODES_A_LAYER, value = 1 + layers * LEAVES_A_LAYER, x = 0;
  printf("aot 1\nproperties imported\n");
  print_leaves(layers);
  if (regions) print_region();
  printf("graph @forward forward {\n");
  print_inputs(layers);
  for (uint32_t l = 0; l < layers && regions; l++) x = print_call(x, 1 + l * LEAVES_A_LAYER, value++);
  for (uint32_t l = 0; l < layers && !regions; l++, value += 22)
    x = print_layer(x, 1 + l * LEAVES_A_LAYER, value, "aten.relu_.default",
                    dropout); /* something for functionalize to do */
  printf("  out user_output 0 = %%%u\n}\n", x);
  return 0;
}
