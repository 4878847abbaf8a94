/* Notes of plugins, read from bytes: a real file, every prefix of it, and thousands of damaged ones. */
#define _GNU_SOURCE /* memmem */
#include <base/file.h>
#include <elf.h>
#include <plugin/elf_note.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
  kit_arena_t *arena;
  unsigned char *bytes; /* of the toy plugin */
  size_t size;
} fixture_t;

static int setup(void **state) {
  fixture_t *w = calloc(1, sizeof *w);
  aoth_map_t map;
  assert_int_equal(aoth_file_map(TEST_PLUGINS "/good/toy.so", NULL, &map), AOT_OK);
  w->size = (size_t)map.nbytes;
  w->bytes = malloc(w->size);
  memcpy(w->bytes, map.data, w->size);
  aoth_file_unmap(&map);
  w->arena = kit_arena_create();
  *state = w;
  return 0;
}

static int teardown(void **state) {
  fixture_t *w = *state;
  kit_arena_destroy(w->arena);
  free(w->bytes);
  free(w);
  return 0;
}

static void a_plugin_tells_its_units(void **state) {
  const fixture_t *w = *state;
  aoth_note_t note;
  const char *why;
  assert_int_equal(aoth_note_read(w->bytes, w->size, w->arena, &note, &why), AOT_OK);
  assert_null(why);
  assert_string_equal(note.id, "toy");
  assert_string_equal(note.version, "0.1.0");
  assert_int_equal(note.n_units, 8);
  assert_string_equal(note.units[2].kind, "pass/1");
  assert_string_equal(note.units[2].id, "toy-fuse");
  assert_string_equal(note.units[2].help, "rewrites mul");
}

static void an_opset_tells_its_claims(void **state) {
  static const char text[] = "\"claims\":\"stray\"", number[] = "\"claims\": 1234  ";
  const fixture_t *w = *state;
  aoth_note_t note;
  aoth_map_t map;
  const char *why;
  assert_int_equal(aoth_note_read(w->bytes, w->size, w->arena, &note, &why), AOT_OK);
  assert_null(note.units[0].claims); /* the toy says nothing */
  assert_int_equal(aoth_file_map(TEST_PLUGINS "/stray_fail/stray_fail.so", NULL, &map), AOT_OK);
  assert_int_equal(aoth_note_read(map.data, map.nbytes, w->arena, &note, &why), AOT_OK);
  assert_string_equal(note.units[0].claims, "stray");
  char *bytes = malloc((size_t)map.nbytes);
  memcpy(bytes, map.data, (size_t)map.nbytes);
  char *at = memmem(bytes, (size_t)map.nbytes, text, sizeof text - 1);
  assert_non_null(at);
  memcpy(at, number, sizeof text - 1);
  assert_int_equal(aoth_note_read(bytes, map.nbytes, w->arena, &note, &why), AOT_E_INVALID);
  assert_string_equal(why, "its note lists an opset whose 'claims' are no text");
  free(bytes);
  aoth_file_unmap(&map);
}

static void the_note_is_found_without_sections(void **state) {
  fixture_t *w = *state;
  aoth_note_t note;
  const char *why;
  Elf64_Ehdr head;
  memcpy(&head, w->bytes, sizeof head);
  head.e_shoff = head.e_shnum = 0;
  memcpy(w->bytes, &head, sizeof head);
  assert_int_equal(aoth_note_read(w->bytes, w->size, w->arena, &note, &why), AOT_OK);
  assert_string_equal(note.id, "toy");
}

/* A copy of exactly `size` bytes, so that a read beyond them is a read beyond the heap block. */
static aot_status_t read_exact(const fixture_t *w, const unsigned char *bytes, size_t size) {
  aoth_note_t note;
  const char *why = NULL;
  unsigned char *exact = malloc(size ? size : 1);
  memcpy(exact, bytes, size);
  kit_arena_reset(w->arena);
  const aot_status_t status = aoth_note_read(exact, size, w->arena, &note, &why);
  free(exact);
  assert_true((status == AOT_OK) == (why == NULL));
  return status;
}

static void every_prefix_is_refused(void **state) {
  const fixture_t *w = *state;
  const size_t step = w->size > 60000 ? 61 : 13;
  for (size_t size = 0; size < 256; size++) assert_int_not_equal(read_exact(w, w->bytes, size), AOT_OK);
  for (size_t size = 256; size < w->size / 2; size += step) read_exact(w, w->bytes, size);
}

static uint64_t random_state = 8;
static uint32_t draw(uint32_t n) { /* xorshift64*, Vigna 2016 */
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return (uint32_t)((random_state * UINT64_C(2685821657736338717)) >> 33) % n;
}

/* Offsets where damage reports: the head, the tables, the note. */
static size_t interesting(const fixture_t *w, size_t note_at) {
  Elf64_Ehdr head;
  memcpy(&head, w->bytes, sizeof head);
  switch (draw(4)) {
    case 0: return draw(sizeof head);
    case 1: return (size_t)head.e_phoff + draw((uint32_t)head.e_phnum * sizeof(Elf64_Phdr));
    case 2: return (size_t)head.e_shoff + draw((uint32_t)head.e_shnum * sizeof(Elf64_Shdr));
    default: return note_at + draw(400);
  }
}

static void damaged_files_end_well(void **state) {
  const fixture_t *w = *state;
  static const unsigned char values[] = {0, 1, 0xff, 0x7f, 0x80, '"', '{', '\\'};
  size_t note_at = 0;
  uint32_t n_read = 0;
  for (size_t i = 0; i + 16 < w->size && !note_at; i++)
    if (memcmp(w->bytes + i, "AOT\0{\"id\"", 9) == 0) note_at = i - 12;
  assert_true(note_at > 0);
  unsigned char *copy = malloc(w->size);
  for (int round = 0; round < 4000; round++) {
    memcpy(copy, w->bytes, w->size);
    for (uint32_t n = 1 + draw(6); n > 0; n--) {
      const size_t at = interesting(w, note_at);
      if (at < w->size) copy[at] = draw(2) ? values[draw(sizeof values)] : (unsigned char)draw(256);
    }
    n_read += read_exact(w, copy, draw(4) ? w->size : draw((uint32_t)w->size)) == AOT_OK;
  }
  free(copy);
  print_message("%u of 4000 damaged files still have a whole note\n", n_read);
  assert_true(n_read > 100 && n_read < 3500);
}

static void other_bytes_are_no_plugin(void **state) {
  const fixture_t *w = *state;
  static const unsigned char text[] = "hello, world; this is certainly not an ELF file, whatever its name may be.";
  assert_int_equal(read_exact(w, text, sizeof text), AOT_E_INVALID);
  assert_int_equal(read_exact(w, text, 0), AOT_E_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_plugin_tells_its_units, setup, teardown),
      cmocka_unit_test_setup_teardown(an_opset_tells_its_claims, setup, teardown),
      cmocka_unit_test_setup_teardown(the_note_is_found_without_sections, setup, teardown),
      cmocka_unit_test_setup_teardown(every_prefix_is_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(damaged_files_end_well, setup, teardown),
      cmocka_unit_test_setup_teardown(other_bytes_are_no_plugin, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
