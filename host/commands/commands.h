/* The commands of the line, each in cmd_NAME.c. */
#ifndef AOTH_COMMANDS_H
#define AOTH_COMMANDS_H

#include <tools/cli.h>

extern const aoth_command_t aoth_cmd_run, aoth_cmd_verify, aoth_cmd_check, aoth_cmd_plugins, aoth_cmd_schema,
    aoth_cmd_opt, aoth_cmd_ab, aoth_cmd_export, aoth_cmd_inspect, aoth_cmd_ops, aoth_cmd_cache;

#endif
