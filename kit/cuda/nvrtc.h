/* NVRTC, the compiler of CUDA C at run time, opened where it is there. It needs no GPU. */
#ifndef NV_NVRTC_H
#define NV_NVRTC_H

#include <stddef.h>
#include <stdint.h>

typedef struct nv_nvrtc {
  void *handle;
  int major, minor;
  int (*create)(void **program, const char *text, const char *name, int n_headers, const char *const *headers,
                const char *const *names);
  int (*compile)(void *program, int n_options, const char *const *options);
  int (*cubin_size)(void *program, size_t *out);
  int (*cubin)(void *program, char *out);
  int (*log_size)(void *program, size_t *out);
  int (*log)(void *program, char *out);
  int (*destroy)(void **program);
  const char *(*error)(int result);
} nv_nvrtc_t;

/* folder: where it is looked for first; NULL: nowhere. 0: there is none, and `why` says what was tried. */
int nv_nvrtc_open(nv_nvrtc_t *out, const char *folder, char *why, size_t n_why);

/* What the machine code of a text depends on next to it: the library's version and file, the options. */
uint64_t nv_nvrtc_identity(const nv_nvrtc_t *nvrtc, int arch);

/* The machine code of a text for compute capability `arch` (90: sm_90). *out: its bytes, or what the compiler says,
 * terminated; the caller frees it; NULL: no memory. 0: it does not compile. */
int nv_nvrtc_compile(const nv_nvrtc_t *nvrtc, const char *text, const char *name, int arch, char **out, size_t *n_out);

#endif
