#include "openblas.h"

#include "blas_kernels.h"
#include "single_thread.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* A buffer (BUFFER_SIZE of x86-64) and a thread's stack; the library itself. */
enum { BUFFER_MIB = 128, STACK_MIB = 8, LIBRARY_MIB = 64 };
static const size_t mib = 1u << 20;

static bl_library_t library;
static void *handle;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- address space ---- */

/* Room for `n` buffers with stacks, and the library: mapped one by one, as the library does it, and returned. */
static int fits(int32_t n) {
  void **blocks = calloc((size_t)n + 1, sizeof *blocks);
  int32_t k = 0;
  int all = blocks != NULL;
  for (; all && k <= n; k++) {
    const size_t size = (size_t)(k ? BUFFER_MIB + STACK_MIB : LIBRARY_MIB) * mib;
    blocks[k] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (blocks[k] == MAP_FAILED) {
      all = 0;
      break;
    }
  }
  for (int32_t i = 0; i < k; i++) munmap(blocks[i], (size_t)(i ? BUFFER_MIB + STACK_MIB : LIBRARY_MIB) * mib);
  free(blocks);
  return all;
}

static int is_limited(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* Under a limit the callers' buffers are mapped now: later the program may have taken the room. The library keeps what
 * is returned. */
static void map_buffers(int32_t n) {
  void *take_symbol = dlsym(handle, "blas_memory_alloc"), *give_symbol = dlsym(handle, "blas_memory_free");
  void *(*take)(int);
  void (*give)(void *);
  void **taken = take_symbol && give_symbol && is_limited() ? calloc((size_t)n, sizeof *taken) : NULL;
  if (!taken) return;
  memcpy(&take, &take_symbol, sizeof take); /* POSIX: object and function pointers have one form */
  memcpy(&give, &give_symbol, sizeof give);
  for (int32_t k = 0; k < n; k++) taken[k] = take(0);
  for (int32_t k = 0; k < n; k++)
    if (taken[k]) give(taken[k]);
  free(taken);
}

/* ---- kernels ---- */

static int read_flags(char *line, int size) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  int found = 0;
  while (f && !found && fgets(line, size, f)) found = strncmp(line, "flags", 5) == 0;
  if (f) fclose(f);
  return found;
}

/* The constructor's own choice is repeated with a name in the environment: gotoblas_dynamic_init reads it, and nothing
 * but this thread knows the library yet. */
static void choose_kernels(void) {
  char flags[8192];
  void *init_symbol = dlsym(handle, "gotoblas_dynamic_init"), *quit_symbol = dlsym(handle, "gotoblas_dynamic_quit");
  void (*init)(void), (*quit)(void);
  if (!init_symbol || !quit_symbol || getenv("OPENBLAS_CORETYPE") || !read_flags(flags, sizeof flags)) return;
  const char *better = bl_better_kernels(flags, library.openblas_get_corename());
  if (!better || setenv("OPENBLAS_CORETYPE", better, 1)) return;
  memcpy(&init, &init_symbol, sizeof init);
  memcpy(&quit, &quit_symbol, sizeof quit);
  quit();
  init();
  unsetenv("OPENBLAS_CORETYPE");
}

/* ---- opening ---- */

static int find_functions(void) {
#define BL_FIND(name)                                                                                                  \
  {                                                                                                                    \
    void *symbol = dlsym(handle, #name);                                                                               \
    if (!symbol) return 0;                                                                                             \
    memcpy(&library.name, &symbol, sizeof symbol);                                                                     \
  }
  BL_FUNCTIONS(BL_FIND)
#undef BL_FIND
  return 1;
}

static void open_library(void) {
  /* another plugin's: its kernels are chosen, or in use */
  void *there = dlopen(BL_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!there && !fits(1)) {
    snprintf(library.failure, sizeof library.failure,
             "OpenBLAS needs %d MiB of address space, and there is less (see ulimit -v)",
             LIBRARY_MIB + BUFFER_MIB + STACK_MIB);
    return;
  }
  handle = there ? there : bl_open_with_one_thread(BL_SONAME, "OPENBLAS_NUM_THREADS");
  if (!handle || !find_functions()) {
    const char *why = dlerror();
    snprintf(library.failure, sizeof library.failure, "OpenBLAS cannot be opened: %.150s", why ? why : BL_SONAME);
    return;
  }
  if (!there) choose_kernels();
  map_buffers(1);
}

const bl_library_t *bl_library(void) {
  pthread_once(&once, open_library);
  return &library;
}

/* Half of the room is left to the program. */
int32_t bl_set_callers(int32_t wanted) {
  if (bl_library()->failure[0]) return 0;
  int32_t n = wanted > 1 ? wanted : 1;
  while (n > 1 && !fits(2 * n)) n--;
  library.openblas_set_num_threads(1);
  map_buffers(n);
  return n;
}
