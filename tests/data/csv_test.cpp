// Tables in text files.
#include <clocale>
#include <cmath>
#include <limits>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/data/csv.h>
#include <tenon/data/loader.h>

#include "packed.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(csv_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;
using Doubles = std::vector<double>;

namespace {

struct File {
  TempFolder folder;
  std::filesystem::path path = folder / "table.csv";
  explicit File(const std::string& text) { write_bytes(path, text); }
};
CsvDataset table(const std::string& text, const CsvOptions& options = {}) {
  return CsvDataset(File(text).path, options);
}
std::string refusal(const std::string& text, const CsvOptions& options = {}) {
  return error_of<DataError>([&] { table(text, options); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_and_classes) {
  const CsvDataset set = table("a,b,label\n1,2.5,0\n-3e2, +.5 ,2\n\n7,8,1");
  BOOST_TEST(set.size() == 3);
  BOOST_TEST((set.data().dtype() == f32));
  BOOST_TEST((set.data().to_vector<double>() == Doubles{1, 2.5, -300, 0.5, 7, 8}));
  BOOST_TEST((set.target().dtype() == i64));
  BOOST_TEST((set.target().to_vector<int>() == std::vector<int>{0, 2, 1}));
  BOOST_TEST((set.column_names() == std::vector<std::string>{"a", "b"}));
  DataLoader loader(set, {.batch_size = 2, .shuffle = false});
  for (auto& [x, y] : loader) BOOST_TEST((x.shape() == Shape{y.size(0), 2}));
}

BOOST_AUTO_TEST_CASE(lines_that_end_in_carriage_returns) {
  const Doubles numbers = {1, 2, 3, 4};
  const CsvDataset old = table("a,b,label\r1,2,0\r\r3,4,1\r");
  BOOST_TEST((old.data().to_vector<double>() == numbers));
  BOOST_TEST(
      (table("#x\ra,b,label\r1,2,0\r\n3,4,1\n", {.comment = '#'}).data().to_vector<double>() ==
       numbers));
  BOOST_TEST((table("\"a\rb\",b,label\r1,2,0").column_names()[0] == "a\rb"));
  // A line is counted once, however it ends.
  for (const char* text : {"a,b\r1,0\rx,1\r", "a,b\r\n1,0\r\nx,1\r\n"})
    BOOST_TEST(refusal(text).find("line 3") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(columns_by_name_and_number) {
  const std::string text = "a;b;c;a\n1;2;3;4\n5;6;7;8\n";
  const CsvDataset set = table(text, {.delimiter = ';',
                                      .columns = {"c", 0, -1},
                                      .target = {"b", 2},
                                      .dtype = f64,
                                      .target_dtype = f32});
  BOOST_TEST((set.data().dtype() == f64));
  BOOST_TEST((set.data().to_vector<double>() == Doubles{3, 1, 4, 7, 5, 8}));
  BOOST_TEST((set.target().shape() == Shape{2, 2}));
  BOOST_TEST((set.target().to_vector<double>() == Doubles{2, 3, 6, 7}));
  BOOST_TEST((set.column_names() == std::vector<std::string>{"c", "a", "a"}));
  const CsvDataset none = table("1,2\n3,4", {.header = false, .target = {}});
  BOOST_TEST((none.data().to_vector<double>() == Doubles{1, 2, 3, 4}));
  BOOST_TEST((none.target().shape() == Shape{2, 0}));
  BOOST_TEST((none.column_names() == std::vector<std::string>{"0", "1"}));
  BOOST_TEST(has(refusal(text, {.delimiter = ';', .columns = {"d"}}),
                 "there is no column 'd'; its columns are 'a', 'b', 'c', 'a'"));
  BOOST_TEST(has(refusal(text, {.delimiter = ';', .columns = {"a"}}),
                 "several columns 'a'; give a number"));
  BOOST_TEST(has(refusal(text, {.delimiter = ';', .target = {4}}),
                 "there is no column 4; it has 4 columns"));
  BOOST_TEST(has(refusal(text, {.delimiter = ';', .target = {-5}}), "there is no column -5"));
}

BOOST_AUTO_TEST_CASE(names_of_classes) {
  const CsvDataset set = table("x,kind\n1,cat\n2,\"dog\"\n3, cat\n", {.classes = {"dog", "cat"}});
  BOOST_TEST((set.target().to_vector<int>() == std::vector<int>{1, 0, 1}));
  BOOST_TEST(has(
      refusal("x,kind\n1,cow\n", {.classes = {"dog", "cat"}}),
      "line 2, column 1 ('kind'): 'cow' is none of the 2 classes, the first of which is 'dog'"));
}

BOOST_AUTO_TEST_CASE(quotes_and_ends_of_lines) {
  const CsvDataset set = table(
      "\xef\xbb\xbf\"a,1\",\"say \"\"b\"\"\",\"two\nlines\"\r\n\"1\",\"-2\" ,3\r\n  "
      "\r\n4,5,\"6\"\r\n",
      {.target = {}});
  BOOST_TEST((set.column_names() == std::vector<std::string>{"a,1", "say \"b\"", "two\nlines"}));
  BOOST_TEST((set.data().to_vector<double>() == Doubles{1, -2, 3, 4, 5, 6}));
  BOOST_TEST((table("a\tb\n1\t2\n", {.delimiter = '\t'}).data().to_vector<double>() == Doubles{1}));
  BOOST_TEST((table("a b\n1 2\n", {.delimiter = ' '}).data().to_vector<double>() == Doubles{1}));
  BOOST_TEST(
      (table("# a \"remark\na,b\n1,2\n# 3,4\n5,6", {.comment = '#'}).target().to_vector<int>() ==
       std::vector<int>{2, 6}));
  BOOST_TEST(has(refusal("a,b\n1,2\n3,\"4\n5,6\n"), "line 3: the quote does not end"));
  BOOST_TEST(
      has(refusal("a,b\n\"1\"x,2\n"), "line 2, field 1: there is text behind the closing quote"));
  // A quote inside of a field is text.
  BOOST_TEST(has(refusal("a,b\n5\"x,2\n"), "line 2, column 0 ('a'): '5\"x' is no number"));
}

BOOST_AUTO_TEST_CASE(what_is_missing) {
  const std::string text = "a,b,y\n1,,0\nNA,2,1\n";
  const CsvDataset set = table(text, {.missing_as_nan = true});
  const Doubles x = set.data().to_vector<double>();
  BOOST_TEST((x[0] == 1 && std::isnan(x[1]) && std::isnan(x[2]) && x[3] == 2));
  BOOST_TEST(has(refusal(text),
                 "table.csv': line 2, column 1 ('b'): the number is missing; missing_as_nan"));
  BOOST_TEST(has(refusal("a,y\n1,\n", {.missing_as_nan = true}),
                 "line 2, column 1 ('y'): the number is missing"));
  BOOST_TEST(std::isnan(
      table("a,y\n1,\n", {.target_dtype = f32, .missing_as_nan = true}).target().item<float>()));
  BOOST_TEST(has(refusal("a,b\n1,2\n3\n"), "line 3 has 1 fields, and the table has 2 columns"));
  BOOST_TEST(has(refusal("a,b\n1,2,3\n"), "line 2 has 3 fields"));
  // However it is spelled.
  for (const char* nan : {"NAN", "-nan", "nan(1)", "-NaN", "+nan"}) {
    const std::string row = std::string("a,y\n") + nan + ",0\n";
    BOOST_TEST(has(refusal(row), "column 0 ('a'): the number is missing; missing_as_nan"), nan);
    BOOST_TEST(std::isnan(table(row, {.missing_as_nan = true}).data().item<float>()), nan);
  }
  BOOST_TEST(has(refusal("a,b\n"), "it has no rows"));
  BOOST_TEST(has(refusal(""), "it has no rows"));
  BOOST_TEST(has(refusal("a,b\n1,x2\n"), "line 2, column 1 ('b'): 'x2' is no whole number"));
  BOOST_TEST(has(refusal("a,b\n0x10,2\n"), "column 0 ('a'): '0x10' is no number"));
  BOOST_TEST(has(refusal("a,b\n1,2.5\n"),
                 "'2.5' is no whole number; for targets that are not whole, set target_dtype"));
  BOOST_TEST(has(refusal("a,b\n1,cat\n"),
                 "'cat' is no whole number; for targets that are names, list them in classes"));
  BOOST_TEST(has(refusal("a;b\n1;2\n"),
                 "column 0 ('a;b'): '1;2' is no whole number; the table has "
                 "this column alone, where ',' is between columns"));
  const CsvDataset tabs = table("a\tb\n\t\n1\t2\n \n",
                                {.delimiter = '\t', .target_dtype = f32, .missing_as_nan = true});
  BOOST_TEST(tabs.size() == 2);
  BOOST_TEST(std::isnan(tabs.data().to_vector<float>()[0]));
  // Lines count as an editor shows them.
  BOOST_TEST(
      has(refusal("a,b\n\n\"1\n\",2\n\nx,1\n"), "line 3, column 0 ('a'): '1\\n' is no number"));
  BOOST_TEST(has(refusal("a,b\n\n1,\"2\n\"\n", {.target_dtype = f32}), "line 3"));
}

BOOST_AUTO_TEST_CASE(numbers_are_rounded_once) {
  // In the middle between two f32, and a little more: by way of f64 it would be rounded down.
  const std::string middle = "1.00000005960464477539062500000000000001";
  const CsvDataset set =
      table(middle + ",9007199254740993,3.0,+4\n-1e-60,-9223372036854775808,1e3,-0\n",
            {.header = false, .columns = {0}, .target = {1, 2, 3}});
  BOOST_TEST((set.data().to_vector<float>() == std::vector<float>{0x1.000002p0f, -0.f}));
  BOOST_TEST(
      (set.target().to_vector<int64_t>() ==
       std::vector<int64_t>{9007199254740993, 3, 4, std::numeric_limits<int64_t>::min(), 1000, 0}));
  auto one = [](const std::string& text, DType dtype) {
    return table(text, {.header = false, .target = {}, .dtype = dtype}).data().item<double>();
  };
  BOOST_TEST(one("0.1", f64) == 0.1);
  BOOST_TEST(one("4.9406564584124654e-324", f64) == 4.9406564584124654e-324);
  BOOST_TEST(one("1e-45", f32) == 0x1p-149);
  BOOST_TEST(one("0." + std::string(400, '0') + "1", f64) == 0);
  BOOST_TEST(one("1e-99999999999", f64) == 0);
  BOOST_TEST(one("-inf", f32) == -std::numeric_limits<double>::infinity());
  for (const char* large : {"1e39", "1e99999999999", "-4e38"})
    BOOST_TEST(has(refusal(large, {.header = false, .target = {}}), "is too large for f32"), large);
  BOOST_TEST(
      has(refusal(std::string(400, '9'), {.header = false, .target = {}}), "too large for f32"));
  BOOST_TEST(has(refusal("1,9223372036854775808", {.header = false}), "too large for i64"));
  BOOST_TEST(has(refusal("1,1e30", {.header = false}), "too large for i64"));
  for (const char* wrong : {"+-1", "1e", "--1", "1 2", "e5", "+", "."})
    BOOST_TEST(has(refusal(wrong, {.header = false, .target = {}}), "is no number"), wrong);
}

BOOST_AUTO_TEST_CASE(large_and_packed_files) {
  std::string text = "a,b,c\n";
  const int rows = tenon::test::kSanitized ? 20'000 : 150'000;  // more than a piece of the file
  for (int i = 0; i < rows; ++i)
    text += std::to_string(i) + ",\"" + std::to_string(i % 7) + ".25\"," + std::to_string(i % 10) +
            "\n";
  for (const std::string& bytes : {text, gzip(text)}) {
    const CsvDataset set = table(bytes, {.dtype = f64});
    BOOST_REQUIRE(set.size() == rows);
    const Doubles x = set.data().to_vector<double>();
    bool equal = true;
    for (int i = 0; i < rows; ++i) equal &= x[2 * i] == i && x[2 * i + 1] == i % 7 + 0.25;
    BOOST_TEST(equal);
  }
  const std::string torn = text + "1,2";
  BOOST_TEST(has(refusal(torn), "line " + std::to_string(rows + 2) + " has 2 fields"));
}

BOOST_AUTO_TEST_CASE(files_with_faults) {
  const TempFolder folder;
  const auto path = folder / "t.csv";
  std::string text = "a,\"b\",y\n";
  for (int i = 0; i < 20; ++i)
    text += std::to_string(i * 0.5) + ",\"" + std::to_string(-i) + "\"," + std::to_string(i) + "\n";
  std::mt19937 random(1);
  const int times = test::kSanitized ? 150 : 500;
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    write_bytes(path, with_faults(text, random));
    const std::string why = error_of<DataError>([&] { CsvDataset set(path); });
    refused += !why.empty();
    if (!why.empty()) BOOST_TEST(has(why, "'" + path.string() + "'"));
  }
  BOOST_TEST(refused > times / 5);
}

BOOST_AUTO_TEST_CASE(options_out_of_range) {
  require_error<ValueError>([] { table("1", {.delimiter = '"'}); }, "the delimiter cannot be");
  require_error<ValueError>([] { table("1", {.delimiter = '#', .comment = '#'}); },
                            "the delimiter cannot be");
  require_error<DTypeError>([] { table("1", {.dtype = i64}); }, "dtype is f32 or f64, not i64");
  require_error<DTypeError>([] { table("1", {.target_dtype = u8}); },
                            "target_dtype is i64, f32 or f64, not u8");
  require_error<DataError>([] { CsvDataset("none.csv"); },
                           "cannot read 'none.csv': there is no such file");
}

BOOST_AUTO_TEST_SUITE_END()
