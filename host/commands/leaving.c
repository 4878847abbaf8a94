/* A plugin that calls _exit takes the whole command with it, and no handler hears of it. So the command has an _exit of
 * its own, which plugins find before the C library's; exit() is heard of by itself (crash.h). */
#define _GNU_SOURCE /* syscall */
#include <aot/base.h>
#include <pipeline/crash.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

AOT_EXPORT void _exit(int status) {
  aoth_crash_leaving();
  for (;;) syscall(SYS_exit_group, status);
}

AOT_EXPORT void _Exit(int status) { _exit(status); }
