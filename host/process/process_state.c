#include <process/process_state.h>

#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_SIGNAL 64 /* Linux */
#define N_STREAMS 3    /* descriptors 0, 1, 2 */

extern char **environ;

typedef struct stream {
  dev_t device;
  ino_t file;
  int is_open;
} stream_t;

struct aoth_process_state {
  struct sigaction actions[LAST_SIGNAL + 1];
  sigset_t blocked;
  stream_t streams[N_STREAMS];
  char folder[PATH_MAX];
  mode_t mask;
  locale_t of_thread;
  kit_text_t locale, environment;
};

static stream_t look_at_stream(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return (stream_t){.is_open = 0};
  return (stream_t){st.st_dev, st.st_ino, 1};
}

static mode_t look_at_mask(void) {
  const mode_t mask = umask(077);
  umask(mask);
  return mask;
}

static void write_environment(kit_text_t *out) {
  for (char **at = environ; at && *at; at++) {
    kit_text_z(out, *at);
    kit_text_add(out, "", 1);
  }
}

static const char *locale_name(void) {
  const char *name = setlocale(LC_ALL, NULL);
  return name ? name : "";
}

aoth_process_state_t *aoth_process_state_record(void) {
  aoth_process_state_t *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  for (int i = 1; i <= LAST_SIGNAL; i++) sigaction(i, NULL, &s->actions[i]);
  sigprocmask(SIG_SETMASK, NULL, &s->blocked);
  for (int i = 0; i < N_STREAMS; i++) s->streams[i] = look_at_stream(i);
  if (!getcwd(s->folder, sizeof s->folder)) s->folder[0] = 0;
  s->mask = look_at_mask();
  s->of_thread = uselocale((locale_t)0);
  kit_text_z(&s->locale, locale_name());
  write_environment(&s->environment);
  return s;
}

void aoth_process_state_destroy(aoth_process_state_t *s) {
  if (!s) return;
  kit_text_deinit(&s->locale);
  kit_text_deinit(&s->environment);
  free(s);
}

/* ---- each thing: 1: it is not as it was, reported ---- */

static int signals_differ(const aoth_process_state_t *s, kit_text_t *out) {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  for (int i = 1; i <= LAST_SIGNAL; i++) {
    struct sigaction a = {.sa_flags = 0};
    if (sigaction(i, NULL, &a) != 0) continue;
    const int is_same = (a.sa_flags & SA_SIGINFO) == (s->actions[i].sa_flags & SA_SIGINFO) &&
                        (a.sa_flags & SA_SIGINFO ? a.sa_sigaction == s->actions[i].sa_sigaction
                                                 : a.sa_handler == s->actions[i].sa_handler);
    if (!is_same) return kit_text_f(out, "a signal handler of its own behind, of signal %d", i), 1;
    if (sigismember(&blocked, i) != sigismember(&s->blocked, i))
      return kit_text_f(out, "signal %d %s", i, sigismember(&blocked, i) ? "blocked" : "no longer blocked"), 1;
  }
  return 0;
}

static int streams_differ(const aoth_process_state_t *s, kit_text_t *out) {
  static const char *const names[N_STREAMS] = {"input", "output", "error"};
  for (int i = 0; i < N_STREAMS; i++) {
    const stream_t now = look_at_stream(i);
    if (now.is_open == s->streams[i].is_open && now.device == s->streams[i].device && now.file == s->streams[i].file)
      continue;
    kit_text_f(out, "descriptor %d, the standard %s, %s", i, names[i], now.is_open ? "as another file" : "closed");
    return 1;
  }
  return 0;
}

static int folder_differs(const aoth_process_state_t *s, kit_text_t *out) {
  char folder[PATH_MAX];
  if (!getcwd(folder, sizeof folder)) folder[0] = 0;
  if (strcmp(folder, s->folder) == 0) return 0;
  kit_text_f(out, "the process in another folder, %s", folder);
  return 1;
}

static int locale_differs(const aoth_process_state_t *s, kit_text_t *out) {
  const char *name = locale_name();
  if (s->locale.data && strcmp(name, s->locale.data) != 0) return kit_text_f(out, "another locale, %s", name), 1;
  if (uselocale((locale_t)0) != s->of_thread) return kit_text_z(out, "another locale of the thread"), 1;
  return 0;
}

/* The first variable of `there` that does not be in `here` in the same words. */
static const char *only_in(const kit_text_t *there, const kit_text_t *here) {
  const char *end = there->data + there->size, *at = there->data, *k;
  for (; at < end; at += strlen(at) + 1) {
    for (k = here->data; k < here->data + here->size && strcmp(k, at) != 0;) k += strlen(k) + 1;
    if (k >= here->data + here->size) return at;
  }
  return NULL;
}

static int environment_differs(const aoth_process_state_t *s, kit_text_t *out) {
  kit_text_t now = {0};
  write_environment(&now);
  const int differs =
      now.size != s->environment.size || (now.size && memcmp(now.data, s->environment.data, now.size) != 0);
  if (differs) {
    const char *variable = now.data && s->environment.data ? only_in(&now, &s->environment) : NULL;
    if (!variable && now.data && s->environment.data) variable = only_in(&s->environment, &now);
    kit_text_f(out, "another environment: %.*s", variable ? (int)strcspn(variable, "=") : 1, variable ? variable : "?");
  }
  kit_text_deinit(&now);
  return differs;
}

static int modes_differ(const aoth_process_state_t *s, kit_text_t *out) {
  const mode_t mask = look_at_mask();
  if (mask != s->mask) return kit_text_f(out, "another file mode mask, %03o", (unsigned)mask), 1;
  return 0;
}

int aoth_process_state_differs(const aoth_process_state_t *s, kit_text_t *out) {
  return signals_differ(s, out) || streams_differ(s, out) || folder_differs(s, out) || locale_differs(s, out) ||
         environment_differs(s, out) || modes_differ(s, out);
}
