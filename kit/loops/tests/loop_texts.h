/* Loops of every kind and of sizes that fit nothing, for the tests that run them on targets. */
#ifndef LOOP_TEXTS_H
#define LOOP_TEXTS_H

typedef struct loop_text {
  const char *name, *text;
} loop_text_t;

/* clang-format off */
static const loop_text_t loop_texts[] = {
  {"flat_tail", "loop 1003\nload f32 [1] align 16\nload f32 [0]\nload f32 [1] align 16\n"
                "each f32 f32 \"a * b + c\" a=x0 b=x1 c=x2\nstore f32 [1] align 16 v0\n"},
  {"flat_unaligned", "loop 1003\nload f32 [1]\neach f32 f32 \"exp(a)\" a=x0\nstore f32 [1] v0\n"},
  {"flat_halves", "loop 777\nload bf16 [1] align 16\nload f16 [1] align 16\neach f32 f32 \"tanh(a) + b\" a=x0 b=x1\n"
                  "each f32 bf16 \"a\" a=v0\neach f32 f16 \"a\" a=v0\nstore bf16 [1] align 16 v1\n"
                  "store f16 [1] align 16 v2\n"},
  {"broadcast", "loop 7 x 5 x 24\nload f32 [24, 0, 1] align 16\nload f32 [0, 1, 0]\nload bool [120, 24, 1] align 8\n"
                "each f32 f32 \"b != 0 ? a : c\" a=x0 b=x2 c=x1\nstore f32 [120, 24, 1] align 16 v0\n"},
  {"permuted", "loop 6 x 9 x 10\nload f32 [1, 6, 54]\nload i64 [90, 10, 1] align 16\neach f32 f32 \"a * b\" a=x0 b=x1\n"
               "each i64 i32 \"a + b\" a=x1 b=3\nstore f32 [90, 10, 1] v0\nstore i32 [90, 10, 1] v1\n"},
  {"integers", "loop 6 x 9 x 10\nload i64 [1, 6, 54]\nload i32 [0, 10, 1]\nload u8 [90, 10, 1]\nload i8 [90, 10, 1]\n"
               "load i16 [0, 0, 1]\neach i64 i16 \"a - b\" a=x4 b=x3\neach i64 i8 \"a >> b\" a=x3 b=1\n"
               "each i64 bool \"a < b\" a=x0 b=x2\neach i64 u8 \"a & b\" a=x2 b=x1\nstore i16 [90, 10, 1] v0\n"
               "store i8 [90, 10, 1] v1\nstore bool [90, 10, 1] v2\nstore u8 [90, 10, 1] v3\n"},
  {"doubles", "loop 301\nload f64 [1] align 16\nload f32 [1] align 16\neach f64 f64 \"a * exp(b)\" a=x0 b=x1\n"
              "store f64 [1] align 16 v0\n"},
  {"one", "loop 1\nload f32 [0]\neach f32 f32 \"a + b\" a=x0 b=1\nstore f32 [1] v0\n"},
  {"none", "loop 0\nload f32 [1]\neach f32 f32 \"a + b\" a=x0 b=1\nstore f32 [1] v0\n"},
  {"softmax_long", "loop 3 x 5000 reduced 1\nload f32 [5000, 1] align 16\nmax f32 f32 \"a\" a=x0\n"
                   "each f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%0\" %0=v1\neach f64 f32 \"T(1) / %0\" %0=v2\n"
                   "each f32 f32 \"%0 * %1\" %0=v1 %1=v3\nstore f32 [5000, 1] align 16 v4\n"},
  {"softmax_endless", "loop 2 x 70001 reduced 1\nload f32 [70001, 1]\nmax f32 f32 \"a\" a=x0\n"
                      "each f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%0\" %0=v1\n"
                      "each f64 f32 \"T(1) / %0\" %0=v2\neach f32 f32 \"%0 * %1\" %0=v1 %1=v3\nstore f32 [70001, 1] v4\n"},
  {"softmax_odd", "loop 5 x 33 reduced 1\nload bf16 [33, 1]\nmax f32 f32 \"a\" a=x0\n"
                  "each f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%0\" %0=v1\neach f64 f32 \"T(1) / %0\" %0=v2\n"
                  "each f32 bf16 \"%0 * %1\" %0=v1 %1=v3\nstore bf16 [33, 1] v4\n"},
  {"loss_of_halves", "loop 9 x 1000 reduced 1\nload bf16 [1000, 1] align 16\nload i64 [1, 0]\nload f64 [0, 0]\n"
                     "max f32 f32 \"a\" a=x0\neach f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%0\" %0=v1\n"
                     "each i64 bool \"@ == b\" b=x1\nmax f32 f32 \"%0 != 0 ? a : -T(INFINITY)\" a=x0 %0=v3\n"
                     "across f64 f64 \"(log(%0) + %1 - %2) * a\" a=x2 %0=v2 %1=v0 %2=v4\neach f64 f32 \"T(1) / %0\" %0=v2\n"
                     "each f32 bf16 \"%0 * %1 - (%2 != 0 ? T(1) : T(0))\" %0=v1 %1=v6 %2=v3\n"
                     "store f64 [0, 0] v5\nstore bf16 [1000, 1] align 16 v7\n"},
  {"dropout_masks", "loop 5003\nload i64 [0]\nload i64 [0]\ndraw u32 [1] seed=x0 offset=x1\neach f32 f32 \"unit(d)\" d=d2\n"
                    "each f32 bool \"a < b\" a=v0 b=0.9\neach f32 bf16 \"a\" a=v1\neach f32 bool \"a >= b\" a=v0 b=0.3\n"
                    "each f32 bf16 \"a\" a=v3\neach f32 bool \"a < b\" a=v0 b=1.0\nstore bf16 [1] align 16 v2\n"
                    "store bf16 [1] align 16 v4\nstore bool [1] align 16 v5\n"},
  {"gelu_of_halves", "loop 1003\nload bf16 [1] align 16\neach f32 bf16 \"a * normal_or_nan(a)\" a=x0\n"
                     "store bf16 [1] align 16 v0\n"},
  {"ranked_places", "loop 3001 x 12 reduced 0\nload i64 [1, 0]\nload f32 [12, 1] align 16\n"
                    "each f32 f32 \"a\" a=x1\nstore f32 [0, 1] at x0 * 12 of 70 add v0\n"},
  {"places_of_two_rows", "loop 2600 x 136 reduced 0\nload i64 [1, 0]\nload f32 [136, 1] align 16\neach i64 bool \"a == b\" a=x0 b=1\n"
                         "each f32 f32 \"b != 0 ? a * T(0.5) : a\" a=x1 b=v0\nstore f32 [0, 1] align 16 at x0 * 136 of 2 add v1\n"},
  {"places_of_one_row", "loop 1300 x 9 reduced 0\nload i64 [1, 0]\nload f32 [9, 1]\neach f32 f32 \"a\" a=x1\n"
                        "store f32 [0, 1] at x0 * 9 of 1 add v0\n"},
  {"places_apart", "loop 1030 x 260 reduced 0\nload i64 [1, 0]\nload f32 [260, 1] align 16\neach f32 f32 \"a\" a=x1\n"
                   "store f32 [0, 1] align 16 at x0 * 260 of 5000 add v0\n"},
  {"short_rows", "loop 2048 x 93 reduced 1\nload bf16 [96, 1] align 16\nload f32 [0, 1] align 16\nsum f32 f64 \"a\" a=x0\n"
                 "each f64 f32 \"%0 / #\" %0=v0\nsum f32 f64 \"(a - %1) * (a - %1)\" a=x0 %1=v1\nmax f32 f32 \"a\" a=x0\n"
                 "each f32 bf16 \"(a - %1) * b + %3\" a=x0 b=x1 %1=v1 %3=v3\neach f64 f32 \"%2\" %2=v2\n"
                 "store bf16 [96, 1] align 16 v4\nstore f32 [1, 0] row v5\n"},
  {"short_rows_with_sums", "loop 1024 x 96 reduced 1\nload bf16 [96, 1] align 16\nload bf16 [96, 1] align 16\nsum f32 f64 \"a\" a=x0\n"
                           "sum f32 f64 \"a * b\" a=x0 b=x1\neach f32 bf16 \"a - %0 * b * %1\" a=x0 b=x1 %0=v0 %1=v1\n"
                           "across f32 f64 \"a\" a=v2\nacross f32 f64 \"a * b\" a=x0 b=x1\nstore bf16 [96, 1] align 16 v2\n"
                           "store f64 [0, 1] v3\nstore f64 [0, 1] v4\n"},
  {"row_of_none", "loop 4 x 0 reduced 1\nload f32 [0, 1]\nsum f32 f32 \"a\" a=x0\nstore f32 [1, 0] row v0\n"},
  {"rows_of_integers", "loop 70 x 45 reduced 1\nload i32 [45, 1]\nsum i64 i64 \"a\" a=x0\nmax i64 i64 \"a\" a=x0\n"
                       "min i64 i64 \"a\" a=x0\nprod f32 f32 \"a * b\" a=x0 b=0.3\nstore i64 [1, 0] row v0\n"
                       "store i64 [1, 0] row v1\nstore i64 [1, 0] row v2\nstore f32 [1, 0] row v3\n"},
  {"places_in_rows", "loop 70 x 45 reduced 1\nload i32 [45, 1]\nmax i64 i64 \"a\" a=x0\n"
                     "each i64 i64 \"a == %0 ? @ : 0x7fffffffffffffff\" a=x0 %0=v0\nmin i64 i64 \"%1\" %1=v1\n"
                     "each i64 i64 \"a * @\" a=x0\nstore i64 [1, 0] row v2\nstore i64 [45, 1] v3\n"},
  {"places_in_columns", "loop 50 x 300 reduced 0\nload f32 [300, 1] align 16\nsum f64 f64 \"a * @\" a=x0\n"
                        "store f64 [0, 1] row v0\n"},
  {"rows_apart", "loop 40 x 19 reduced 1\nload f32 [1, 40]\nsum f32 f64 \"a\" a=x0\neach f64 f32 \"%0 / #\" %0=v0\n"
                 "each f32 f32 \"a - %0\" a=x0 %0=v1\nstore f32 [1, 40] v2\n"},
  {"rows_in_doubles", "loop 9 x 300 reduced 1\nload f64 [300, 1] align 16\nsum f64 f64 \"a\" a=x0\n"
                      "each f64 f64 \"%0 / #\" %0=v0\nstore f64 [1, 0] row v1\n"},
  {"widened_sum", "loop 9 x 300 reduced 1\nload f32 [300, 1] align 16\nsum f32 f64 \"a\" a=x0\nstore f64 [1, 0] row v0\n"},
  {"parts_of_rows", "loop 2 x 100003 reduced 1\nload f32 [100003, 1]\nload f32 [1, 0]\nsum f32 f64 \"a * b\" a=x0 b=x1\n"
                    "max f32 f32 \"a\" a=x0\neach f64 f32 \"sqrt(fabs(%0)) + %1\" %0=v0 %1=v1\nstore f32 [1, 0] row v2\n"},
  {"parts_of_one", "loop 65536 reduced 0\nload f32 [1] align 16\nsum f32 f64 \"a * a\" a=x0\n"
                   "each f64 f32 \"%0 / #\" %0=v0\nstore f32 [0] row v1\n"},
  {"columns_apart", "loop 37 x 515 reduced 0\nload bf16 [515, 1]\nload f32 [0, 1]\nload f32 [1, 0]\n"
                    "each f32 f32 \"a * b + c\" a=x0 b=x1 c=x2\nsum f32 f32 \"%0\" %0=v0\neach f32 f32 \"%0 + b\" b=x1 %0=v1\n"
                    "store f32 [515, 1] v0\nstore f32 [0, 1] row v2\n"},
  {"columns_in_parts", "loop 3000 x 24 reduced 0\nload bf16 [24, 1] align 16\nload f32 [24, 1] align 16\n"
                       "sum f32 f32 \"a * b\" a=x0 b=x1\nmax f32 f32 \"b\" b=x1\nstore f32 [0, 1] row v0\n"
                       "store f32 [0, 1] row v1\n"},
  {"many_columns", "loop 400 x 64 reduced 0\nload f64 [64, 1] align 16\nload bf16 [64, 1] align 16\nsum f64 f64 \"a\" a=x0\n"
                   "sum f64 f64 \"a * a\" a=x0\nmax f64 f64 \"a\" a=x0\nmin f64 f64 \"a\" a=x0\nsum f64 f64 \"a * b\" a=x0 b=x1\n"
                   "sum f64 f64 \"b\" b=x1\nprod f64 f64 \"a\" a=x0\nstore f64 [0, 1] row v0\nstore f64 [0, 1] row v1\n"
                   "store f64 [0, 1] row v2\nstore f64 [0, 1] row v3\nstore f64 [0, 1] row v4\nstore f64 [0, 1] row v5\n"
                   "store f64 [0, 1] row v6\n"},
  {"across_of_warps", "loop 3001 x 64 reduced 1\nload f32 [64, 1] align 16\nload bf16 [64, 1] align 16\nload f32 [1, 0]\n"
                      "each f32 f32 \"a * f\" a=x0 f=x2\nsum f32 f64 \"%0 * b\" b=x1 %0=v0\neach f32 f32 \"%0 - %1 / #\" %0=v0 %1=v1\n"
                      "across f32 f64 \"%0 * b\" b=x1 %0=v0\nacross f32 f64 \"a\" a=x1\nacross f64 f64 \"%0 * %0\" %0=v1\n"
                      "store f32 [64, 1] align 16 v2\nstore f64 [0, 1] v3\nstore f64 [0, 1] v4\nstore f64 [0, 0] v5\n"},
  {"across_of_blocks", "loop 300 x 1500 reduced 1\nload f32 [1500, 1] align 16\nload f32 [0, 1] align 16\nsum f32 f64 \"a * b\" a=x0 b=x1\n"
                       "each f32 f32 \"a - %0 / #\" a=x0 %0=v0\nacross f32 f64 \"%0\" %0=v1\nstore f32 [1500, 1] align 16 v1\n"
                       "store f64 [0, 1] v2\n"},
  {"across_of_few", "loop 3 x 40 reduced 1\nload f32 [40, 1]\nsum f32 f32 \"a\" a=x0\nacross f32 f64 \"a * a\" a=x0\n"
                    "store f32 [1, 0] row v0\nstore f64 [0, 1] v1\n"},
  {"across_of_rows", "loop 70 x 33 reduced 1\nload f32 [33, 1]\nmax f32 f32 \"a\" a=x0\nacross f32 f64 \"%0\" %0=v0\n"
                     "each f32 f32 \"a - %0\" a=x0 %0=v0\nstore f64 [0, 0] v1\nstore f32 [33, 1] v2\n"},
  {"across_of_endless", "loop 5 x 6001 reduced 1\nload f32 [6001, 1]\nload f32 [6001, 1]\nload bf16 [6001, 1]\nsum f32 f64 \"a * b\" a=x0 b=x1\n"
                        "each f32 f32 \"a - %0 * b / #\" a=x0 b=x2 %0=v0\nacross f32 f64 \"%0\" %0=v1\nacross f32 f64 \"a * b\" a=x1 b=x2\n"
                        "across f32 f64 \"%0\" %0=v0\nstore f32 [6001, 1] v1\nstore f64 [0, 1] v2\nstore f64 [0, 1] v3\nstore f64 [0, 0] v4\n"},
  {"across_as_columns", "loop 300 x 40 reduced 1\nload f32 [40, 1] align 16\nload bf16 [40, 1] align 16\nload f32 [0, 1] align 16\n"
                        "each f32 bf16 \"a * b + c\" a=x0 b=x1 c=x2\nacross f32 f32 \"a\" a=v0\nacross f32 f32 \"a * b\" a=x0 b=x1\n"
                        "store bf16 [40, 1] align 16 v0\nstore f64 [0, 1] v1\nstore f64 [0, 1] v2\n"},
  {"rows_in_shared", "loop 40 x 50008 reduced 1\nload bf16 [50008, 1] align 16\nmax f32 f32 \"a\" a=x0\neach f32 f32 \"exp(a - %0)\" a=x0 %0=v0\n"
                     "sum f32 f64 \"%1\" %1=v1\neach f64 f32 \"T(1) / %2\" %2=v2\neach f32 bf16 \"%1 * %3 * T(1000)\" %1=v1 %3=v3\n"
                     "store bf16 [50008, 1] align 16 v4\n"},
  {"long_rows_in_shared", "loop 3 x 14 x 33001 reduced 2\nload f32 [462014, 33001, 1]\nload f32 [0, 0, 1]\nload f32 [14, 1, 0]\nmax f32 f32 \"a * b\" a=x0 b=x1\n"
                          "each f32 f32 \"a - %0 + b\" a=x0 b=x2 %0=v0\nacross f32 f64 \"%0\" %0=v0\nstore f32 [462014, 33001, 1] v1\nstore f64 [0, 0, 0] v2\n"},
  {"across_of_teams", "loop 200 x 768 reduced 1\nload bf16 [768, 1] align 16\nload f32 [768, 1] align 16\nload f32 [1, 0]\nload f32 [0, 1] align 16\n"
                      "each f32 f32 \"a * b\" a=x0 b=x3\nsum f32 f32 \"a * b\" a=v0 b=x1\neach f32 f32 \"a - b * %0 / #\" a=v0 b=x2 %0=v1\n"
                      "across f32 f32 \"a * b\" a=x0 b=x1\nacross f32 f32 \"a\" a=x0\nacross f32 f32 \"%0\" %0=v1\nstore f32 [768, 1] align 16 v2\n"
                      "store f64 [0, 1] v3\nstore f64 [0, 1] v4\nstore f64 [0, 0] v5\n"},
  {"scans_of_blocks", "loop 5 x 1501 reduced 1\nload f32 [1501, 1]\nload i64 [1501, 1]\nrunning sum f32 f32 \"a\" a=x0\n"
                      "running max f32 f32 \"a\" a=x0\nrunning sum i64 i64 \"a\" a=x1\nsum f32 f32 \"a\" a=x0\n"
                      "each f32 f32 \"a + b\" a=v0 b=v3\nstore f32 [1501, 1] v4\nstore f32 [1501, 1] v1\nstore i64 [1501, 1] v2\n"
                      "store f32 [1, 0] row v3\n"},
  {"scans_of_warps", "loop 9 x 50 reduced 1\nload f32 [50, 1]\nload bf16 [50, 1]\nrunning log-add f32 f32 \"a\" a=x0\n"
                     "running min f32 bf16 \"a\" a=x1\nrunning prod f32 f32 \"a * T(0.7)\" a=x0\nrunning sum f32 f64 \"a\" a=x0\n"
                     "store f32 [50, 1] v0\nstore bf16 [50, 1] v1\nstore f32 [50, 1] v2\nstore f64 [50, 1] v3\n"},
  {"scans_in_passes", "loop 4 x 700 reduced 1\nload f32 [700, 1]\neach f32 f32 \"exp(a)\" a=x0\nrunning sum f32 f32 \"a\" a=v0\n"
                      "sum f32 f32 \"a\" a=v0\neach f32 f32 \"a / b\" a=v1 b=v2\neach f32 f32 \"log(a)\" a=v3\nstore f32 [700, 1] v4\n"},
  {"counts", "loop 40 x 700\nload f32 [700, 1] align 16\ncount i64 [700, 1]\ncount i64 [1, 0]\ncount i64 [0, 1]\n"
             "each f64 f32 \"a + b * 0.5\" a=x1 b=x2\neach f32 f32 \"a > b ? c : 0\" a=x3 b=x2 c=x0\n"
             "each i64 i64 \"a - b\" a=x3 b=x2\nstore f32 [700, 1] align 16 v0\nstore f32 [700, 1] align 16 v1\n"
             "store i64 [700, 1] align 16 v2\n"},
  {"counts_of_rows", "loop 40 x 700 reduced 1\nload f32 [700, 1] align 16\ncount i64 [3, 2]\nsum f32 f32 \"a * b\" a=x0 b=x1\n"
                     "max i64 i64 \"a\" a=x1\nstore f32 [1, 0] row v0\nstore i64 [1, 0] row v1\n"},
  {"extremes_and_places", "loop 4 x 700 reduced 1\nload f32 [700, 1]\nrunning max f32 f32 \"a\" a=x0\n"
                          "each f32 i64 \"a == %0 ? @ : 0\" a=x0 %0=v0\nrunning max i64 i64 \"a\" a=v1\n"
                          "store f32 [700, 1] v0\nstore i64 [700, 1] v2\n"},
  {"scan_apart", "loop 400 x 37 reduced 0\nload f32 [37, 1]\nrunning sum f32 f32 \"a\" a=x0\nstore f32 [37, 1] v0\n"},
  {"columns_of_batches", "loop 3 x 500 x 40 reduced 1\nload f32 [20000, 40, 1] align 16\nsum f32 f32 \"a\" a=x0\n"
                         "store f32 [40, 0, 1] row v0\n"},
  {"drawn", "loop 1030\nload i64 [0]\nload i64 [0]\nload f32 [1] align 16\ndraw u32 [1] seed=x0 offset=x1\n"
            "each f32 f32 \"unit(d)\" d=d3\neach f32 bool \"a >= b\" a=v0 b=0.1\neach f32 f32 \"a * b\" a=x2 b=v1\n"
            "store f32 [1] align 16 v2\nstore bool [1] align 16 v1\n"},
  {"drawn_apart", "loop 30 x 21\nload i64 [0, 0]\nload i64 [0, 0]\ndraw u64 [1, 30] seed=x0 offset=x1\n"
                  "draw f32 [21, 1] seed=x0 offset=x1\ndraw f64 [21, 1] seed=x0 offset=x1\n"
                  "each i64 i64 \"(int64_t)(d >> 1)\" d=d2\neach f32 f32 \"d\" d=d3\neach f64 f64 \"d\" d=d4\n"
                  "store i64 [21, 1] v0\nstore f32 [21, 1] v1\nstore f64 [21, 1] v2\n"},
  {"drawn_rows", "loop 6 x 48 reduced 1\nload i64 [0, 0]\nload i64 [0, 0]\nload f32 [48, 1] align 16\n"
                 "draw u32 [48, 1] seed=x0 offset=x1\neach f32 f32 \"unit(d)\" d=d3\neach f32 f32 \"a < T(0.3) ? T(0) : b\" a=v0 b=x2\n"
                 "sum f32 f64 \"a\" a=v1\neach f64 f32 \"%0 / #\" %0=v2\neach f32 f32 \"a - %0\" a=v1 %0=v3\n"
                 "store f32 [48, 1] align 16 v4\n"},
  {"embedding", "loop 6 x 48\nload i64 [1, 0]\nload bf16 [0, 1] at x0 * 48 of 11 align 16\nload f32 [48, 1] align 16\n"
                "each f32 f32 \"a + b\" a=x1 b=x2\nstore f32 [48, 1] align 16 v0\n"},
  {"embedding_rows", "loop 6 x 48 reduced 1\nload i64 [1, 0]\nload f32 [0, 1] at x0 * 48 of 11 align 16\n"
                     "sum f32 f64 \"a\" a=x1\neach f64 f32 \"%0 / #\" %0=v0\neach f32 f32 \"a - %0\" a=x1 %0=v1\n"
                     "store f32 [48, 1] align 16 v2\n"},
  {"gathered_columns", "loop 90 x 24 reduced 0\nload i32 [24, 1]\nload i64 [1, 0]\nload f32 [0, 0] at x0 * 3 of 7 wraps, x1 * 1 of 3\n"
                       "load f32 [0, 1] at x1 * 24 of 3 align 16\nsum f32 f32 \"a * b\" a=x2 b=x3\nstore f32 [0, 1] row v0\n"},
  {"bounds_by_vectors", "loop 9 x 40\nload f32 [16, 1] in 0: 2..7, 1: 8..24 else 0.5 align 16\nload bf16 [40, 1] align 16\n"
                        "load f32 [20, 1] in 1: 0..20 else x1 align 16\neach f32 f32 \"a + b\" a=x0 b=x2\n"
                        "store f32 [40, 1] align 16 v0\n"},
  {"bounds_of_one", "loop 1001\nload f32 [1] in 0: 3..900 else -1.0\nload f32 [1] in 0: -2..700 else x0\n"
                    "each f32 f32 \"a + b\" a=x0 b=x1\nstore f32 [1] align 16 v0\n"},
  {"bounds_of_rows", "loop 9 x 40 reduced 1\nload f32 [16, 1] in 0: 2..7, 1: 8..24 else 0.0 align 16\nload f32 [37, 1] in 1: 1..38 else 0.25\n"
                     "max f32 f32 \"a + b\" a=x0 b=x1\neach f32 f32 \"a - %0 + b\" a=x0 b=x1 %0=v0\n"
                     "store f32 [40, 1] align 16 v1\n"},
  {"bounds_of_columns", "loop 300 x 40 reduced 0\nload f32 [16, 1] in 0: 20..270, 1: 8..24 else 0.0 align 16\n"
                        "load f32 [0, 1] in 1: 3..40 else 1.0\nsum f32 f32 \"a * b\" a=x0 b=x1\nstore f32 [0, 1] row v0\n"},
  {"places_of_rows", "loop 600 x 28 reduced 0\nload i64 [1, 0]\nload f32 [28, 1] align 16\neach i64 bool \"a == b\" a=x0 b=3\n"
                     "each f32 f32 \"b != 0 ? T(0) : a\" a=x1 b=v0\nstore f32 [0, 1] align 16 at x0 * 28 of 11 add v1\n"},
  {"places_unaligned", "loop 600 x 3 x 7 reduced 0\nload i64 [1, 0, 0]\nload i32 [1, 0, 0]\nload f64 [21, 7, 1]\n"
                       "each f64 f64 \"a * b\" a=x2 b=0.5\nstore f64 [0, 400, 1] at x0 * 8 of 9 wraps, x1 * 80 of 5 add v0\n"},
  {"place_of_most", "loop 3000 reduced 0\nload i32 [1]\nload i64 [1]\neach i64 i64 \"a\" a=x1\nstore i64 [0] at x0 * 1 of 2 add v0\n"},
  {"last_of_places", "loop 300 x 28 reduced 0\nload i64 [1, 0]\nload bf16 [28, 1] align 16\neach f32 bf16 \"a\" a=x1\n"
                     "store bf16 [0, 1] at x0 * 28 of 40 v0\n"},
  {"places_of_columns", "loop 50 x 33 reduced 0\nload i64 [33, 1]\nload f32 [33, 1]\neach f32 f32 \"a * b\" a=x1 b=0.5\n"
                        "store f32 [0, 1] at x0 * 33 of 7 add v0\n"},
  {"places_of_batches", "loop 4 x 70 x 5 reduced 1\nload i32 [70, 1, 0]\nload f32 [350, 5, 1]\neach f32 f32 \"a\" a=x1\n"
                        "store f32 [100, 0, 1] at x0 * 5 of 20 wraps add v0\n"},
  {"few_places", "loop 9 x 40 reduced 0\nload i64 [1, 0]\nload f32 [40, 1] align 16\neach f32 f32 \"a\" a=x1\n"
                 "store f32 [0, 1] at x0 * 40 of 5 add v0\n"},
  {"one_place", "loop 103\nload i64 [0]\nload f32 [1] align 16\neach f32 f32 \"a\" a=x1\n"
                "store f32 [1] align 16 at x0 * 103 of 5 add v0\n"},
  {"runs_of_rows", "loop 24 x 6 x 520 reduced 1 2\nload bf16 [520, 12480, 1] align 16\nsum f32 f32 \"a\" a=x0\n"
                  "each f32 bf16 \"%0\" %0=v0\nstore bf16 [1, 0, 0] row v1\n"},
  {"runs_of_columns", "loop 12 x 72 x 50 reduced 0 2\nload f32 [72, 1, 0] align 16\nload bf16 [3600, 1, 72] align 16\n"
                     "sum f32 f32 \"a * b\" a=x0 b=x1\nstore f32 [0, 1, 0] row v0\n"},
  {"runs_in_passes", "loop 5 x 3 x 700 reduced 1 2\nload f32 [700, 3500, 1]\nload f32 [0, 700, 1]\n"
                    "max f32 f32 \"a\" a=x0\neach f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%0\" %0=v1\n"
                    "each f32 f32 \"%0 / %1 * b\" b=x1 %0=v1 %1=v2\n"
                    "each f32 i64 \"a == %0 ? @ : 0x7fffffffffffffff\" a=x0 %0=v0\nmin i64 i64 \"%0\" %0=v4\n"
                    "store f32 [2100, 700, 1] v3\nstore i64 [1, 0, 0] row v5\n"},
  {"runs_of_places", "loop 5 x 40 x 72 reduced 0 1\nload i64 [0, 1, 0]\nload f32 [2880, 72, 1]\neach f32 f32 \"a\" a=x1\n"
                    "store f32 [0, 0, 1] at x0 * 72 of 2 add v0\n"},
  {"short_runs", "loop 7 x 3 x 5 x 2 reduced 0 1 3\nload f32 [30, 10, 2, 1]\nload f16 [1, 7, 21, 105]\n"
                "sum f64 f64 \"a * b\" a=x0 b=x1\neach f64 f32 \"%0 / #\" %0=v0\nstore f32 [0, 0, 1, 0] row v1\n"},
  {"runs_of_a_whole", "loop 3 x 40 x 700 reduced 0 1 2\nload bf16 [800, 2400, 1] align 16\nload f32 [0, 0, 1]\n"
                     "sum f32 f64 \"a * b\" a=x0 b=x1\nmax f32 f32 \"a\" a=x0\nstore f64 [0, 0, 0] row v0\n"
                     "store f32 [0, 0, 0] row v1\n"},
  {"many_runs_of_columns", "loop 40 x 24 x 70 reduced 0 2\nload bf16 [24, 1, 960] align 16\nsum f32 f32 \"a\" a=x0\n"
                          "each f32 bf16 \"%0 / #\" %0=v0\nstore bf16 [0, 1, 0] row v1\n"},
  {"loss_of_odd_rows", "loop 9 x 90 reduced 1\nload bf16 [96, 1] align 16\nload i64 [1, 0]\nload f64 [0, 0]\n"
                       "max f32 f32 \"a\" a=x0\neach f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%1\" %1=v1\n"
                       "each i64 bool \"@ == b\" b=x1\nmax f32 f32 \"%3 != 0 ? a : -T(INFINITY)\" a=x0 %3=v3\n"
                       "across f64 f64 \"(log(%2) + %0 - %4) * h\" h=x2 %0=v0 %2=v2 %4=v4\n"
                       "each f64 f32 \"T(1) / %2\" %2=v2\n"
                       "each f32 bf16 \"%1 * %6 - (%3 != 0 ? T(1) : T(0))\" %1=v1 %3=v3 %6=v6\n"
                       "store f64 [0, 0] v5\nstore bf16 [96, 1] align 16 v7\n"},
  {"odd_rows_across", "loop 40 x 333 reduced 1\nload f32 [336, 1] align 16\nload bf16 [336, 1] align 16\n"
                      "load f32 [1, 0]\neach f32 f32 \"b * c\" b=x1 c=x2\nsum f32 f64 \"a * %0\" a=x0 %0=v0\n"
                      "each f32 f32 \"a - %1 / #\" a=x0 %1=v1\nacross f32 f64 \"a * %0\" a=x0 %0=v0\n"
                      "store f32 [336, 1] align 16 v2\nstore f64 [0, 1] v3\n"},
  {"odd_rows_long", "loop 20 x 9001 reduced 1\nload f32 [9004, 1] align 16\nload f32 [0, 1] align 16\nmax f32 f32 \"a + b\" a=x0 b=x1\n"
                    "across f32 f64 \"a\" a=x0\neach f32 f32 \"a - %0\" a=x0 %0=v0\nstore f64 [0, 1] v1\n"
                    "store f32 [9004, 1] align 16 v2\n"},
  {"odd_row", "loop 1 x 40001 reduced 1\nload f32 [0, 1] align 16\nload bf16 [0, 1] align 16\nsum f32 f64 \"a\" a=x0\n"
              "max f32 f32 \"a * b\" a=x0 b=x1\nstore f32 [0, 0] row v0\nstore f32 [0, 0] row v1\n"},
  {"runs_across", "loop 9 x 3 x 20 reduced 1 2\nload f32 [20, 180, 1]\nsum f32 f64 \"a\" a=x0\n"
                 "across f32 f64 \"a * %0\" a=x0 %0=v0\neach f64 f32 \"a / %0\" a=x0 %0=v0\nstore f64 [0, 20, 1] v1\n"
                 "store f32 [20, 180, 1] v2\n"},
};
/* clang-format on */
enum { N_LOOP_TEXTS = sizeof loop_texts / sizeof *loop_texts };

#endif
