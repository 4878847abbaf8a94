/* Rules of importers: files that are none of theirs, and files of theirs that are damaged. */
#define _GNU_SOURCE /* memfd_create */
#include <sdk/conform/conform_trial.h>

#include <base/file.h>
#include <sandbox/call.h>
#include <stdlib.h>
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

/* ---- 902 ---- */

#define N_CUTS 48u
#define N_ENDS 64u /* bytes missing at its end */
#define N_FLIPS 96u
#define N_MADE 48u /* runs of digits, each made two other numbers */
#define NINES "999999999"

/* The whole file, then cut shorter and shorter, then with a byte that is another, then with a number that is another.
 * 0: there is no such trial. bytes: with room for NINES. */
static int damage(aoth_trial_t *t, char *bytes, size_t *n, uint32_t number) {
  if (number == 0) return aoth_trial_about(t, "the file as it is"), 1;
  if (!*n) return 0;
  if (number <= N_CUTS) {
    *n = *n * (N_CUTS - number) / N_CUTS;
    return aoth_trial_about(t, "the first %zu bytes of it", *n), 1;
  }
  number -= N_CUTS + 1;
  if (number < N_ENDS) {
    *n -= number + 1 < *n ? number + 1 : *n;
    return aoth_trial_about(t, "all of it but the last %u bytes", number + 1), 1;
  }
  number -= N_ENDS;
  if (number < N_FLIPS) {
    static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x20};
    const size_t at = (size_t)((uint64_t)number * *n / N_FLIPS);
    bytes[at] = (char)((unsigned char)bytes[at] ^ changes[number % 4]);
    return aoth_trial_about(t, "byte %zu of it changed by 0x%02x", at, changes[number % 4]), 1;
  }
  number -= N_FLIPS;
  for (size_t at = 0, k = 0; number < N_MADE && at < *n; at++) {
    const int begins = bytes[at] >= '0' && bytes[at] <= '9' && (!at || bytes[at - 1] < '0' || bytes[at - 1] > '9');
    if (!begins || k++ != number / 2) continue;
    const size_t n_nines = number % 2 ? strlen(NINES) : 6; /* within a bound of a million */
    size_t end = at;
    while (end < *n && bytes[end] >= '0' && bytes[end] <= '9') end++;
    memmove(bytes + at + n_nines, bytes + end, *n - end);
    memcpy(bytes + at, NINES, n_nines);
    *n = *n + n_nines - (end - at);
    return aoth_trial_about(t, "the number at byte %zu of it made %.*s", at, (int)n_nines, NINES), 1;
  }
  return 0;
}

static aot_status_t import_bytes(aoth_trial_t *t, const char *bytes, size_t n) {
  char path[64];
  const int fd = memfd_create("model", MFD_CLOEXEC);
  for (size_t at = 0; fd >= 0 && at < n;) {
    const ssize_t k = write(fd, bytes + at, n - at);
    if (k <= 0) break;
    at += (size_t)k;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  t->s->outcome = AOTH_CALL_OK;
  return aoth_session_import(t->s, t->stage->unit->id, NULL, path, NULL);
}

void aoth_rule_damaged_files(aoth_trial_t *t) {
  const aoth_conform_texts_t *own = &t->c->line->programs;
  aoth_map_t map;
  if (!own->n) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT,
                   "no file of its own is known: --program F gives one");
    return;
  }
  if (aoth_file_map(own->items[0], t->s->config.sink, &map) != AOT_OK) {
    aoth_trial_end(t, AOTH_CONFORM_NOT, "%s cannot be read", own->items[0]);
    return;
  }
  size_t n = (size_t)map.nbytes;
  char *bytes = malloc(n + sizeof NINES);
  if (bytes && n) memcpy(bytes, map.data, n);
  aoth_file_unmap(&map);
  if (!bytes || !damage(t, bytes, &n, t->number)) {
    aoth_trial_none(t);
    return;
  }
  const aot_status_t status = import_bytes(t, bytes, n);
  if (!aoth_trial_judge(t, status) && t->end == AOTH_CONFORM_REFUSED && t->number) t->end = AOTH_CONFORM_PASSED;
  else if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_FAILED; /* it is whole */
  free(bytes);
}
