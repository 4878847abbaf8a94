/* Pictures of memory plans: well formed whatever the names, bounded whatever the number of steps, maxima stored. */
#include "kit/base/splitmix.h"

#include <cli/inspect/memory_plot.h>
#include <cli/base/svg.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A view by hand: as many holders as wanted, at random, and one step that stands out. */
typedef struct fixture {
  aoth_holder_t *holders;
  uint64_t *alive;
  uint32_t *largest;
  aoth_memory_view_t view;
} fixture_t;

static void make(fixture_t *w, uint64_t n_steps, uint64_t n_buffers, const char *name) {
  uint64_t seed = n_steps + n_buffers;
  memset(w, 0, sizeof *w);
  w->holders = calloc(n_buffers + 1, sizeof *w->holders);
  w->alive = calloc(n_steps + 1, sizeof *w->alive);
  w->largest = calloc(n_buffers + 1, sizeof *w->largest);
  for (uint64_t i = 0; i < n_buffers; i++) {
    const uint32_t first = (uint32_t)(kit_splitmix64(&seed) % n_steps), most = (uint32_t)(n_steps - 1);
    const uint32_t last = first + (uint32_t)(kit_splitmix64(&seed) % 50);
    w->holders[i] = (aoth_holder_t){
        .kind = 1 + (int32_t)(i % 6),
        .first = first,
        .last = last > most ? most : last,
        .nbytes = 1 + kit_splitmix64(&seed) % 5000,
        .place = UINT64_MAX,
        .name = name,
        .type = "f32[2]",
        .op = name,
        .module = name,
    };
  }
  const uint32_t peak = (uint32_t)(n_steps * 2 / 3);
  if (n_buffers)
    w->holders[0] = (aoth_holder_t){
        .kind = 1, .first = peak, .last = peak, .nbytes = 1000000, .name = name, .type = "", .op = "", .module = ""};
  for (uint64_t i = 0; i < n_buffers; i++)
    for (uint32_t t = w->holders[i].first; t <= w->holders[i].last; t++) w->alive[t] += w->holders[i].nbytes;
  w->view = (aoth_memory_view_t){
      .title = name,
      .holders = w->holders,
      .alive = w->alive,
      .largest = w->largest,
      .n_largest = n_buffers ? 1 : 0,
      .peak_alive = w->alive[peak],
      .peak_at = name,
  };
  w->view.plan = (aot_memory_plan_t){
      .n_steps = n_steps,
      .n_buffers = n_buffers,
      .n_forward_steps = n_steps / 2,
      .peak_nbytes = w->alive[peak] + 100,
      .peak_step = peak,
  };
}

static void drop(fixture_t *w) {
  free(w->holders);
  free(w->alive);
  free(w->largest);
}

/* Every tag closed in its order, every & the begin of an entity. Enough for what these writers write. */
static void check_xml(const char *text) {
  char open[32][32];
  int depth = 0;
  for (const char *s = text; *s; s++) {
    if (*s == '&') assert_non_null(memchr(s, ';', 8));
    if (*s != '<') continue;
    char name[32];
    const int closes = s[1] == '/';
    const size_t n = strspn(s + 1 + closes, "abcdefghijklmnopqrstuvwxyz");
    assert_true(n > 0 && n < sizeof name);
    memcpy(name, s + 1 + closes, n);
    name[n] = 0;
    while (*s && *s != '>') { /* attributes hold no '<' */
      s++;
      assert_true(*s != '<');
    }
    if (closes) assert_string_equal(name, open[--depth]);
    else if (s[-1] != '/') strcpy(open[depth++], name);
    assert_true(depth >= 0 && depth < 32);
  }
  assert_int_equal(depth, 0);
}

static void names_cannot_break_out(void **state) {
  fixture_t w;
  kit_text_t svg = {0};
  (void)state;
  make(&w, 40, 60, "</title><script>alert('&\"')</script>]]>");
  const aoth_memory_report_t r = {
      .file = "<a href=\"x\">&", .views = &w.view, .n_views = 1, .budget = 900000, .top = 9};
  assert_int_equal(aoth_memory_svg(&r, &svg), AOT_OK);
  check_xml(svg.data);
  assert_null(strstr(svg.data, "<script"));
  assert_non_null(strstr(svg.data, "am-budget"));
  assert_non_null(strstr(svg.data, "&lt;/title&gt;&lt;script&gt;"));
  svg.size = 0;
  assert_int_equal(aoth_memory_html(&r, &svg), AOT_OK);
  /* the page's own comes first */
  assert_ptr_equal(strstr(svg.data, "<script>"), strstr(svg.data, "<script>\n(function()"));
  assert_null(strstr(svg.data, "alert('"));
  kit_text_deinit(&svg);
  drop(&w);
}

static void files_are_bounded_and_keep_the_maximum(void **state) {
  fixture_t w[5];
  aoth_memory_view_t views[5];
  kit_text_t svg = {0};
  (void)state;
  for (int k = 0; k < 5; k++) {
    make(&w[k], 100000, 30000, "%value of a long name that is not too long");
    views[k] = w[k].view;
  }
  const aoth_memory_report_t r = {.file = "f", .views = views, .n_views = 5, .top = 9};
  assert_int_equal(aoth_memory_svg(&r, &svg), AOT_OK);
  assert_true(svg.size < 5 * 200000);
  check_xml(svg.data);
  uint64_t most = 0;
  for (uint32_t c = 0; c < 480; c++) {
    const uint64_t t = aoth_memory_column(&views[0], c, 480);
    if (views[0].alive[t] > most) most = views[0].alive[t];
  }
  assert_int_equal(most, views[0].peak_alive);
  kit_text_deinit(&svg);
  for (int k = 0; k < 5; k++) drop(&w[k]);
}

static void nothing_to_draw_is_no_failure(void **state) {
  fixture_t w;
  kit_text_t text = {0};
  kit_arena_t *arena = kit_arena_create();
  (void)state;
  for (uint64_t n = 0; n < 3; n++) { /* no step; a step and no buffer; two of each */
    make(&w, n ? n : 1, n > 1 ? 2 : 0, "x");
    if (!n) w.view.plan.n_steps = w.view.plan.n_forward_steps = 0;
    const aoth_memory_report_t r = {.file = "f", .views = &w.view, .n_views = 1, .budget = n ? 1 : 0, .top = 9};
    text.size = 0;
    assert_int_equal(aoth_memory_svg(&r, &text), AOT_OK);
    check_xml(text.data);
    assert_int_equal(aoth_memory_print(&r, arena, &text), AOT_OK);
    drop(&w);
  }
  kit_text_deinit(&text);
  kit_arena_destroy(arena);
}

static void modules_are_grouped_as_deep_as_fits(void **state) {
  static const char *const modules[] = {"h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head", "", "h.0"};
  aoth_holder_t holders[7];
  uint32_t largest[7], n;
  aoth_module_share_t *rows;
  kit_arena_t *arena = kit_arena_create();
  (void)state;
  for (uint32_t i = 0; i < 7; i++) {
    holders[i] = (aoth_holder_t){.kind = 1, .nbytes = 10 + i, .module = modules[i]};
    largest[i] = i;
  }
  const aoth_memory_view_t v = {.holders = holders, .largest = largest, .n_largest = 7};
  assert_int_equal(aoth_memory_by_module(&v, 4, arena, &rows, &n), AOT_OK); /* h.0, h.1, head, none */
  assert_int_equal(n, 4);
  assert_string_equal(rows[0].module, "h.0");
  assert_int_equal(rows[0].nbytes, 10 + 11 + 16);
  assert_int_equal(aoth_memory_by_module(&v, 3, arena, &rows, &n), AOT_OK); /* h, head, none */
  assert_int_equal(n, 3);
  assert_string_equal(rows[0].module, "h");
  assert_int_equal(aoth_memory_by_module(&v, 7, arena, &rows, &n), AOT_OK);
  assert_int_equal(n, 7);
  kit_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_cannot_break_out), cmocka_unit_test(files_are_bounded_and_keep_the_maximum),
      cmocka_unit_test(nothing_to_draw_is_no_failure), cmocka_unit_test(modules_are_grouped_as_deep_as_fits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
