/* Can what a stage did be done again? */
#ifndef AOTH_REPLAY_CHECK_H
#define AOTH_REPLAY_CHECK_H

#include <sandbox/session.h>

/* With config.check_replay: the edits of the open journal are removed of the program, written and read as those of a
 * worker are, made again and compared, text and ids. They are in the journal as before. Else nothing. */
aot_status_t aoth_stage_check_replay(aoth_session_t *s, const aoth_stage_t *stage);

#endif
