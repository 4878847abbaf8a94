#include <runtime/interrupt.h>

#include <signal.h>
#include <string.h>

/* A signal handler can reach nothing but a static; it is the only one of the run time. */
static volatile sig_atomic_t asked;
static struct sigaction old_int, old_term;

static void note(int signal_number) {
  (void)signal_number;
  asked = 1;
}

void aoth_interrupt_begin(void) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = note;
  a.sa_flags = (int)SA_RESETHAND; /* the second one acts as if we were not here */
  sigemptyset(&a.sa_mask);
  asked = 0;
  sigaction(SIGINT, &a, &old_int);
  sigaction(SIGTERM, &a, &old_term);
}

int aoth_interrupt_asked(void) { return asked != 0; }

void aoth_interrupt_end(void) {
  sigaction(SIGINT, &old_int, NULL);
  sigaction(SIGTERM, &old_term, NULL);
}
