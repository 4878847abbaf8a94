/* aothost replay: a bundle (cli/base/bundle.h) again: its stages over its program, and where a run had failed, the call
 * on what it was given. */
#ifndef AOTH_REPLAY_BUNDLE_H
#define AOTH_REPLAY_BUNDLE_H

#include <cli/base/cli.h>

#define AOTH_BUNDLE_CALL "call.safetensors" /* in a bundle of a run that failed */

/* Status of what fails, reported; AOT_OK: nothing does. The variables that units had read are set as they were then;
 * the session is made here. */
aot_status_t aoth_replay(aoth_cli_t *cli, const char *bundle);

#endif
