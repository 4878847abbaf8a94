/* aothost opt: a program in, stages over it, the program out. */
#include <cli/base/commands.h>
#include <cli/run/check_stages.h>

#include <base/file.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct opt {
  aoth_cli_t cli;
  aoth_texts_t uses; /* "--use", ID, "--with", K=V, .. as given */
  const char *output, *import_id;
  kit_arena_t *arena;
  aoth_stage_t *stages;
  uint32_t n_stages;
  int check_stages;
  aoth_stage_checks_t checks;
} opt_t;

/* Common flags that need a pipeline or one of its stages: nothing is ignored in silence. */
static aot_status_t check_flags(const opt_t *o) {
  if (o->cli.common.sets.n) {
    aoth_sink_report(o->cli.sink, AOT_SEVERITY_ERROR, NULL, "opt.set",
                     "--set %s: there is no pipeline; --with sets an option of the --use before it",
                     o->cli.common.sets.items[0]);
    return AOT_E_INVALID;
  }
  for (uint32_t i = 0; i < o->cli.common.dump_after.n; i++) {
    int known = 0;
    for (uint32_t k = 0; k < o->n_stages; k++)
      known |= strcmp(o->stages[k].use, o->cli.common.dump_after.items[i]) == 0;
    if (known) continue;
    aoth_sink_report(o->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.dump-after",
                     "--dump-after %s: no --use names such a stage", o->cli.common.dump_after.items[i]);
    return AOT_E_INVALID;
  }
  return AOT_OK;
}

static aot_status_t write_program(opt_t *o) {
  const int json_on_stdout = o->cli.common.json_path && strcmp(o->cli.common.json_path, "-") == 0;
  kit_text_t text = {0};
  aot_status_t status = AOT_OK;
  aoth_print(aoth_session_prog(o->cli.session), &text);
  if (o->output && strcmp(o->output, "-") != 0) {
    aoth_writer_t *w = aoth_writer_begin(o->output, o->cli.sink);
    if (w) aoth_writer_write(w, text.data, text.size);
    status = w ? aoth_writer_commit(w) : AOT_E_INVALID;
  } else if (!json_on_stdout) {
    fwrite(text.data ? text.data : "", 1, text.size, stdout);
  }
  kit_text_deinit(&text);
  return status;
}

static aot_status_t run(opt_t *o) {
  aoth_session_t *s = o->cli.session;
  AOT_TRY(aoth_cli_stages(&o->cli, &o->uses, o->arena, &o->stages, &o->n_stages));
  AOT_TRY(check_flags(o));
  AOT_TRY(aoth_session_import(s, o->import_id, NULL, o->cli.positional[0], NULL));
  if (o->check_stages) AOT_TRY(aoth_stage_checks_begin(&o->checks, s, NULL));
  AOT_TRY(aoth_session_run_list(s, o->stages, o->n_stages));
  AOT_TRY(write_program(o));
  json_t *json = json_pack("{s:s, s:o}", "file", o->cli.positional[0], "stages", aoth_records_json(s));
  if (o->check_stages) json_object_set(json, "stage_checks", o->checks.rows);
  const aot_status_t status = aoth_cli_json(&o->cli, json);
  json_decref(json);
  return status;
}

static int opt_main(const aoth_command_t *self, int argc, char **argv) {
  opt_t o = {.n_stages = 0};
  const aoth_flag_t flags[] = {
      {
          .name = "--use",
          .value = "STAGE",
          .help = "run this unit; may repeat, in order",
          .list = &o.uses,
          .with_name = 1,
      },
      {
          .name = "--with",
          .value = "K=V",
          .help = "an option of the --use before it; may repeat",
          .list = &o.uses,
          .with_name = 1,
      },
      {
          .name = "--output",
          .letter = "-o",
          .value = "F",
          .help = "where the program goes; the standard output when left out",
          .text = &o.output,
          .writes = 1,
      },
      {
          .name = "--import",
          .value = "ID",
          .help = "the importer; found out from the file when left out, ir for text",
          .text = &o.import_id,
      },
      {
          .name = "--check-replay",
          .help = "undo and replay each stage's edit journal, and compare the programs",
          .set = &o.cli.common.check_replay,
      },
      {
          .name = "--check-stages",
          .help = "run the program before and after each stage on backend-ref: none may change results",
          .set = &o.check_stages,
      },
  };
  int code = aoth_cli_init(&o.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 1, 1);
  aoth_stage_checks_init(&o.checks);
  if (o.check_stages) o.cli.watch = &o.checks.watch;
  if (code == AOTH_CLI_GO) {
    o.arena = kit_arena_create();
    code = o.arena && aoth_cli_session(&o.cli) ? aoth_exit_code(run(&o)) : AOTH_EXIT_INPUT;
  }
  code = aoth_cli_deinit(&o.cli, code);
  aoth_stage_checks_deinit(&o.checks);
  kit_arena_destroy(o.arena);
  free(o.uses.items);
  return code;
}

const aoth_command_t aoth_cmd_opt = {
    .name = "opt",
    .usage = "opt FILE --use STAGE [--with K=V]... [--use ...] [-o F] [options]",
    .summary = "run stages on one program (.ir or model file) and print the result as .ir",
    .text = "Reads a program in text (FILE.ir, docs/IR.md) or a model that an importer recognises, runs the stages in\n"
            "the order given, and prints the program. Every dump and every bundle's program.ir is an input.\n"
            "Without --use it only reads and prints: a check, a converter.\n"
            "\n"
            "  aothost opt a.ir --use functionalize --use autograd -o joint.ir\n"
            "  aothost opt joint.ir --use partition-mincut --with distance-base=1.5\n"
            "  aothost opt model.pt2 > model.ir\n",
    .main = opt_main,
};
