/* A double of NVRTC: libnvrtc.so.13 whose machine code is that of the CPU. The text is compiled as C with
 * kit/cuda in front of it, and generated C's conversions of f16 or bf16; the "cubin" is the library that came of it
 * (double_image.h). */
#include "double_api.h"
#include "double_image.h"
#include "double_shim.h"

#include "kit/loops/loop_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, COMPILATION = 6 };

typedef struct program {
  char *text;
  char path[64]; /* of the library, until it is read */
  double_image_t *image;
  char log[4096];
} program_t;

/* AOT_CUDA_DOUBLE="nvrtc-version=12" */
API int nvrtcVersion(int *out_major, int *out_minor) {
  const char *text = getenv("AOT_CUDA_DOUBLE"), *at = text ? strstr(text, "nvrtc-version=") : NULL;
  *out_major = at ? atoi(at + strlen("nvrtc-version=")) : 13;
  return *out_minor = 0, SUCCESS;
}
API const char *nvrtcGetErrorString(int result) { return result ? "told by NVRTC's double" : "success"; }

API int nvrtcCreateProgram(void **out, const char *text, const char *name, int n_headers, const char *const *headers,
                           const char *const *names) {
  program_t *p = calloc(1, sizeof *p);
  (void)name, (void)n_headers, (void)headers, (void)names;
  if (p) p->text = strdup(text);
  if (p && p->text) return *out = p, SUCCESS;
  return free(p), OUT_OF_MEMORY;
}

static int write_source(const program_t *p, const char *path) {
  lp_text_t halves = {0};
  FILE *f = fopen(path, "w");
  lp_halves_add(&halves);
  const int is_written = f && !halves.failed && fputs(halves.data, f) >= 0 && fputs(p->text, f) >= 0;
  lp_text_deinit(&halves);
  return f && !fclose(f) && is_written;
}

/* From a file: a pipe would stay open in compilers that other threads start meanwhile. */
static int run_compiler(program_t *p, int log) {
  char source[sizeof p->path + 2];
  snprintf(source, sizeof source, "%s.c", p->path);
  if (!write_source(p, source)) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(log, 2);
    execlp("cc", "cc", "-std=gnu11", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w", "-fPIC",
           "-shared", "-Wl,-z,defs", "-include", SHIM, source, "-o", p->path, "-lm", (char *)NULL);
    _exit(127);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0) continue;
  unlink(source);
  return status;
}

static int read_library(program_t *p) {
  FILE *f = fopen(p->path, "rb");
  if (!f) return 0;
  fseek(f, 0, SEEK_END);
  const size_t nbytes = (size_t)ftell(f);
  rewind(f);
  p->image = calloc(1, sizeof *p->image + nbytes);
  if (p->image) {
    memcpy(p->image->magic, DOUBLE_IMAGE_MAGIC, sizeof p->image->magic);
    p->image->nbytes = nbytes;
    if (fread(p->image + 1, 1, nbytes, f) != nbytes) p->image->nbytes = 0;
  }
  fclose(f);
  return p->image != NULL;
}

API int nvrtcCompileProgram(void *program, int n_options, const char *const *options) {
  program_t *p = program;
  (void)n_options, (void)options;
  strcpy(p->path, "/tmp/aot-double-XXXXXX");
  const int fd = mkstemp(p->path);
  FILE *log = tmpfile();
  if (fd < 0 || !log) return OUT_OF_MEMORY;
  close(fd);
  const int status = run_compiler(p, fileno(log));
  rewind(log);
  p->log[fread(p->log, 1, sizeof p->log - 1, log)] = 0;
  fclose(log);
  const int is_read = status == 0 && read_library(p);
  unlink(p->path);
  return is_read ? SUCCESS : status == 0 ? OUT_OF_MEMORY : COMPILATION;
}

API int nvrtcGetCUBINSize(void *program, size_t *out) {
  const program_t *p = program;
  return *out = sizeof *p->image + p->image->nbytes, SUCCESS;
}
API int nvrtcGetCUBIN(void *program, char *out) {
  const program_t *p = program;
  return memcpy(out, p->image, sizeof *p->image + p->image->nbytes), SUCCESS;
}
API int nvrtcGetProgramLogSize(void *program, size_t *out) {
  return *out = strlen(((program_t *)program)->log) + 1, SUCCESS;
}
API int nvrtcGetProgramLog(void *program, char *out) { return strcpy(out, ((program_t *)program)->log), SUCCESS; }
API int nvrtcDestroyProgram(void **program) {
  program_t *p = *program;
  free(p->text);
  free(p->image);
  free(p);
  return *program = NULL, SUCCESS;
}
