#include <trainer/interrupt.h>

#include <trainer/supervisor.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* A signal handler can reach nothing but a static; it is the only one of the run time. Ranks that are threads have one
 * each, which end in any order: who begins, ends or asks holds the lock, and the handler does not. */
static aoth_interrupt_t *volatile innermost;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The second Ctrl-C acts as if we were not here. A terminal that goes away may report so twice, and the shell once
 * more. */
static const struct noted {
  int signal, flags;
  int stays_ignored; /* as nohup leaves it */
  int only_by_look;  /* it ends work that is reported at once: a unit that never asks would stay alive */
} noted[AOTH_N_INTERRUPTS] = {{.signal = SIGINT, .flags = (int)SA_RESETHAND},
                              {.signal = SIGTERM, .flags = (int)SA_RESETHAND, .only_by_look = 1},
                              {.signal = SIGHUP, .stays_ignored = 1, .only_by_look = 1}};

static void act_as_before(const aoth_interrupt_t *i, int signal_number) {
  for (size_t k = 0; k < AOTH_N_INTERRUPTS; k++)
    if (noted[k].signal == signal_number) sigaction(signal_number, &i->before[k], NULL);
  raise(signal_number); /* comes when the handler returns */
}

static void note(int signal_number) {
  aoth_interrupt_t *i = innermost;
  aoth_supervised_signal();
  i->asked = 1;
  if (i->ask && !i->ask(i->self)) act_as_before(i, signal_number); /* nothing, where a shell has it ignored */
}

void aoth_interrupt_begin(aoth_interrupt_t *i) {
  pthread_mutex_lock(&lock);
  i->asked = 0;
  i->outer = innermost;
  innermost = i;
  for (size_t k = 0; k < AOTH_N_INTERRUPTS; k++) {
    const int is_told = i->ask != NULL; /* plugins at work: their system calls continue */
    struct sigaction a = {.sa_handler = note, .sa_flags = noted[k].flags | (is_told ? SA_RESTART : 0)};
    sigemptyset(&a.sa_mask);
    sigaction(noted[k].signal, NULL, &i->before[k]);
    if (noted[k].stays_ignored && i->before[k].sa_handler == SIG_IGN) continue;
    if (!is_told || !noted[k].only_by_look) sigaction(noted[k].signal, &a, NULL);
  }
  pthread_mutex_unlock(&lock);
}

int aoth_interrupt_asked(void) {
  pthread_mutex_lock(&lock);
  const aoth_interrupt_t *i = innermost;
  const int asked = i && i->asked;
  pthread_mutex_unlock(&lock);
  return asked;
}

void aoth_interrupt_end(aoth_interrupt_t *i) {
  pthread_mutex_lock(&lock);
  if (innermost == i) {
    for (size_t k = 0; k < AOTH_N_INTERRUPTS; k++) sigaction(noted[k].signal, &i->before[k], NULL);
    innermost = i->outer;
  } else { /* one that began later, in another thread, brings back what was before this one */
    aoth_interrupt_t *later = innermost;
    while (later->outer != i) later = later->outer;
    memcpy(later->before, i->before, sizeof later->before);
    later->outer = i->outer;
  }
  pthread_mutex_unlock(&lock);
}
