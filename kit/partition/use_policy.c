#include "use_policy.h"

#include "apply.h"
#include <aot/diag.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARENTS 16 /* origins that were made from others */

aot_status_t pt_policy_read(const aot_host_t *host, aot_ctx_t *ctx, aot_str_t text, pt_policy_t *out) {
  char error[PT_POLICY_ERROR], message[PT_POLICY_ERROR + 32];
  const int status = pt_policy_parse(text, out, error);
  if (status == -2) return jg_no_memory(host, ctx);
  if (status == 0) return AOT_OK;
  snprintf(message, sizeof message, "option policies, %s", error);
  return jg_fail(host, ctx, AOT_E_INVALID, "partition.bad-policy", message, aot_no_value());
}

/* The module that a node comes from; a node made out of another one comes from where that one does. */
static aot_status_t find_module(const aot_host_t *host, aot_prog_t *prog, aot_origin_t origin, aot_str_t *out) {
  for (int i = 0; i < MAX_PARENTS && origin.id != AOT_NO_ID; i++) {
    aot_origin_info_t info = {.struct_size = sizeof info};
    AOT_TRY(host->graph->origin_info(prog, origin, &info));
    *out = info.module_path;
    if (out->size) return AOT_OK;
    origin = info.parent;
  }
  return AOT_OK;
}

/* "attn" of a call named "attn:fw0". */
static aot_str_t called_region(const aot_node_info_t *info) {
  const aot_arg_t *name = &info->args[1];
  aot_str_t out = {NULL, 0};
  if (info->n_args < 2 || info->args[0].kind != AOT_ARG_GRAPH || name->kind != AOT_ARG_STR) return out;
  out = (aot_str_t){name->u.chars, 0};
  while (out.size < name->n && name->u.chars[out.size] != ':') out.size++;
  return out;
}

static aot_status_t read_facts(const aot_host_t *host, aot_prog_t *prog, const jg_joint_t *j, pt_facts_t *f) {
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    aot_node_info_t info = {.struct_size = sizeof info, .origin = aot_no_origin()};
    AOT_TRY(host->graph->node_info(prog, (aot_node_t){j->node_id[n]}, &info));
    AOT_TRY(find_module(host, prog, info.origin, &f->module[n]));
    if (j->op_flags[n] & AOT_OP_REGION) f->region[n] = called_region(&info);
    f->tag[n] = info.region_tag;
  }
  return AOT_OK;
}

static void tell_unused(const aot_host_t *host, aot_ctx_t *ctx, const pt_policy_t *p, const uint32_t *matched) {
  for (uint32_t i = 0; i < p->n_rules; i++) {
    char message[200];
    aot_diag_t d;
    if (matched[i]) continue;
    const aot_str_t rule = p->rules[i].text;
    snprintf(message, sizeof message, "option policies, rule %u, \"%.*s\", decides on no node", i + 1,
             (int)(rule.size < 100 ? rule.size : 100), rule.data);
    memset(&d, 0, sizeof d);
    d.struct_size = sizeof d;
    d.severity = AOT_SEVERITY_WARNING;
    d.code = aot_str("partition.idle-policy");
    d.message = aot_str(message);
    d.hint = aot_str("rules before it and the model's own tags count first; recompute passes over heavy operators "
                     "without allow-heavy");
    d.node = aot_no_node();
    d.value = aot_no_value();
    host->diag(host, ctx, &d);
  }
}

aot_status_t pt_policy_use(const void *policy, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                           jg_joint_t *j) {
  const pt_policy_t *p = policy;
  if (p->n_rules == 0) return AOT_OK;
  const size_t nodes = (size_t)j->n_nodes + 1;
  pt_facts_t f = {calloc(nodes, sizeof *f.module), calloc(nodes, sizeof *f.region), calloc(nodes, sizeof *f.tag)};
  uint32_t *matched = calloc((size_t)p->n_rules + 1, sizeof *matched);
  aot_status_t status =
      f.module && f.region && f.tag && matched ? read_facts(host, prog, j, &f) : jg_no_memory(host, ctx);
  if (status == AOT_OK && pt_policy_apply(p, &f, j, matched) != 0) status = jg_no_memory(host, ctx);
  if (status == AOT_OK) tell_unused(host, ctx, p, matched);
  free(f.module);
  free(f.region);
  free(f.tag);
  free(matched);
  return status;
}
