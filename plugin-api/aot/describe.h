/* aot/describe.h - what a plugin says of itself, written once: descriptor, ELF note and entry, which must agree.
 *
 * One unit in a file is the common case; text arguments are string literals, what follows `create` are members of
 * aot_unit_t:
 *
 *   AOT_PLUGIN_ONE("pass/1", "dead-code", "1.0.0", "example", "Apache-2.0", "erases what nobody reads", create,
 *                  .contract = &contract, AOT_OPTIONS(options));
 *   AOT_PLUGIN_OPSET("mylib", "1.0.0", "example", "Apache-2.0", "two operators", "mylib", create);
 *
 * Here `create` leaves out the unit, which it would know anyway: create(ctx, host, opts, out_table). Several units:
 *
 *   static const aot_unit_t a = AOT_UNIT("pass/1", "a", "1.0.0", "help", .create = create_a, .contract = &contract), b
 *   = ..; static const aot_unit_t *const units[] = {&a, &b};
 *   AOT_PLUGIN("ab", "1.0.0", "example", "Apache-2.0", units, AOT_NOTE_UNIT("pass/1", "a", "help") ","
 *   AOT_NOTE_UNIT(..));
 *
 * A plugin that has more to say (init, build_id) fills an aot_plugin_t and writes its note and entry itself. */
#ifndef AOT_DESCRIBE_H
#define AOT_DESCRIBE_H

#include <aot/note.h>
#include <aot/plugin.h>

/* Members of aot_unit_t, of an array. */
#define AOT_OPTIONS(array) .options = array, .n_options = sizeof array / sizeof *array, .option_stride = sizeof *array

#define AOT_UNIT(kind_, id_, version_, help_, ...)                                                                     \
  {                                                                                                                    \
    .struct_size = sizeof(aot_unit_t), .kind = AOT_STR_INIT(kind_), .id = AOT_STR_INIT(id_),                           \
    .version = AOT_STR_INIT(version_), .help = AOT_STR_INIT(help_), __VA_ARGS__                                        \
  }

/* units: an array of pointers; note_units: AOT_NOTE_UNIT(..) of each, with "," between. */
#define AOT_PLUGIN(id_, version_, vendor_, license_, units_, note_units_)                                              \
  static const aot_plugin_t aot_plugin_described = {                                                                   \
      .struct_size = sizeof(aot_plugin_t),                                                                             \
      .abi_epoch = AOT_ABI_EPOCH,                                                                                      \
      .abi_minor = AOT_ABI_MINOR,                                                                                      \
      .min_host_minor = AOT_PLUGIN_LEAST_MINOR,                                                                        \
      .id = AOT_STR_INIT(id_),                                                                                         \
      .vendor = AOT_STR_INIT(vendor_),                                                                                 \
      .version = AOT_STR_INIT(version_),                                                                               \
      .license = AOT_STR_INIT(license_),                                                                               \
      .units = units_,                                                                                                 \
      .n_units = sizeof units_ / sizeof *units_,                                                                       \
  };                                                                                                                   \
  const aot_plugin_t *AOT_CALL aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {        \
    static const aot_str_t other_epoch = AOT_STR_INIT("made for ABI epoch " AOT_NOTE_TEXT(AOT_ABI_EPOCH));             \
    (void)host_minor;                                                                                                  \
    if (host_epoch == AOT_ABI_EPOCH) return &aot_plugin_described;                                                     \
    *why_not = other_epoch;                                                                                            \
    return NULL;                                                                                                       \
  }                                                                                                                    \
  AOT_PLUGIN_NOTE(AOT_NOTE_HEAD(id_, version_) note_units_ AOT_NOTE_TAIL)

#define AOT_PLUGIN_OF_ONE_(id_, version_, vendor_, license_, note_unit_, create_, ...)                                 \
  static aot_status_t AOT_CALL aot_create_the_one(const aot_unit_t *unit, aot_ctx_t *ctx, const aot_host_t *host,      \
                                                  const aot_opts_t *opts, const aot_table_t **out_table) {             \
    (void)unit;                                                                                                        \
    return create_(ctx, host, opts, out_table);                                                                        \
  }                                                                                                                    \
  static const aot_unit_t aot_the_one = __VA_ARGS__;                                                                   \
  static const aot_unit_t *const aot_units_of_one[] = {&aot_the_one};                                                  \
  AOT_PLUGIN(id_, version_, vendor_, license_, aot_units_of_one, note_unit_)

#define AOT_PLUGIN_ONE(kind_, id_, version_, vendor_, license_, help_, create_, ...)                                   \
  AOT_PLUGIN_OF_ONE_(id_, version_, vendor_, license_, AOT_NOTE_UNIT(kind_, id_, help_), create_,                      \
                     AOT_UNIT(kind_, id_, version_, help_, .create = aot_create_the_one, __VA_ARGS__))

/* claims: namespaces, as note.h says. */
#define AOT_PLUGIN_OPSET(id_, version_, vendor_, license_, help_, claims_, create_)                                    \
  AOT_PLUGIN_OF_ONE_(id_, version_, vendor_, license_, AOT_NOTE_OPSET(id_, help_, claims_), create_,                   \
                     AOT_UNIT("opset/1", id_, version_, help_, .create = aot_create_the_one))

#endif
