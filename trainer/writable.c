#include <trainer/writable.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

aot_status_t aoth_check_writable(const char *path, const char *what, const aoth_where_t *where, aoth_sink_t *sink) {
  const char *slash = path ? strrchr(path, '/') : NULL, *target = path;
  char folder[4096] = ".";
  struct stat st;
  if (!path) return AOT_OK;
  const int exists = stat(path, &st) == 0;
  if (exists && S_ISDIR(st.st_mode)) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, where, "run.unwritable", "%s cannot be written to %s: it is a folder",
                     what, path);
    return AOT_E_INVALID;
  }
  /* a regular file is replaced, so its folder counts; a device is written in place */
  if (!exists || S_ISREG(st.st_mode)) {
    if (slash && (size_t)(slash - path) + 1 < sizeof folder) {
      size_t n = slash == path ? 1 : (size_t)(slash - path);
      memcpy(folder, path, n);
      folder[n] = 0;
    }
    target = folder;
  }
  if (access(target, W_OK) == 0) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, where, "run.unwritable", "%s cannot be written to %s: %s", what, target,
                   strerror(errno));
  return AOT_E_INVALID;
}

aot_status_t aoth_check_regular(const char *path, const char *what, const aoth_where_t *where, aoth_sink_t *sink) {
  struct stat st;
  if (!path || stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, where, "run.unwritable",
                   "%s cannot be written to %s: it is %s, not a regular file", what, path,
                   S_ISFIFO(st.st_mode) ? "a named pipe" : "a device");
  return AOT_E_INVALID;
}
