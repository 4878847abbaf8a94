#include <train/interrupt.h>

#include <signal.h>
#include <stddef.h>

/* A signal handler can reach nothing but a static; it is the only one of the run time. */
static volatile sig_atomic_t asked;

/* The second Ctrl-C acts as if we were not here. A terminal that goes away may tell so twice, and the shell once
 * more. */
static struct noted {
  int signal, flags, stays_ignored; /* as nohup leaves it */
  struct sigaction before;
} noted[] = {{.signal = SIGINT, .flags = (int)SA_RESETHAND},
             {.signal = SIGTERM, .flags = (int)SA_RESETHAND},
             {.signal = SIGHUP, .stays_ignored = 1}};
#define N_NOTED (sizeof noted / sizeof *noted)

static void note(int signal_number) {
  (void)signal_number;
  asked = 1;
}

void aoth_interrupt_begin(void) {
  asked = 0;
  for (size_t i = 0; i < N_NOTED; i++) {
    struct sigaction a = {.sa_handler = note, .sa_flags = noted[i].flags};
    sigemptyset(&a.sa_mask);
    sigaction(noted[i].signal, &a, &noted[i].before);
    if (noted[i].stays_ignored && noted[i].before.sa_handler == SIG_IGN)
      sigaction(noted[i].signal, &noted[i].before, NULL);
  }
}

int aoth_interrupt_asked(void) { return asked != 0; }

void aoth_interrupt_end(void) {
  for (size_t i = 0; i < N_NOTED; i++) sigaction(noted[i].signal, &noted[i].before, NULL);
}
