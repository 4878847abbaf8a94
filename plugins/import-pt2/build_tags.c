/* build_tags.c - activation checkpointing: which values of a region the backward computes again.
 *
 * torch.export 2.11 writes it in two ways, both with strict=True only (a non-strict trace goes through
 * torch.utils.checkpoint and leaves nothing of it). A call of torch.utils.checkpoint is a tag_activation_checkpoint
 * region; its policy, if it has one, is a Python function and not in the archive, so every node counts as "prefer to
 * recompute", as PyTorch has it without one. torch.fx.traceback.annotate({"recompute": "MUST_SAVE", "ac_graph_id": 1})
 * is in the "custom" metadata of each node, under the names that partitioners of PyTorch look for. */
#include "builder.h"
#include <jansson.h>

static const struct {
  const char *name; /* of torch.utils.checkpoint.CheckpointPolicy; its number is the row */
  uint32_t flag;
} policies[] = {
    {"MUST_SAVE", AOT_NODE_MUST_SAVE},
    {"PREFER_SAVE", AOT_NODE_PREFER_SAVE},
    {"MUST_RECOMPUTE", AOT_NODE_MUST_RECOMPUTE},
    {"PREFER_RECOMPUTE", AOT_NODE_PREFER_RECOMPUTE},
};
#define N_POLICIES (sizeof policies / sizeof *policies)

static aot_status_t policy(p2_builder_t *b, const p2_node_t *n, const json_t *value, uint32_t *out_flags) {
  uint32_t i;
  for (i = 0; i < N_POLICIES; i++)
    if (json_is_string(value) ? p2_str_is(p2_str(json_string_value(value)), policies[i].name)
                              : json_is_integer(value) && json_integer_value(value) == (json_int_t)i) {
      *out_flags = policies[i].flag;
      return AOT_OK;
    }
  p2_node_bad(b, n, "import-pt2.bad-tag",
              "\"recompute\" in the node's custom metadata names no policy of checkpointing");
  p2_hint(b->env, "MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE or PREFER_RECOMPUTE");
  return AOT_E_INVALID;
}

static aot_status_t read_custom(p2_builder_t *b, const p2_node_t *n, const json_t *custom, p2_tags_t *out) {
  const json_t *value = json_object_get(custom, "recompute"), *region = json_object_get(custom, "ac_graph_id");
  if (value && !json_is_null(value)) AOT_TRY(policy(b, n, value, &out->flags));
  if (!region || json_is_null(region)) return AOT_OK;
  if (!json_is_integer(region) || json_integer_value(region) < 0 || json_integer_value(region) >= UINT32_MAX)
    return p2_node_bad(b, n, "import-pt2.bad-tag",
                       "\"ac_graph_id\" in the node's custom metadata is not the number of a region");
  out->region = (uint32_t)json_integer_value(region) + 1; /* 0 is a region there and none here */
  return AOT_OK;
}

aot_status_t p2_tags_of_node(p2_builder_t *b, const p2_node_t *n, p2_tags_t around, p2_tags_t *out) {
  json_t *custom;
  aot_status_t status = AOT_OK;
  *out = around;
  if (!n->custom.size) return AOT_OK;
  custom = json_loadb(n->custom.data, (size_t)n->custom.size, 0, NULL);
  if (json_is_object(custom)) status = read_custom(b, n, custom, out);
  if (custom) json_decref(custom);
  return status;
}

/* Later calls get higher numbers, nested ones higher than what is around them, as PyTorch counts them. */
p2_tags_t p2_tags_of_checkpoint(p2_builder_t *b) {
  p2_tags_t tags = {AOT_NODE_PREFER_RECOMPUTE, ++b->n_checkpoints};
  return tags;
}
