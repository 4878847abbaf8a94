/* random_program SEED NODES: prints a training program in text form, of products, pointwise operators, views,
 * reductions, tuples and a few nodes written twice, so that there is something to merge. Every value is f32[4, 4] or
 * a view on the way to one. */
#include "kit/base/splitmix.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_LEAVES = 4, MAX_NODES = 200 };

typedef struct printer {
  uint64_t state;
  unsigned next, known[MAX_NODES + N_LEAVES], n_known; /* values of f32[4, 4] */
} printer_t;

static uint32_t next_random(printer_t *p, uint32_t below) { return (uint32_t)(kit_splitmix64(&p->state) % below); }

/* Mostly one of the last eight, so that programs are deep. */
static unsigned pick(printer_t *p) {
  const uint32_t near = p->n_known < 8 ? p->n_known : 8;
  return next_random(p, 4) ? p->known[p->n_known - 1 - next_random(p, near)] : p->known[next_random(p, p->n_known)];
}

static unsigned fresh(printer_t *p) { return p->next++; }

static void binary(printer_t *p, const char *op) {
  const unsigned a = pick(p), b = pick(p), r = fresh(p);
  printf("  %%%u = %s %%%u, %%%u\n", r, op, a, b);
  p->known[p->n_known++] = r;
}

static void unary(printer_t *p, const char *op) {
  const unsigned a = pick(p), r = fresh(p);
  printf("  %%%u = %s %%%u\n", r, op, a);
  p->known[p->n_known++] = r;
}

/* The same node twice, and their product. */
static void twice(printer_t *p) {
  const unsigned a = pick(p), r = fresh(p), s = fresh(p), t = fresh(p);
  printf("  %%%u = aten.sin.default %%%u\n  %%%u = aten.sin.default %%%u\n  %%%u = aten.mul.Tensor %%%u, %%%u\n", r, a,
         s, a, t, r, s);
  p->known[p->n_known++] = t;
}

static void through_views(printer_t *p) {
  const unsigned a = pick(p), flat = fresh(p), act = fresh(p), back = fresh(p);
  printf("  %%%u = aten.view.default %%%u, [16]\n  %%%u = aten.sigmoid.default %%%u\n  %%%u = aten.view.default %%%u, "
         "[4, 4]\n",
         flat, a, act, flat, back, act);
  p->known[p->n_known++] = back;
}

static void split_and_join(printer_t *p) {
  const unsigned a = pick(p), x = fresh(p), y = fresh(p), r = fresh(p);
  printf("  %%%u, %%%u = aten.split.Tensor %%%u, 2, 1\n  %%%u = aten.cat.default [%%%u, %%%u], 1\n", x, y, a, r, y, x);
  p->known[p->n_known++] = r;
}

static void normalized(printer_t *p) {
  const unsigned a = pick(p), mean = fresh(p), r = fresh(p);
  printf("  %%%u = aten.mean.dim %%%u, [1], true\n  %%%u = aten.sub.Tensor %%%u, %%%u\n", mean, a, r, a, mean);
  p->known[p->n_known++] = r;
}

static void node(printer_t *p) {
  switch (next_random(p, 12)) {
    case 0:
    case 1: binary(p, "aten.mm.default"); break;
    case 2: binary(p, "aten.mul.Tensor"); break;
    case 3: binary(p, "aten.add.Tensor"); break;
    case 4: unary(p, "aten.tanh.default"); break;
    case 5: unary(p, "aten.relu.default"); break;
    case 6: unary(p, "aten.gelu.default"); break;
    case 7: twice(p); break;
    case 8: through_views(p); break;
    case 9: split_and_join(p); break;
    case 10: normalized(p); break;
    default: unary(p, "aten.cos.default"); break;
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  printer_t p = {.state = strtoull(argv[1], NULL, 10)};
  const long n = atol(argv[2]);
  printf("aot 1\nproperties imported\n");
  for (unsigned i = 0; i < N_LEAVES; i++)
    printf("leaf %u %s \"l%u\" : f32[4, 4]%s\n", i, i ? "parameter" : "user_input 0", i, i ? " grad" : "");
  printf("graph @main forward {\n");
  for (unsigned i = 0; i < N_LEAVES; i++) {
    printf("  in %%%u = %s %u : f32[4, 4]%s\n", i, i ? "parameter" : "user_input", i, i ? " grad" : "");
    p.known[p.n_known++] = fresh(&p);
  }
  for (long i = 0; i < n && p.n_known < MAX_NODES; i++) node(&p);
  const unsigned last = p.known[p.n_known - 1], sum = fresh(&p), act = fresh(&p), loss = fresh(&p);
  printf("  %%%u = aten.add.Tensor %%%u, %%1\n  %%%u = aten.tanh.default %%%u\n  %%%u = aten.sum.default %%%u\n", sum,
         last, act, sum, loss, act);
  printf("  out loss 0 \"loss\" = %%%u\n}\n", loss);
  return 0;
}
