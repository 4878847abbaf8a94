/* archive_layout.h - which of PyTorch's layouts a ZIP has, and which member plays which part. */
#ifndef P2_ARCHIVE_LAYOUT_H
#define P2_ARCHIVE_LAYOUT_H

#include "zip_directory.h"

typedef struct p2_layout {
  p2_member_t *model;          /* the ExportedProgram's JSON */
  p2_member_t *weights_config; /* raw payloads: NULL when the next is used */
  p2_member_t *weights_file;   /* torch.save of the state dict */
  p2_member_t *constants_config;
  p2_member_t *constants_file;
  aot_str_t weights_folder, constants_folder; /* where payload names of the configs are looked up */
} p2_layout_t;

/* 0..100, without messages: how surely the ZIP holds an exported program. */
int32_t p2_layout_score(const p2_zip_t *zip);
/* `model`: which program of an archive with several; empty: the only one, or the one named "model". */
aot_status_t p2_layout_find(p2_env_t *e, const p2_zip_t *zip, aot_str_t model, p2_layout_t *out);

#endif
