/* The commands of the line, each in cmd_NAME.c. */
#ifndef AOTH_COMMANDS_H
#define AOTH_COMMANDS_H

#include <cli/base/cli.h>

extern const aoth_command_t aoth_cmd_run, aoth_cmd_verify, aoth_cmd_check, aoth_cmd_plugins, aoth_cmd_schema,
    aoth_cmd_opt, aoth_cmd_ab, aoth_cmd_export, aoth_cmd_inspect, aoth_cmd_ops, aoth_cmd_cache, aoth_cmd_new,
    aoth_cmd_bisect, aoth_cmd_replay, aoth_cmd_plan, aoth_cmd_sign, aoth_cmd_conform, aoth_cmd_reduce,
    aoth_cmd_gradcheck;

/* `aothost complete WORD..`: what the last of the words after `aothost` may become, a line each: the word, a tab, what
 * it is. Nothing: a file. Shells ask (tools/completion). */
int aoth_complete(const aoth_command_t *const *commands, size_t n_commands, uint32_t n_words, char **words);

#endif
