/* Exit statuses of the command, and the status of a call that a plugin failed. */
#ifndef AOTH_EXIT_STATUS_H
#define AOTH_EXIT_STATUS_H

#include <aot/status.h>

/* A stage or another plugin call failed; it is reported, and the program is as before the stage. */
#define AOTH_E_PLUGIN (-3)

#define AOTH_EXIT_OK 0
#define AOTH_EXIT_DIFFERS 1       /* the check or comparison failed */
#define AOTH_EXIT_INPUT 2         /* bad usage or input */
#define AOTH_EXIT_PLUGIN 3        /* a plugin failed */
#define AOTH_EXIT_INTERRUPTED 130 /* 128 + SIGINT, as a shell has it */

int aoth_exit_code(aot_status_t status); /* 0, 2 or 3 */

#endif
