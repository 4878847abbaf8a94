/* Generated C for tests: printed functions compiled into a library by one run of the compiler. */
#ifndef LOOP_LIBRARY_H
#define LOOP_LIBRARY_H

#include "kit/loops/loop_print.h"
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
typedef void (*loop_fn)(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end);

/* header: what is included before the text; contract: whether products and sums may become one. */
static void *build_after(const lp_text_t *source, const char *header, const char *contract) {
  char dir[] = "/tmp/unit-loop-c-XXXXXX", c[64], so[64];
  assert_non_null(mkdtemp(dir));
  snprintf(c, sizeof c, "%s/unit.c", dir);
  snprintf(so, sizeof so, "%s/unit.so", dir);
  FILE *f = fopen(c, "w");
  assert_non_null(f);
  fwrite(source->data, 1, (size_t)source->size, f);
  fclose(f);
  /* clang-format off */
  char *argv[] = {"cc", "-std=gnu11", "-O2", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
                  "-Wall", "-Wno-unused-variable",
                  "-Wno-bool-operation", "-Wno-int-in-bool-context", "-Wno-unknown-pragmas",
                  (char *)contract, "-fPIC", "-shared", "-include", (char *)header, "-o", so, c, "-lm", NULL};
  /* clang-format on */
  pid_t pid;
  int status = 1;
  assert_int_equal(posix_spawnp(&pid, "cc", NULL, NULL, argv, environ), 0);
  waitpid(pid, &status, 0);
  assert_int_equal(status, 0);
  void *handle = dlopen(so, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  unlink(so);
  unlink(c);
  rmdir(dir);
  return handle;
}

__attribute__((unused)) static void *build(const lp_text_t *source) {
  return build_after(source, "stdint.h", "-ffp-contract=fast");
}

/* CUDA C, for the CPU. Conversions of f16 or bf16 are those of generated C. */
__attribute__((unused)) static void *build_cuda(const lp_text_t *source) {
  lp_text_t whole = {0};
  lp_halves_add(&whole);
  lp_text_add(&whole, source->data, source->size);
  void *handle = build_after(&whole, LP_SHIM_HEADER, "-ffp-contract=off");
  lp_text_deinit(&whole);
  return handle;
}

__attribute__((unused)) static loop_fn find(void *handle, const char *name) {
  void *symbol = dlsym(handle, name);
  loop_fn f;
  assert_non_null(symbol);
  memcpy(&f, &symbol, sizeof f);
  return f;
}

#endif
