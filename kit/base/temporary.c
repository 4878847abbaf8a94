/* temporary.c - see temporary.h. */
#define _GNU_SOURCE /* gettid */
#include "temporary.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK ".tmp-"
#define MANY 100 /* names that are tried; each that is taken is a living writer's, or not ours to remove */

/* ".tmp-1234" or ".tmp-1234-2" */
static int is_mark(const char *end) {
  if (strncmp(end, MARK, strlen(MARK)) != 0) return 0;
  end += strlen(MARK);
  return *end >= '0' && *end <= '9' && end[strspn(end, "0123456789-")] == '\0';
}

int kit_temporary_remove(int folder, const char *name) {
  const char *end = strrchr(name, '.');
  struct stat st;
  if (!end || !is_mark(end)) return 0;
  const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return 0;
  const int gone = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                   flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(folder, name, 0) == 0;
  close(fd);
  return gone;
}

/* Those of `base` that dead writers left in the folder. O(names in the folder) */
static void sweep(const char *folder, const char *base) {
  const size_t n = strlen(base);
  DIR *dir = opendir(folder);
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
    if (strncmp(d->d_name, base, n) == 0 && is_mark(d->d_name + n)) kit_temporary_remove(dirfd(dir), d->d_name);
  if (dir) closedir(dir);
}

/* A new file under a lock. The lock can be late: another writer's sweep may have come between and removed the file. */
static int open_locked(const char *name) {
  for (;;) {
    struct stat st, named;
    /* O_EXCL: follows no link that something else put there */
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) != 0 || fstat(fd, &st) != 0) return fd;
    if (lstat(name, &named) == 0 && named.st_ino == st.st_ino && named.st_dev == st.st_dev) return fd;
    close(fd);
  }
}

int kit_temporary_open(const char *path, char **out_name) {
  const char *slash = strrchr(path, '/');
  const size_t size = strlen(path) + 48;
  char *name = malloc(size), *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
  int fd = -1;
  if (name && folder) {
    sweep(folder, slash ? slash + 1 : path);
    errno = EEXIST;
  } else {
    errno = ENOMEM;
  }
  for (int k = 1; fd < 0 && errno == EEXIST && k <= MANY; k++) {
    const int n = snprintf(name, size, "%s" MARK "%ld", path, (long)gettid()); /* of the process, in its first thread */
    if (k > 1) snprintf(name + n, size - (size_t)n, "-%d", k);
    fd = open_locked(name);
  }
  const int error = errno;
  free(folder);
  if (fd >= 0) *out_name = name;
  else free(name);
  errno = error;
  return fd;
}
