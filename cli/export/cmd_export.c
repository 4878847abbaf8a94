/* aothost export: a model's functional or joint program with its signature, as a file; or a checkpoint of several ranks
 * as one of a single rank. */
#include <cli/base/commands.h>

#include <aot/contract.h>
#include <aot/inline.h>
#include <jansson.h>
#include <cli/export/export_file.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/saved_run.h>

typedef struct export {
  aoth_cli_t cli;
  aoth_texts_t uses; /* "--use", ID, "--with", K=V, .. as given */
  const char *output, *import_id, *pipeline_path, *loss_text;
  int joint, full;
  int64_t loss;
  kit_arena_t *arena;
  aoth_pipeline_t *pipeline;
  aoth_exported_t done;
}
export_t;

static aot_status_t bad_flag(const export_t *x, const char *code, const char *text) {
  aoth_sink_report(x->cli.sink, AOT_SEVERITY_ERROR, NULL, code, "%s", text);
  return AOT_E_INVALID;
}

static aot_status_t read_flags(export_t *x) {
  char *end = NULL;
  x->loss = -1;
  if (x->pipeline_path && x->uses.n)
    return bad_flag(x, "export.stages", "--pipeline and --use exclude each other: one list of stages");
  if (x->pipeline_path && x->import_id)
    return bad_flag(x, "export.import", "--import belongs to --use; a pipeline names its importer");
  if (!x->pipeline_path && x->cli.common.sets.n)
    return bad_flag(x, "export.set", "--set belongs to --pipeline; --with sets an option of the --use before it");
  if (!x->loss_text) return AOT_OK;
  if (!x->joint) return bad_flag(x, "export.loss", "--loss belongs to --joint");
  x->loss = strtoll(x->loss_text, &end, 10);
  if (*x->loss_text && !*end && x->loss >= 0 && x->loss < UINT32_MAX) return AOT_OK;
  return bad_flag(x, "export.loss", "--loss takes the number of an output, counted from 0");
}

/* The stages of a list up to the first that would lead past what is exported: gradients when they are not requested, a
 * partition, a backend. */
static aot_status_t run_stages(export_t *x, const aoth_stage_t *stages, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const aoth_unit_t *u = stages[i].unit;
    if (strcmp(u->kind, "pass/1") != 0) return AOT_OK;
    if (!x->joint && u->has_contract && u->contract.gives.known & AOTH_PROP_JOINT) return AOT_OK;
    AOT_TRY(aoth_session_run_stage(x->cli.session, &stages[i]));
  }
  return AOT_OK;
}

static aot_status_t read_model(export_t *x) {
  aoth_session_t *s = x->cli.session;
  const char *model = x->cli.positional[0];
  if (x->pipeline_path) {
    aoth_overrides_t overrides = {.model = model};
    AOT_TRY(aoth_cli_pipeline(&x->cli, x->pipeline_path, &overrides, &x->pipeline));
    AOT_TRY(aoth_pipeline_import(s, x->pipeline));
    return run_stages(x, x->pipeline->stages, x->pipeline->n_stages);
  }
  aoth_stage_t *stages;
  uint32_t n;
  AOT_TRY(aoth_cli_stages(&x->cli, &x->uses, x->arena, &stages, &n));
  AOT_TRY(aoth_session_import(s, x->import_id, NULL, model, NULL));
  for (uint32_t i = 0; i < n; i++) AOT_TRY(aoth_session_run_stage(s, &stages[i]));
  return AOT_OK;
}

/* ---- the signature, for --json ---- */

static const char *role_word(int32_t role) {
  static const char *const words[] = {"other",   "parameter", "buffer",   "constant",    "user-input", "state",
                                      "tangent", "saved",     "gradient", "user-output", "loss",       "update"};
  return role >= 1 && role <= AOT_ROLE_UPDATE ? words[role] : words[0];
}

static int is_of_leaf(int32_t role) {
  return role <= AOT_ROLE_STATE || role == AOT_ROLE_GRADIENT || role == AOT_ROLE_UPDATE;
}

static json_t *ports_json(aot_prog_t *p, const aot_port_t *ports, uint32_t n) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    aot_str_t name = ports[i].name;
    if (is_of_leaf(ports[i].role)) aoth_graph_leaf_info(p, (aot_leaf_t){ports[i].index}, &leaf);
    if (leaf.n_names) name = leaf.names[0];
    json_array_append_new(list, json_pack("{s:s, s:i, s:s%, s:b}", "role", role_word(ports[i].role), "index",
                                          (int)aoth_port_number(ports[i].role, ports[i].index), "name",
                                          name.size ? name.data : "", (size_t)name.size, "none",
                                          ports[i].value.id == AOT_NO_ID));
  }
  return list;
}

static aot_status_t write_json(export_t *x) {
  aot_prog_t *p = aoth_session_prog(x->cli.session);
  const aot_graph_t g = aoth_graph_graph_find(p, x->joint ? AOT_GRAPH_JOINT : AOT_GRAPH_FORWARD);
  json_t *inputs = ports_json(p, aoth_graph_inputs(p, g), aoth_graph_n_inputs(p, g));
  json_t *outputs = ports_json(p, aoth_graph_outputs(p, g), aoth_graph_n_outputs(p, g));
  json_t *json = json_pack("{s:s, s:s, s:s?, s:s, s:b, s:I, s:i, s:o, s:o, s:o}", "command", "export", "file",
                           x->cli.positional[0], "output", x->output, "format", x->done.format, "joint", x->joint,
                           "bytes", (json_int_t)x->done.nbytes, "decomposed", (int)x->done.n_decomposed, "inputs",
                           inputs, "outputs", outputs, "stages", aoth_records_json(x->cli.session));
  const aot_status_t status = aoth_cli_json(&x->cli, json);
  json_decref(json);
  return status;
}

/* ---- a checkpoint ---- */

static aot_status_t run_full(const export_t *x) {
  const char *path = x->cli.positional[0];
  aoth_saved_t saved;
  if (x->joint || x->loss_text || x->pipeline_path || x->import_id || x->uses.n || x->cli.common.json_path)
    return bad_flag(x, "export.full", "--full takes the folder of a checkpoint, -o, and nothing else");
  if (!x->output) return bad_flag(x, "export.full", "--full writes a file; name it: -o FILE.safetensors");
  AOT_TRY(aoth_saved_open(path, x->cli.sink, &saved));
  const uint32_t n = saved.n_parts;
  const aot_status_t status = aoth_saved_write_whole(&saved, x->output);
  aoth_saved_close(&saved);
  if (status == AOT_OK && !x->cli.common.quiet)
    printf("%s: the checkpoint of %u rank%s as one file\n", x->output, n ? n : 1, n > 1 ? "s" : "");
  return status;
}

/* ---- a program ---- */

static aot_status_t run(export_t *x) {
  if (x->full) return run_full(x);
  AOT_TRY(read_flags(x));
  AOT_TRY(read_model(x));
  AOT_TRY(aoth_export_prepare(x->cli.session, x->joint, x->loss));
  AOT_TRY(aoth_export_write(x->cli.session, x->output, &x->done));
  if (x->output && !x->cli.common.quiet && !x->cli.common.json_path)
    printf("%s: %s program as %s, %llu bytes\n", x->output, x->joint ? "joint" : "functional", x->done.format,
           (unsigned long long)x->done.nbytes);
  return write_json(x);
}

static int export_main(const aoth_command_t *self, int argc, char **argv) {
  export_t x = {.loss = -1};
  const aoth_flag_t flags[] = {
      {.name = "--joint", .help = "with the gradients of the loss: the joint program", .set = &x.joint},
      {.name = "--full", .help = "FILE is a checkpoint of several ranks: every leaf whole, in one", .set = &x.full},
      {
          .name = "--loss",
          .value = "K",
          .help = "with --joint: the output that is the loss, from 0; not needed when there is one only",
          .text = &x.loss_text,
      },
      {
          .name = "--output",
          .letter = "-o",
          .value = "F",
          .help = "where it goes; its suffix is the format: .ir text, .pt2 PyTorch's archive. Left out: text on the "
                  "standard output",
          .text = &x.output,
          .writes = 1,
      },
      {
          .name = "--pipeline",
          .value = "P",
          .help =
              "run the passes of this pipeline first, up to its partition (without --joint: to what makes gradients)",
          .text = &x.pipeline_path,
      },
      {
          .name = "--use",
          .value = "STAGE",
          .help = "run this unit first; may repeat, in order",
          .list = &x.uses,
          .with_name = 1,
      },
      {
          .name = "--with",
          .value = "K=V",
          .help = "an option of the --use before it; may repeat",
          .list = &x.uses,
          .with_name = 1,
      },
      {
          .name = "--import",
          .value = "ID",
          .help = "the importer; found out from the file when left out, ir for text",
          .text = &x.import_id,
      },
  };
  int code = aoth_cli_init(&x.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 1, 1);
  if (code == AOTH_CLI_GO) {
    x.arena = kit_arena_create();
    code = x.arena && aoth_cli_session(&x.cli) ? aoth_exit_code(run(&x)) : AOTH_EXIT_INPUT;
  }
  code = aoth_cli_deinit(&x.cli, code);
  aoth_pipeline_destroy(x.pipeline);
  kit_arena_destroy(x.arena);
  free(x.uses.items);
  return code;
}

const aoth_command_t aoth_cmd_export = {
    .name = "export",
    .usage = "export FILE [--joint [--loss K]] [-o F] [--pipeline P | --use STAGE [--with K=V]...] [options]",
    .summary = "export the functional or joint program as .ir or .pt2; merge a sharded checkpoint into one file",
    .text = "Makes the model's program functional (and with --joint differentiates its loss), by the stages given or\n"
            "by the installed ones that give just that, and writes it with its signature: parameters, buffers,\n"
            "constants and inputs by name; new values of buffers and inputs, outputs, the loss and the gradients as\n"
            "outputs. torch.export.load opens what is written to FILE.pt2; operators that PyTorch does not have are\n"
            "decomposed. What an exported program cannot say is refused, each with its code:\n"
            "export.metadata-mutation, export.output-requires-grad, ... (docs/RUN.md lists them). `aothost opt`\n"
            "prints any program as it is.\n"
            "\n"
            "  aothost export model.pt2 -o functional.pt2\n"
            "  aothost export model.pt2 --joint --loss 0 -o joint.pt2\n"
            "  aothost export model.pt2 --joint -o joint.ir\n"
            "  aothost export model.pt2 --pipeline train.yaml --set vars.x=1 -o functional.pt2\n"
            "  aothost export run.ckpt --full -o run.safetensors\n",
    .main = export_main,
};
