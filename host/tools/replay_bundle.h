/* aothost replay: a bundle (pipeline/bundle.h) again: its stages over its program, and where a run had failed, the call on
 * what it was given. */
#ifndef AOTH_REPLAY_BUNDLE_H
#define AOTH_REPLAY_BUNDLE_H

#include <tools/cli.h>

#define AOTH_BUNDLE_CALL "call.safetensors" /* in a bundle of a run that failed */

/* The variables that units had read are set as they were then, by info.json. Before the session is made. out_check_stages: a
 * stage may have failed by what its program computes. */
aot_status_t aoth_replay_surroundings(const char *bundle, aoth_sink_t *sink, int *out_check_stages);
/* Status of what fails, told; AOT_OK: nothing does. */
aot_status_t aoth_replay_run(aoth_cli_t *cli, const char *bundle, const aoth_pipeline_t *p);

#endif
