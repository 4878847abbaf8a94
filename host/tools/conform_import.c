/* Rules of importers: files that are none of theirs. */
#define _GNU_SOURCE /* memfd_create */
#include <tools/conform_trial.h>

#include <pipeline/call.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Each repeated until the file is as long as it is to be. */
static const struct {
  const char *name, *bytes;
  size_t n_bytes, size;
} files[] = {
    {"empty", "", 0, 0},
    {"a zero", "", 1, 1},
    {"zeros", "", 1, 4096},
    {"ones", "\xff", 1, 4096},
    {"text", "not a model\n", 12, 1200},
    {"head of a zip archive", "PK\3\4\24\0\0\0\0\0", 10, 64},
    {"end of a zip archive alone", "PK\5\6\0\0\0\0\1\0\1\0\x40\0\0\0\0\0\0\0\0\0", 22, 22},
    {"braces", "{[", 2, 100000},
    {"line without an end", "layer ", 6, 1 << 20},
};
#define N_FILES (sizeof files / sizeof *files)

void aoth_rule_odd_files(aoth_trial_t *t) {
  char path[64];
  if (t->number >= N_FILES) {
    aoth_trial_none(t);
    return;
  }
  const int fd = memfd_create("model", MFD_CLOEXEC);
  for (size_t at = 0; fd >= 0 && at < files[t->number].size; at += files[t->number].n_bytes)
    if (write(fd, files[t->number].bytes, files[t->number].n_bytes) < 0) break;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  aoth_trial_about(t, "a file of %zu bytes: %s", files[t->number].size, files[t->number].name);
  t->s->outcome = AOTH_CALL_OK;
  aoth_trial_judge(t, aoth_session_import(t->s, t->stage->unit->id, NULL, path, NULL));
  if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED; /* that is what it is to do */
}
