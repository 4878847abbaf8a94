#define _GNU_SOURCE /* dladdr */
#include "nvrtc.h"

#include "symbols.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL /* who links the kit links no library for it */
#include <xxhash.h>

enum { OLDEST = 12 };

static void *open_in(const char *folder, const char *name) {
  char path[512];
  if (!folder) return dlopen(name, RTLD_NOW | RTLD_LOCAL);
  const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
  return n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *open_any(const char *folder) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  const char *const folders[] = {folder, NULL, "/usr/local/cuda/lib64"};
  for (size_t f = folder ? 0 : 1; f < sizeof folders / sizeof *folders; f++)
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
      void *handle = open_in(folders[f], names[n]);
      if (handle) return handle;
    }
  return NULL;
}

int nv_nvrtc_open(nv_nvrtc_t *out, const char *folder, char *why, size_t n_why) {
  int (*version)(int *, int *) = NULL;
  *out = (nv_nvrtc_t){.handle = open_any(folder)};
  if (!out->handle) {
    snprintf(why, n_why, "libnvrtc.so.13 and .12 are not there: %s", dlerror());
    return 0;
  }
  const nv_symbol_t symbols[] = {
      {"nvrtcVersion", &version},
      {"nvrtcCreateProgram", &out->create},
      {"nvrtcCompileProgram", &out->compile},
      {"nvrtcGetCUBINSize", &out->cubin_size},
      {"nvrtcGetCUBIN", &out->cubin},
      {"nvrtcGetProgramLogSize", &out->log_size},
      {"nvrtcGetProgramLog", &out->log},
      {"nvrtcDestroyProgram", &out->destroy},
      {"nvrtcGetErrorString", &out->error},
  };
  if (!nv_find_symbols(out->handle, symbols, sizeof symbols / sizeof *symbols, why, n_why)) return 0;
  if (version(&out->major, &out->minor) == 0 && out->major >= OLDEST) return 1;
  snprintf(why, n_why, "NVRTC is of CUDA %d.%d; %d.0 or later is needed", out->major, out->minor, OLDEST);
  return 0;
}

static char *of_program(void *program, int (*size)(void *, size_t *), int (*get)(void *, char *), size_t *n_out) {
  char *data = NULL;
  if (size(program, n_out) != 0 || !(data = calloc(1, *n_out + 1))) return NULL;
  get(program, data);
  return data;
}

enum { N_OPTIONS = 2, OPTION_SIZE = 40 };

static void write_options(int arch, char out[N_OPTIONS][OPTION_SIZE]) {
  snprintf(out[0], OPTION_SIZE, "--gpu-architecture=sm_%d", arch);
  snprintf(out[1], OPTION_SIZE, "--std=c++17");
}

/* Releases of one version differ in their files. */
uint64_t nv_nvrtc_identity(const nv_nvrtc_t *nvrtc, int arch) {
  char options[N_OPTIONS][OPTION_SIZE] = {{0}};
  const int version[] = {nvrtc->major, nvrtc->minor};
  const void *function = NULL;
  Dl_info library;
  struct stat file;
  write_options(arch, options);
  uint64_t hash = XXH3_64bits_withSeed(options, sizeof options, XXH3_64bits(version, sizeof version));
  memcpy(&function, &nvrtc->compile, sizeof function);
  if (dladdr(function, &library) && stat(library.dli_fname, &file) == 0) {
    const int64_t of_file[] = {file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
    hash = XXH3_64bits_withSeed(of_file, sizeof of_file, hash);
  }
  return hash;
}

int nv_nvrtc_compile(const nv_nvrtc_t *nvrtc, const char *text, const char *name, int arch, char **out, size_t *n_out) {
  char options[N_OPTIONS][OPTION_SIZE];
  const char *pointers[N_OPTIONS];
  void *program = NULL;
  *out = NULL;
  write_options(arch, options);
  for (int k = 0; k < N_OPTIONS; k++) pointers[k] = options[k];
  if (nvrtc->create(&program, text, name, 0, NULL, NULL) != 0) return 0;
  const int is_done = nvrtc->compile(program, N_OPTIONS, pointers) == 0;
  *out = is_done ? of_program(program, nvrtc->cubin_size, nvrtc->cubin, n_out)
                 : of_program(program, nvrtc->log_size, nvrtc->log, n_out);
  nvrtc->destroy(&program);
  return is_done && *out;
}
