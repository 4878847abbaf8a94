/* This machine as a target of kit/lowering: the steps that it runs, and what they cost. */
#ifndef KB_TARGET_H
#define KB_TARGET_H

#include "kit/lowering/lower.h"

extern const lw_target_t kb_target;

#endif
