/* Generated C for tests: printed functions compiled into a library by one run of the compiler. */
#ifndef LOOP_LIBRARY_H
#define LOOP_LIBRARY_H

#include "common/loops/loop.h"
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
typedef void (*loop_fn)(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end);

static void *build(const lp_text_t *source) {
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
                  "-Wno-bool-operation", "-Wno-int-in-bool-context", "-fPIC", "-shared", "-o", so, c, "-lm", NULL};
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

static loop_fn find(void *handle, const char *name) {
  void *symbol = dlsym(handle, name);
  loop_fn f;
  assert_non_null(symbol);
  memcpy(&f, &symbol, sizeof f);
  return f;
}

#endif
