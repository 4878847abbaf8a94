/* aothost complete: what a command line may continue with, from the tables that commands parse it by. Not in the list
 * of commands: shells query it. */
#include <cli/base/commands.h>

#include <config/pipeline.h>
#include <plugin/registry.h>
#include <sandbox/session.h>
#include <stdio.h>
#include <string.h>
#include <cli/plugins/plugin_template.h>

typedef struct completion {
  aoth_flag_listener_t listener;
  const char *word;   /* what is there of the last one */
  const char *before; /* the one before it */
  const char *value;  /* what the flag before it takes; NULL: it is no flag, or a switch */
} completion_t;

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static void offer(const char *word, const char *text, const char *about) {
  if (begins(text, word)) printf("%s\t%s\n", text, about);
}

static void hear(aoth_flag_listener_t *self, const aoth_flag_t *flags, uint32_t n) {
  completion_t *c = (completion_t *)self; /* the listener is first */
  for (uint32_t i = 0; i < n; i++) {
    const int is_before =
        strcmp(flags[i].name, c->before) == 0 || (flags[i].letter && strcmp(flags[i].letter, c->before) == 0);
    if (is_before && flags[i].value && !flags[i].ending) c->value = flags[i].value;
    if (c->word[0] == '-') offer(c->word, flags[i].name, flags[i].help);
  }
}

/* Read from the files' notes; what is wrong with them is not reported here. */
static void offer_units(const char *word, uint32_t n_words, char **words) {
  const char *dirs[16];
  uint32_t n_dirs = 0;
  aoth_sink_t *quiet = aoth_sink_create(NULL);
  for (uint32_t i = 1; i + 1 < n_words && n_dirs < 16; i++)
    if (strcmp(words[i - 1], "--plugin-dir") == 0) dirs[n_dirs++] = words[i];
  const aoth_session_config_t config = {.sink = quiet, .plugin_dirs = dirs, .n_plugin_dirs = n_dirs};
  aoth_session_t *s = quiet ? aoth_session_create(&config) : NULL;
  aoth_registry_t *r = s ? aoth_session_registry(s) : NULL;
  for (uint32_t i = 0; r && i < aoth_registry_n_plugins(r); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(r, i);
    for (uint32_t k = 0; k < p->n_units; k++)
      if (!p->units[k].shadowed_by) offer(word, p->units[k].id, p->units[k].help);
  }
  aoth_session_destroy(s);
  aoth_sink_destroy(quiet);
}

static void offer_kinds(const char *word) {
  aoth_sink_t *quiet = aoth_sink_create(NULL);
  kit_arena_t *arena = kit_arena_create();
  aoth_templates_t t;
  if (quiet && arena && aoth_templates_find(arena, quiet, &t) == AOT_OK)
    for (uint32_t i = 0; i < t.n; i++) offer(word, t.kinds[i], t.titles[i]);
  kit_arena_destroy(arena);
  aoth_sink_destroy(quiet);
}

static void offer_commands(const aoth_command_t *const *commands, size_t n, const char *word) {
  for (size_t i = 0; i < n; i++) offer(word, commands[i]->name, commands[i]->summary);
}

int aoth_complete(const aoth_command_t *const *commands, size_t n_commands, uint32_t n_words, char **words) {
  const char *word = n_words ? words[n_words - 1] : "";
  if (n_words <= 1) {
    offer_commands(commands, n_commands, word);
    offer(word, "--help", "what there is");
    offer(word, "--version", "which edition this is");
    return AOTH_EXIT_OK;
  }
  if (strcmp(words[0], "help") == 0) offer_commands(commands, n_commands, word);
  for (size_t i = 0; i < n_commands; i++) {
    if (strcmp(commands[i]->name, words[0]) != 0) continue;
    completion_t c = {.listener = {hear}, .word = word, .before = words[n_words - 2]};
    aoth_command_t asked = *commands[i];
    asked.listener = &c.listener;
    asked.main(&asked, 1, words);
    const int is_unit = strstr(asked.usage, " [ID] ") && n_words == 2; /* the first argument is one */
    if (c.value && strcmp(c.value, "KIND") == 0) offer_kinds(word);
    else if (c.value ? strcmp(c.value, "ID") == 0 || strcmp(c.value, "STAGE") == 0 : is_unit && word[0] != '-')
      offer_units(word, n_words, words);
  }
  return AOTH_EXIT_OK;
}
