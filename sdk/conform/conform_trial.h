/* One trial of a rule, in its child. */
#ifndef AOTH_CONFORM_TRIAL_H
#define AOTH_CONFORM_TRIAL_H

#include <sdk/conform/conform.h>

typedef struct aoth_trial {
  aoth_conform_t *c;
  aoth_session_t *s;
  const aoth_stage_t *stage; /* the unit, options typed; NULL: the plugin is not open yet */
  uint32_t number;           /* from 0 */
  uint32_t wants;            /* properties that its program is to have in addition to those that the unit needs */
  uint32_t n_refused_ranks;  /* of the unit's trials so far: the least number of ranks that have not joined; 0: none */
  /* what comes of it */
  int end;         /* AOTH_CONFORM_*; REFUSED, NOT: why */
  char about[200]; /* what was tried: "allocation 17 of create fails" */
  char why[600];
} aoth_trial_t;

typedef struct aoth_rule {
  uint32_t number, base;            /* base: number of the rule that it builds on, 0: none */
  const char *name, *kinds, *about; /* kinds "": all */
  void (*run)(aoth_trial_t *t);
} aoth_rule_t;

/* Kinds of units that work on programs. */
#define STAGES "pass/1 partition/1 backend/2"
#define RULE(number, name, kinds, base, about) void aoth_rule_##name(aoth_trial_t *t);
#include <sdk/conform/conform_rules.def>
#undef RULE

void aoth_trial_about(aoth_trial_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void aoth_trial_end(aoth_trial_t *t, int end, const char *format, ...) __attribute__((format(printf, 3, 4)));

void aoth_trial_none(aoth_trial_t *t);    /* there is no trial of this number */
int aoth_trial_is_first(aoth_trial_t *t); /* of a rule with one trial: 0, and none, for the others */

/* The session's program becomes this one, with the properties that the unit needs, by stages that are trusted. 0: the
 * trial has ended; there is no such program, NOT. */
int aoth_trial_program(aoth_trial_t *t, const aoth_conform_program_t *p);
aot_status_t aoth_trial_text(aoth_trial_t *t, const char *text,
                             size_t size); /* the session's program becomes this text */
/* The program of that number, from 0, of the class; NULL: none. class NULL: all but large and joint. Classes in which
 * the unit has failed are left out. */
const aoth_conform_program_t *aoth_trial_nth(const aoth_trial_t *t, const char *class, uint32_t number);
/* The device of the unit's own plugin. 0: it has none. */
int aoth_trial_own_device(aoth_trial_t *t, aoth_stage_t *out);
/* The same, else the project's that shows each access outside of a queue's work. 0: there is none, and the trial has
 * ended. */
int aoth_trial_device(aoth_trial_t *t, aoth_stage_t *out);
/* The program of that name; NULL: none. */
const aoth_conform_program_t *aoth_trial_named(const aoth_trial_t *t, const char *name);
/* Which call of many fails in trial `number`: all of the first ones, then ever fewer. O(sqrt) trials for all calls. */
uint64_t aoth_trial_spaced(uint32_t number);
/* Runs the unit over the program, with all the host's checks. 1: it is done, and committed; 0: the trial has ended,
 * REFUSED or FAILED. */
int aoth_trial_run(aoth_trial_t *t);
/* How a call into the unit that answered `status` ended: as above. */
int aoth_trial_judge(aoth_trial_t *t, aot_status_t status);
/* The first complaint since the child began; "" none. */
void aoth_trial_complaint(const aoth_trial_t *t, char *out, size_t size);
/* A context to call a unit with, of one thread: from here on nothing has been reported. Its arena, NULL at first, and
 * what was heard so far go with the trial's process. */
void aoth_trial_hear(const aoth_trial_t *t, kit_arena_t **arena, aot_ctx_t *out);

/* What `act` does, in odd surroundings; conform_unit.c. */
void aoth_trial_with_options(aoth_trial_t *t, void (*act)(aoth_trial_t *t));
void aoth_trial_without_extension(aoth_trial_t *t, void (*act)(aoth_trial_t *t));
void aoth_trial_keeps_surroundings(aoth_trial_t *t, void (*act)(aoth_trial_t *t));
/* `act` a thousand times, fewer of what is dear: no memory of malloc's, descriptor or thread may stay after. It
 * answers 0 when the trial has ended. */
void aoth_trial_leaves_nothing(aoth_trial_t *t, int (*act)(aoth_trial_t *t, void *self), void *self);

#endif
