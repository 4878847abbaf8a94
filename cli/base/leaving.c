/* A plugin that calls _exit takes the whole command with it, and no handler hears of it. So the command has an _exit of
 * its own, which plugins find before the C library's; exit() is heard of by itself (crash.h). */
#define _GNU_SOURCE /* syscall, RTLD_NEXT */
#include <aot/base.h>
#include <dlfcn.h>
#include <process/crash.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

AOT_EXPORT void _exit(int status) {
  aoth_crash_leaving();
  for (;;) syscall(SYS_exit_group, status);
}

AOT_EXPORT void _Exit(int status) { _exit(status); }

/* The thread that the host calls in is not the plugin's to end; threads of its own are. */
AOT_EXPORT void pthread_exit(void *result) {
  void (*exit_thread)(void *);
  aoth_crash_thread_leaving();
  void *symbol = dlsym(RTLD_NEXT, "pthread_exit");
  memcpy(&exit_thread, &symbol, sizeof exit_thread);
  exit_thread(result);
  for (;;) syscall(SYS_exit, 0);
}
