/* Files: mapped for reading; written under a temporary name and renamed, so that a reader never sees half a file.
 *
 * A path of the user's that names something other than a regular file (/dev/stdout, a pipe) is written in place:
 * renaming over it would replace the device. A symbolic link is followed, so that the link survives. A name that the
 * program chooses itself (a cache entry, a dump) is always replaced: whatever has that name may be another's trap. */
#include <base/file.h>
#include "kit/base/temporary.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)64 << 10)

static aot_status_t status_of(int error) {
  switch (error) {
    case ENOENT: return AOT_E_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM: return AOT_E_EXHAUSTED;
    default: return AOT_E_INVALID;
  }
}

static aot_status_t complain(aoth_sink_t *sink, const char *code, const char *verb, const char *path, int error) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, code, "cannot %s %s: %s", verb, path, strerror(error));
  return status_of(error);
}

/* ---- mapped ---- */

static aot_status_t map_file(const char *path, unsigned how, aoth_sink_t *sink, aoth_map_t *out) {
  aot_status_t status = AOT_OK;
  struct stat st;
  const char *why;
  out->data = "";
  out->nbytes = 0;
  const int fd = kit_file_open(path, how, &st, &why);
  if (fd < 0) {
    status = status_of(errno);
    const char *verb = errno == EINVAL ? "read" : "open"; /* it is there, and not a file to read */
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "file.open", "cannot %s %s: %s", verb, path, why);
    return status;
  }
  if (st.st_size > 0) {
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      status = complain(sink, "file.map", "map", path, errno);
    } else {
      out->data = data;
      out->nbytes = (uint64_t)st.st_size;
    }
  }
  close(fd);
  return status;
}

aot_status_t aoth_file_map(const char *path, aoth_sink_t *sink, aoth_map_t *out) {
  return map_file(path, 0, sink, out);
}

aot_status_t aoth_file_map_own(const char *path, aoth_sink_t *sink, aoth_map_t *out) {
  return map_file(path, KIT_OPEN_OWN, sink, out);
}

/* The length is that of whole pages, as the kernel unmaps them: ThreadSanitizer forgets only the pages that munmap
 * names whole, and would report a library that dlopen maps there later as a race with this file's mmap. */
void aoth_file_unmap(aoth_map_t *m) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (m->nbytes) munmap((void *)(uintptr_t)m->data, ((size_t)m->nbytes + page - 1) / page * page);
  m->data = "";
  m->nbytes = 0;
}

/* ---- writing ---- */

struct aoth_writer {
  char *path, *temporary; /* temporary NULL: written in place */
  aoth_sink_t *sink;
  int fd, error; /* error: the first errno */
  const char *failed_verb;
  size_t used;
  char buffer[];
};

static void writer_free(aoth_writer_t *w) {
  free(w->path);
  free(w->temporary);
  free(w);
}

/* The name that the bytes end up under: path, or what the link at path points to. */
static char *final_name(const char *path) {
  struct stat st;
  char *resolved = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;
  return resolved ? resolved : strdup(path);
}

/* A device or a pipe. A named pipe that no process reads is refused instead of waited for. */
static int open_in_place(const char *path) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || fcntl(fd, F_SETFL, 0) == 0) return fd;
  close(fd);
  return -1;
}

static const char *why_not_opened(const aoth_writer_t *w, int error) {
  struct stat st;
  if (error == ENXIO && stat(w->path, &st) == 0 && S_ISFIFO(st.st_mode))
    return "it is a named pipe that no process reads";
  return strerror(error);
}

static aoth_writer_t *begin(const char *path, int is_own, aoth_sink_t *sink) {
  struct stat st;
  aoth_writer_t *w = calloc(1, sizeof *w + BUFFER_SIZE);
  if (!w || !(w->path = is_own ? strdup(path) : final_name(path))) {
    complain(sink, "file.write", "write", path, ENOMEM);
    free(w);
    return NULL;
  }
  w->sink = sink;
  const int in_place = !is_own && stat(w->path, &st) == 0 && !S_ISREG(st.st_mode);
  w->fd = in_place ? open_in_place(w->path) : kit_temporary_open(w->path, &w->temporary);
  if (w->fd < 0) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "file.write", "cannot write %s: %s", path,
                     why_not_opened(w, errno));
    writer_free(w);
    return NULL;
  }
  return w;
}

aoth_writer_t *aoth_writer_begin(const char *path, aoth_sink_t *sink) { return begin(path, 0, sink); }
aoth_writer_t *aoth_writer_begin_own(const char *path, aoth_sink_t *sink) { return begin(path, 1, sink); }

static void fail(aoth_writer_t *w, const char *verb) {
  if (w->error) return;
  w->error = errno ? errno : EIO;
  w->failed_verb = verb;
}

static void write_all(aoth_writer_t *w, const char *data, size_t n) {
  while (n && !w->error) {
    ssize_t done = write(w->fd, data, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      fail(w, "write");
      return;
    }
    data += done;
    n -= (size_t)done;
  }
}

static void flush(aoth_writer_t *w) {
  write_all(w, w->buffer, w->used);
  w->used = 0;
}

void aoth_writer_write(aoth_writer_t *w, const void *data, size_t n) {
  if (w->error || n == 0) return;
  if (n > BUFFER_SIZE - w->used) flush(w);
  if (n >= BUFFER_SIZE) {
    write_all(w, data, n);
    return;
  }
  memcpy(w->buffer + w->used, data, n);
  w->used += n;
}

aot_status_t aoth_writer_commit(aoth_writer_t *w) {
  aot_status_t status = AOT_OK;
  flush(w);
  if (w->temporary && !w->error && fsync(w->fd) != 0) fail(w, "write");
  /* renamed or removed before it is closed: until then nothing takes it for a dead writer's */
  if (w->temporary && !w->error && rename(w->temporary, w->path) != 0) fail(w, "replace");
  if (w->temporary && w->error) unlink(w->temporary);
  if (close(w->fd) != 0) fail(w, "write");
  if (w->error) status = complain(w->sink, "file.write", w->failed_verb, w->path, w->error);
  writer_free(w);
  return status;
}

void aoth_writer_abort(aoth_writer_t *w) {
  if (!w) return;
  if (w->temporary) unlink(w->temporary);
  close(w->fd);
  writer_free(w);
}
