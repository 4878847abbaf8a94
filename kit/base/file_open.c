#include "file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory, not a regular file";
  if (S_ISFIFO(mode)) return "it is a named pipe, not a regular file";
  if (S_ISSOCK(mode)) return "it is a socket, not a regular file";
  if (S_ISLNK(mode)) return "it is a symbolic link, which is not followed here";
  return "it is a device, not a regular file";
}

/* A pipe between processes (`program | aothost check /dev/stdin`, <(program)) ends when its writer does. */
static int is_unnamed_pipe(int fd, const struct stat *st) {
  struct statfs fs;
  return S_ISFIFO(st->st_mode) && fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == PIPEFS_MAGIC;
}

static const char *why_refused(int fd, unsigned how, const struct stat *st) {
  if ((how & KIT_OPEN_PIPE) && is_unnamed_pipe(fd, st)) return fcntl(fd, F_SETFL, 0) == 0 ? NULL : strerror(errno);
  if (!S_ISREG(st->st_mode)) return kind_of(st->st_mode);
  if ((how & KIT_OPEN_OWN) && st->st_uid != geteuid()) return "it is another user's file";
  return NULL;
}

int kit_file_open(const char *path, unsigned how, struct stat *out, const char **out_why) {
  /* O_NONBLOCK: a named pipe without a writer, or a device, would wait for ever */
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | ((how & KIT_OPEN_OWN) ? O_NOFOLLOW : 0));
  if (fd < 0) {
    *out_why = errno == ELOOP && (how & KIT_OPEN_OWN) ? kind_of(S_IFLNK) : strerror(errno);
    return -1;
  }
  *out_why = fstat(fd, out) == 0 ? why_refused(fd, how, out) : strerror(errno);
  if (!*out_why) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

FILE *kit_file_stream(const char *path, const char **out_why) {
  struct stat st;
  const int fd = kit_file_open(path, 0, &st, out_why);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
  if (!f && fd >= 0) {
    *out_why = strerror(errno);
    close(fd);
  }
  return f;
}

/* The folder that has the name `path`; 0: there is none. *out_name is the name in it. */
static int stat_folder(const char *path, struct stat *out, const char **out_name) {
  const char *slash = strrchr(path, '/');
  char *folder = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
  const int found = folder && stat(folder, out) == 0;
  *out_name = slash ? slash + 1 : path;
  free(folder);
  return found;
}

int kit_file_same(const char *a, const char *b) {
  struct stat x, y;
  const char *name_a, *name_b;
  const int a_exists = stat(a, &x) == 0, b_exists = stat(b, &y) == 0;
  if (a_exists != b_exists) return 0;
  if (a_exists && !S_ISREG(x.st_mode) && !S_ISDIR(x.st_mode) && !S_ISBLK(x.st_mode)) return 0; /* /dev/null, /dev/tty */
  if (!a_exists && !(stat_folder(a, &x, &name_a) && stat_folder(b, &y, &name_b) && strcmp(name_a, name_b) == 0))
    return 0;
  return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
