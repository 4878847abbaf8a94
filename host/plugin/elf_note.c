/* ELF -> note -> JSON -> aoth_note_t.
 *
 * The note is looked for in the sections (SHT_NOTE, by owner and type) and then in the segments (PT_NOTE), so a file
 * whose section table was stripped still answers. A record is three words (owner size, text size, type), the owner and
 * the text, both padded to 4 bytes (ELF gABI, "Note Section"). Linear in the file's tables. */
#include <plugin/elf_note.h>

#include <elf.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MAX_TEXT (1u << 20)
#define MAX_UNITS 256u

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define MACHINE_NAME "AArch64"
#else
#define MACHINE EM_NONE /* unknown here: any machine will do, dlopen decides */
#define MACHINE_NAME "this machine"
#endif

typedef struct elf {
  const unsigned char *bytes;
  uint64_t nbytes;
  Elf64_Ehdr head;
  const char *text; /* of the note record found last */
  uint64_t text_size;
} elf_t;

static int in_file(const elf_t *e, uint64_t at, uint64_t size) { return at <= e->nbytes && size <= e->nbytes - at; }

static const char *say(kit_arena_t *arena, const char *text) { return kit_arena_text(arena, text, strlen(text)); }

static const char *check_head(elf_t *e, kit_arena_t *arena) {
  static const struct {
    uint16_t machine;
    const char *name;
  } names[] = {{EM_X86_64, "x86-64"},    {EM_AARCH64, "AArch64"}, {EM_386, "x86 (32 bit)"}, {EM_ARM, "ARM (32 bit)"},
               {EM_PPC64, "PowerPC 64"}, {EM_RISCV, "RISC-V"},    {EM_S390, "S/390"}};
  if (e->nbytes < sizeof e->head || memcmp(e->bytes, ELFMAG, SELFMAG) != 0) return "not an ELF file";
  memcpy(&e->head, e->bytes, sizeof e->head);
  const int little = e->bytes[EI_DATA] == ELFDATA2LSB;
  char text[160];
  const char *name = "another machine";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].machine == e->head.e_machine) name = names[i].name;
  if (e->bytes[EI_CLASS] != ELFCLASS64 || !little || (MACHINE != EM_NONE && e->head.e_machine != MACHINE)) {
    snprintf(text, sizeof text, "it was built for %s (%s, %s); this host runs on %s", name,
             e->bytes[EI_CLASS] == ELFCLASS64 ? "64 bit" : "32 bit", little ? "little-endian" : "big-endian",
             MACHINE_NAME);
    return say(arena, text);
  }
  if (e->head.e_type != ET_DYN) return "not a shared object";
  return NULL;
}

static int segment(const elf_t *e, uint32_t i, Elf64_Phdr *out) {
  const uint64_t at = (uint64_t)i * sizeof *out;
  if (e->head.e_phentsize != sizeof *out || e->head.e_phoff > e->nbytes ||
      !in_file(e, e->head.e_phoff + at, sizeof *out))
    return 0;
  memcpy(out, e->bytes + e->head.e_phoff + at, sizeof *out);
  return 1;
}

/* Every byte that the loader would map must be there: touching one that is not ends a process. */
static int is_whole(const elf_t *e) {
  for (uint32_t i = 0; i < e->head.e_phnum; i++) {
    Elf64_Phdr p;
    if (!segment(e, i, &p) || (p.p_type == PT_LOAD && !in_file(e, p.p_offset, p.p_filesz))) return 0;
  }
  return 1;
}

static uint64_t padded(uint64_t n) { return (n + 3) & ~(uint64_t)3; }

/* A kind of note record: its owner (with the terminating zero) and type. */
typedef struct record_kind {
  const char *owner;
  uint32_t type;
} record_kind_t;
static const record_kind_t ours = {"AOT", 1}, linkers = {"GNU", NT_GNU_BUILD_ID};

/* Look through the note records in [at, at + size) for one of the kind. */
static int find_record(elf_t *e, const record_kind_t *kind, uint64_t at, uint64_t size) {
  if (!in_file(e, at, size)) return 0;
  const uint64_t end = at + size;
  while (end - at >= 12) {
    uint32_t words[3]; /* owner size, text size, type */
    memcpy(words, e->bytes + at, sizeof words);
    const uint64_t name = at + 12;
    if (padded(words[0]) > end - name) return 0;
    const uint64_t text = name + padded(words[0]);
    if (words[1] > end - text) return 0;
    if (words[2] == kind->type && words[0] == 4 && memcmp(e->bytes + name, kind->owner, 4) == 0) {
      e->text = (const char *)e->bytes + text;
      e->text_size = words[1];
      return 1;
    }
    if (padded(words[1]) > end - text) return 0;
    at = text + padded(words[1]);
  }
  return 0;
}

static int section(const elf_t *e, uint32_t i, Elf64_Shdr *out) {
  const uint64_t at = (uint64_t)i * sizeof *out;
  if (e->head.e_shentsize != sizeof *out || e->head.e_shoff > e->nbytes ||
      !in_file(e, e->head.e_shoff + at, sizeof *out))
    return 0;
  memcpy(out, e->bytes + e->head.e_shoff + at, sizeof *out);
  return 1;
}

static int find_note(elf_t *e, const record_kind_t *kind) {
  for (uint32_t i = 0; i < e->head.e_shnum; i++) {
    Elf64_Shdr s;
    if (section(e, i, &s) && s.sh_type == SHT_NOTE && find_record(e, kind, s.sh_offset, s.sh_size)) return 1;
  }
  for (uint32_t i = 0; i < e->head.e_phnum; i++) {
    Elf64_Phdr p;
    if (segment(e, i, &p) && p.p_type == PT_NOTE && find_record(e, kind, p.p_offset, p.p_filesz)) return 1;
  }
  return 0;
}

/* Does a needed library's name begin with one of AddressSanitizer's? Its run time ends a process that it joins late. */
static uint32_t needs_asan(const elf_t *e) {
  for (uint32_t i = 0; i < e->head.e_shnum; i++) {
    Elf64_Shdr s, strings;
    if (!section(e, i, &s) || s.sh_type != SHT_DYNAMIC || !in_file(e, s.sh_offset, s.sh_size)) continue;
    if (!section(e, s.sh_link, &strings) || !in_file(e, strings.sh_offset, strings.sh_size)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= s.sh_size; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn d;
      memcpy(&d, e->bytes + s.sh_offset + at, sizeof d);
      if (d.d_tag == DT_NULL) break;
      if (d.d_tag != DT_NEEDED || d.d_un.d_val >= strings.sh_size) continue;
      const char *name = (const char *)e->bytes + strings.sh_offset + d.d_un.d_val;
      const uint64_t left = strings.sh_size - d.d_un.d_val;
      if ((left >= 7 && memcmp(name, "libasan", 7) == 0) || (left >= 17 && memcmp(name, "libclang_rt.asan-", 17) == 0))
        return 1;
    }
  }
  return 0;
}

/* ---- JSON ---- */

static int word_is_plain(const char *s) {
  return s && *s && strlen(s) < 128 &&
         strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/") == strlen(s);
}

static const char *text_member(const json_t *o, const char *key, kit_arena_t *arena) {
  const char *s = json_string_value(json_object_get(o, key));
  return s && strlen(s) < 4096 ? say(arena, s) : NULL;
}

static int number_member(const json_t *o, const char *key, uint32_t *out) {
  const json_t *n = json_object_get(o, key);
  const json_int_t i = json_is_integer(n) ? json_integer_value(n) : -1;
  if (i < 0 || i > UINT32_MAX) return 0;
  *out = (uint32_t)i;
  return 1;
}

static const char *read_json(const json_t *o, kit_arena_t *arena, aoth_note_t *out) {
  if (!json_is_object(o)) return "its note is not a JSON object";
  out->id = text_member(o, "id", arena);
  out->version = text_member(o, "version", arena);
  if (!word_is_plain(out->id)) return "its note has no usable 'id'";
  if (!out->version) return "its note has no 'version'";
  if (!number_member(o, "epoch", &out->epoch)) return "its note has no 'epoch'";
  if (!number_member(o, "minor", &out->minor)) return "its note has no 'minor'";
  if (!number_member(o, "min_host_minor", &out->min_host_minor)) return "its note has no 'min_host_minor'";
  const json_t *units = json_object_get(o, "units");
  if (!json_is_array(units) || json_array_size(units) == 0 || json_array_size(units) > MAX_UNITS)
    return "its note lists no units, or more than 256";
  out->n_units = (uint32_t)json_array_size(units);
  aoth_note_unit_t *rows = kit_arena_alloc(arena, sizeof(void *), out->n_units * sizeof *rows);
  if (!rows) return "out of memory while reading its note";
  for (uint32_t i = 0; i < out->n_units; i++) {
    const json_t *u = json_array_get(units, i);
    rows[i].kind = text_member(u, "kind", arena);
    rows[i].id = text_member(u, "id", arena);
    rows[i].help = text_member(u, "help", arena);
    if (!word_is_plain(rows[i].kind) || !word_is_plain(rows[i].id))
      return "its note lists a unit without a usable 'kind' or 'id'";
    if (!rows[i].help) rows[i].help = "";
    rows[i].claims = text_member(u, "claims", arena);
    if (!rows[i].claims && json_object_get(u, "claims")) return "its note lists an opset whose 'claims' are no text";
  }
  out->units = rows;
  return NULL;
}

static const char *build_id(elf_t *e, kit_arena_t *arena) {
  if (!find_note(e, &linkers) || e->text_size == 0 || e->text_size > 64) return NULL;
  char *hex = kit_arena_alloc(arena, 1, 2 * (size_t)e->text_size + 1);
  for (uint64_t i = 0; hex && i < e->text_size; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)e->text[i]);
  return hex;
}

const char *aoth_build_id(const void *bytes, uint64_t nbytes, kit_arena_t *arena) {
  elf_t e = {.bytes = bytes, .nbytes = nbytes};
  return check_head(&e, arena) ? NULL : build_id(&e, arena);
}

aot_status_t aoth_note_read(const void *bytes, uint64_t nbytes, kit_arena_t *arena, aoth_note_t *out,
                            const char **out_why) {
  elf_t e = {.bytes = bytes, .nbytes = nbytes};
  memset(out, 0, sizeof *out);
  *out_why = check_head(&e, arena);
  if (!*out_why && !is_whole(&e)) *out_why = "truncated file";
  if (*out_why) return AOT_E_INVALID;
  if (!find_note(&e, &ours)) {
    *out_why = "it has no AOT note: it is not an aothost plugin, or its plugin.c has no AOT_PLUGIN_NOTE";
    return AOT_E_NOT_FOUND;
  }
  while (e.text_size && e.text[e.text_size - 1] == 0) e.text_size--;
  if (e.text_size > MAX_TEXT) {
    *out_why = "its note is longer than 1 MiB";
    return AOT_E_INVALID;
  }
  json_error_t error;
  json_t *json = json_loadb(e.text, (size_t)e.text_size, JSON_REJECT_DUPLICATES, &error);
  if (!json) {
    char text[200];
    snprintf(text, sizeof text, "its note is not JSON: %.150s", error.text);
    for (char *c = text; *c; c++)
      if (*c < 0x20 || *c > 0x7e) *c = '?'; /* it quotes the file's bytes */
    *out_why = say(arena, text);
    return AOT_E_INVALID;
  }
  *out_why = read_json(json, arena, out);
  json_decref(json);
  out->needs_asan = needs_asan(&e);
  out->build_id = build_id(&e, arena);
  return *out_why ? AOT_E_INVALID : AOT_OK;
}
