/* Units and their options as JSON, for `plugins --json` and `schema`. */
#ifndef AOTH_UNIT_JSON_H
#define AOTH_UNIT_JSON_H

#include <jansson.h>
#include <config/pipeline.h>
#include <plugin/registry.h>

json_t *aoth_str_json(aot_str_t s);
json_t *aoth_option_json(const aot_option_t *option);       /* as `plugins ID --json` prints it */
json_t *aoth_option_schema(const aot_option_t *option);     /* as JSON Schema */
json_t *aoth_properties_json(aoth_properties_t properties); /* ["functional", ..] */

#endif
