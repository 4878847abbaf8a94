/* What a backend was informed of how values is laid out. */
#ifndef AOTH_KNOWN_ENCODINGS_H
#define AOTH_KNOWN_ENCODINGS_H

#include <sandbox/session.h>

/* AOT_OK: the backend knows every memory space and encoding of the program; else reported, with nodes and inputs. */
aot_status_t aoth_stage_knows_encodings(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend);

#endif
