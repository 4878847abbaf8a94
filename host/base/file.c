/* Files: mapped for reading; written beside their name and renamed, so that a reader never sees half a file.
 *
 * A name that stands for something other than a regular file (/dev/stdout, a pipe) is written in place: renaming over
 * it would replace the device. A symbolic link is followed, so that the link survives. */
#include <base/file.h>
#include <base/temporary.h>
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

aot_status_t aoth_file_map(const char *path, aoth_sink_t *sink, aoth_map_t *out) {
  aot_status_t status = AOT_OK;
  struct stat st;
  out->data = "";
  out->nbytes = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hang us */
  if (fd < 0) return complain(sink, "file.open", "open", path, errno);
  if (fstat(fd, &st) != 0) {
    status = complain(sink, "file.open", "examine", path, errno);
  } else if (!S_ISREG(st.st_mode)) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "file.open", "cannot read %s: it is %s, not a regular file", path,
                     S_ISDIR(st.st_mode) ? "a directory" : "a device or a pipe");
    status = AOT_E_INVALID;
  } else if (st.st_size > 0) {
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

void aoth_file_unmap(aoth_map_t *m) {
  if (m->nbytes) munmap((void *)(uintptr_t)m->data, (size_t)m->nbytes);
  m->data = "";
  m->nbytes = 0;
}

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

aoth_writer_t *aoth_writer_begin(const char *path, aoth_sink_t *sink) {
  struct stat st;
  aoth_writer_t *w = calloc(1, sizeof *w + BUFFER_SIZE);
  if (!w || !(w->path = final_name(path))) {
    complain(sink, "file.write", "write", path, ENOMEM);
    free(w);
    return NULL;
  }
  w->sink = sink;
  int in_place = stat(w->path, &st) == 0 && !S_ISREG(st.st_mode);
  w->fd = in_place ? open(w->path, O_WRONLY | O_CLOEXEC) : aoth_temporary_open(w->path, &w->temporary);
  if (w->fd < 0) {
    complain(sink, "file.write", "write", path, errno);
    writer_free(w);
    return NULL;
  }
  return w;
}

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
  /* renamed or removed before it is closed: until then nobody takes it for a dead writer's */
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
