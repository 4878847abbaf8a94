/* Nodes with effects, as functionalize leaves them: with_effects(token, op, ..). They are differentiated as the
 * operator that they hold (ag_look_through); a gradient never runs an effect again. */
#ifndef AG_EFFECT_NODES_H
#define AG_EFFECT_NODES_H

#include "joint.h"

/* Erases the effects of a region that was made to compute gradients, those of regions that it runs again, too. One
 * whose results are read cannot go: it is refused. */
aot_status_t ag_drop_effects(ag_joint_t *j);

#endif
