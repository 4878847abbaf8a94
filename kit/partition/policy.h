/* Policies: rules that say which forward nodes to save and which to compute again, next to the model's own checkpoint
 * tags.
 *
 *   save op aten.mm; recompute module transformer.h.*; save region attn; recompute op aten.mm allow-heavy
 *
 * rule = ("save" | "recompute") ("op" | "module" | "region") PATTERN ["allow-heavy"]. Rules are parted by ";" or line
 * ends; of the rules that match a node the first counts. * and ? represent any characters, in a module's path within
 * one part.
 *   op      full name; a pattern without overload ("aten.mm") matches all overloads
 *   module  the path of the module that a node comes from, or of one around it: transformer.h.* matches what is in
 *           transformer.h.0.attn.
 *           Of "recompute", each module so matched is a checkpoint: what it hands to another one is saved
 *   region  number of a checkpoint region of the model, or name of a repeated region that is left whole
 *
 * "recompute" passes over matrix products, convolutions, attention and calls of regions, unless the rule ends in
 * allow-heavy; and always over random draws, effects and collectives. The model's must-save and must-recompute stand
 * above every rule, its prefer tags above all but region rules. */
#ifndef PT_POLICY_H
#define PT_POLICY_H

#include "kit/graph/joint_arrays.h"

#define PT_BY_OP 0
#define PT_BY_MODULE 1
#define PT_BY_REGION 2

typedef struct pt_rule {
  int32_t selector; /* PT_BY_* */
  uint8_t recompute, allow_heavy;
  aot_str_t pattern, text; /* parts of the text that was parsed */
} pt_rule_t;

typedef struct pt_policy {
  uint32_t n_rules;
  pt_rule_t *rules;
} pt_policy_t;

#define PT_POLICY_ERROR 200

/* text must outlive *out. 0; -1: a rule is malformed, out_error (PT_POLICY_ERROR bytes) says which and how; -2: no
 * memory. */
int pt_policy_parse(aot_str_t text, pt_policy_t *out, char *out_error);
void pt_policy_deinit(pt_policy_t *p);

/* Where nodes come from, by node. */
typedef struct pt_facts {
  aot_str_t *module; /* path, empty: unknown */
  aot_str_t *region; /* name of the repeated region that the node calls, empty: none */
  uint32_t *tag;     /* checkpoint region, 0: none */
} pt_facts_t;

/* Sets must-save and must-recompute in j->node_flags. out_matched, by rule: nodes that it was the first to match. 0 or
 * -2. O(nodes x rules + operands). */
int pt_policy_apply(const pt_policy_t *p, const pt_facts_t *facts, jg_joint_t *j, uint32_t *out_matched);

#endif
