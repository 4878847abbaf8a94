#include "policy.h"

#include "kit/base/glob.h"
#include "tags.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST (AOT_NODE_MUST_SAVE | AOT_NODE_MUST_RECOMPUTE)
#define PREFER (AOT_NODE_PREFER_SAVE | AOT_NODE_PREFER_RECOMPUTE)
#define NEVER_TWICE (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE)

/* ---- reading rules ---- */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static int ends_rule(char c) { return c == ';' || c == '\n'; }

static aot_str_t trim(aot_str_t s) {
  while (s.size && is_blank(s.data[0])) s = (aot_str_t){s.data + 1, s.size - 1};
  while (s.size && is_blank(s.data[s.size - 1])) s.size--;
  return s;
}

/* Takes the first word off *rest; empty: there is none. */
static aot_str_t next_word(aot_str_t *rest) {
  aot_str_t word = trim(*rest);
  uint64_t n = 0;
  while (n < word.size && !is_blank(word.data[n])) n++;
  *rest = n ? (aot_str_t){word.data + n, word.size - n}
            : word; /* the text of none is NULL, which nothing may be added to */
  word.size = n;
  return word;
}

static int find_word(const aot_str_t *words, int n, aot_str_t word) {
  for (int i = 0; i < n; i++)
    if (aot_str_eq(words[i], word)) return i;
  return -1;
}

/* NULL, or what is wrong. */
static const char *read_rule(aot_str_t text, pt_rule_t *out) {
  static const aot_str_t actions[] = {AOT_STR_INIT("save"), AOT_STR_INIT("recompute")};
  static const aot_str_t selectors[] = {AOT_STR_INIT("op"), AOT_STR_INIT("module"), AOT_STR_INIT("region")};
  aot_str_t rest = text;
  const int action = find_word(actions, 2, next_word(&rest)), selector = find_word(selectors, 3, next_word(&rest));
  *out = (pt_rule_t){.recompute = action == 1, .selector = selector, .pattern = next_word(&rest), .text = text};
  const aot_str_t last = next_word(&rest);
  out->allow_heavy = aot_str_eq(last, aot_str("allow-heavy"));
  if (action < 0) return "a rule begins with save or recompute";
  if (selector < 0) return "after save or recompute comes op, module or region";
  if (out->pattern.size == 0) return "a pattern is missing";
  if (last.size && !out->allow_heavy) return "after the pattern only allow-heavy may follow";
  if (out->allow_heavy && !out->recompute) return "allow-heavy belongs to recompute";
  return next_word(&rest).size ? "after allow-heavy the rule ends" : NULL;
}

int pt_policy_parse(aot_str_t text, pt_policy_t *out, char *out_error) {
  uint32_t capacity = 1;
  for (uint64_t i = 0; i < text.size; i++) capacity += (uint32_t)ends_rule(text.data[i]);
  *out = (pt_policy_t){.rules = calloc(capacity, sizeof *out->rules)};
  if (!out->rules) return -2;
  for (uint64_t i = 0, begin = 0; i <= text.size; i++) {
    if (i < text.size && !ends_rule(text.data[i])) continue;
    const aot_str_t rule = trim((aot_str_t){text.data + begin, i - begin});
    begin = i + 1;
    if (rule.size == 0) continue;
    const char *what = read_rule(rule, &out->rules[out->n_rules++]);
    if (!what) continue;
    snprintf(out_error, PT_POLICY_ERROR, "rule %u, \"%.*s\": %s", out->n_rules, (int)(rule.size < 80 ? rule.size : 80),
             rule.data, what);
    pt_policy_deinit(out);
    return -1;
  }
  return 0;
}

void pt_policy_deinit(pt_policy_t *p) {
  free(p->rules);
  *p = (pt_policy_t){0};
}

/* ---- matching ---- */

/* The first part up to a dot, and the rest after it. */
static aot_str_t next_part(aot_str_t *rest) {
  uint64_t n = 0;
  while (n < rest->size && rest->data[n] != '.') n++;
  const aot_str_t part = {rest->data, n};
  const uint64_t skip = n < rest->size ? n + 1 : n;
  *rest = (aot_str_t){rest->data + skip, rest->size - skip};
  return part;
}

/* Bytes of the path that the pattern matches, part by part; 0: it does not. */
static uint64_t match_module(aot_str_t pattern, aot_str_t path) {
  aot_str_t rest = path, part = {path.data, 0};
  while (pattern.size) {
    if (rest.size == 0) return 0;
    part = next_part(&rest);
    if (!kit_glob(next_part(&pattern), part)) return 0;
  }
  return (uint64_t)(part.data - path.data) + part.size;
}

static int match_op(aot_str_t pattern, aot_str_t name) {
  uint64_t packet = name.size;
  while (packet > 0 && name.data[packet - 1] != '.') packet--;
  return kit_glob(pattern, name) || (packet > 1 && kit_glob(pattern, (aot_str_t){name.data, packet - 1}));
}

static int match_region(aot_str_t pattern, aot_str_t name, uint32_t tag) {
  char number[16];
  if (name.size && kit_glob(pattern, name)) return 1;
  snprintf(number, sizeof number, "%u", tag);
  return tag && kit_glob(pattern, aot_str(number));
}

/* Does the rule match node n? *out_module: of a module rule, the module so matched. */
static int matches(const pt_rule_t *r, const pt_facts_t *f, const jg_joint_t *j, uint32_t n, aot_str_t *out_module) {
  *out_module = (aot_str_t){NULL, 0};
  if (r->selector == PT_BY_OP) return match_op(r->pattern, j->op_name[n]);
  if (r->selector == PT_BY_REGION) return match_region(r->pattern, f->region[n], f->tag[n]);
  *out_module = (aot_str_t){f->module[n].data, match_module(r->pattern, f->module[n])};
  return out_module->size > 0;
}

/* What stands above the rule, or is not for it. */
static int passes_over(const pt_rule_t *r, const jg_joint_t *j, uint32_t n) {
  if (j->node_flags[n] & MUST) return 1;
  if ((j->node_flags[n] & PREFER) && r->selector != PT_BY_REGION) return 1;
  if (!r->recompute) return 0;
  return (j->op_flags[n] & NEVER_TWICE) || (!r->allow_heavy && (j->op_flags[n] & (AOT_OP_HEAVY | AOT_OP_REGION)));
}

/* By node: the module of the "recompute module" rule that took it. */
static void take_node(const pt_policy_t *p, const pt_facts_t *f, jg_joint_t *j, uint32_t n, aot_str_t *module,
                      uint32_t *matched) {
  for (uint32_t i = 0; i < p->n_rules; i++) {
    const pt_rule_t *r = &p->rules[i];
    aot_str_t found;
    if (passes_over(r, j, n) || !matches(r, f, j, n, &found)) continue;
    j->node_flags[n] &= ~(uint32_t)PREFER;
    j->node_flags[n] |= r->recompute ? AOT_NODE_MUST_RECOMPUTE : AOT_NODE_MUST_SAVE;
    if (r->recompute) module[n] = found;
    matched[i]++;
    return;
  }
}

/* A value that one checkpointed module hands to another is saved, or both would run again at once. */
static void save_boundaries(jg_joint_t *j, const aot_str_t *module) {
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    int crosses = 0;
    for (uint32_t k = j->user_begin[j->result_begin[n]]; module[n].size && k < j->user_begin[j->result_begin[n + 1]];
         k++) {
      const uint32_t u = j->users[k];
      crosses |= !j->late[u] && module[u].size && !aot_str_eq(module[u], module[n]);
    }
    if (crosses) j->node_flags[n] = (j->node_flags[n] & ~(uint32_t)AOT_NODE_MUST_RECOMPUTE) | AOT_NODE_MUST_SAVE;
  }
}

int pt_policy_apply(const pt_policy_t *p, const pt_facts_t *facts, jg_joint_t *j, uint32_t *out_matched) {
  aot_str_t *module = calloc((size_t)j->n_nodes + 1, sizeof *module);
  if (!module) return -2;
  memset(out_matched, 0, p->n_rules * sizeof *out_matched);
  for (uint32_t n = 0; n < j->n_nodes; n++)
    if (!j->late[n]) take_node(p, facts, j, n, module, out_matched);
  save_boundaries(j, module);
  free(module);
  return 0;
}
