#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/csv.h>
#include <tenon/data/csv_fields.h>

namespace tenon::data {

struct CsvDataset::Table {
  Tensor data, target;
  std::vector<std::string> names;
  std::string path;
  Table(const std::filesystem::path& path, const CsvOptions& options);
};

namespace {

bool is_missing(std::string_view field) {
  if (field.empty()) return true;
  for (std::string_view word : {"NA", "N/A", "NaN", "nan", "null", "NULL"})
    if (field == word) return true;
  return false;
}

enum class Parsed { number, none, too_large };

// A number of the file, rounded once. What is too small for T is 0.
template <class T>
Parsed parse(std::string_view field, T& number) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char *begin = field.data(), *end = begin + field.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error == std::errc::invalid_argument || at != end) return Parsed::none;
  if (error != std::errc::result_out_of_range) return Parsed::number;
  // It does not say whether the number is too large or too small: the place of its first digit
  // does.
  double places = 0;
  const size_t e = std::min(field.find_first_of("eE"), field.size());
  if (e < field.size()) {
    std::string_view exponent = field.substr(e + 1);
    const bool negative = exponent.starts_with('-');
    if (negative || exponent.starts_with('+')) exponent.remove_prefix(1);
    for (char digit : exponent) places = std::min(places * 10 + (digit - '0'), 1e9);
    if (negative) places = -places;
  }
  const std::string_view digits = field.substr(0, e);
  const size_t first = digits.find_first_of("123456789"), point = std::min(digits.find('.'), e);
  places += static_cast<double>(point) - static_cast<double>(first);
  if (places > 0) return Parsed::too_large;
  number = field[0] == '-' ? -T(0) : T(0);
  return Parsed::number;
}

// A whole number, which may be written as 3.0.
Parsed parse(std::string_view field, int64_t& number) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char *begin = field.data(), *end = begin + field.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (at == end)
    return error == std::errc()                      ? Parsed::number
           : error == std::errc::result_out_of_range ? Parsed::too_large
                                                     : Parsed::none;
  double real = 0;
  if (parse(field, real) != Parsed::number || real != std::floor(real)) return Parsed::none;
  if (!(std::abs(real) < 0x1p53)) return Parsed::too_large;
  number = static_cast<int64_t>(real);
  return Parsed::number;
}

// Columns on their way to a tensor.
class Part {
 public:
  Part(const CsvFields& file, const std::vector<std::string>& names, const CsvOptions& options,
       DType dtype, std::vector<size_t> columns, const std::vector<std::string>& classes)
      : file_(file),
        names_(names),
        options_(options),
        dtype_(dtype),
        columns_(std::move(columns)),
        classes_(classes) {}

  void add_row(const std::vector<std::string_view>& fields) {
    if (dtype_ == DType::f32) return add<float>(fields);
    if (dtype_ == DType::f64) return add<double>(fields);
    return add<int64_t>(fields);
  }
  Tensor tensor(int64_t rows, bool flat) const {
    const Shape shape = flat ? Shape{rows} : Shape{rows, static_cast<int64_t>(columns_.size())};
    const HostTensor result = make_host_tensor(shape, dtype_);
    if (!bytes_.empty()) std::memcpy(result.values, bytes_.data(), bytes_.size());
    return result.tensor;
  }

 private:
  template <class T>
  void add(const std::vector<std::string_view>& fields) {
    const size_t before = bytes_.size();
    bytes_.resize(before + columns_.size() * sizeof(T));
    std::byte* to = bytes_.data() + before;
    for (size_t column : columns_) {
      const T number = value<T>(fields[column], column);
      std::memcpy(to, &number, sizeof(T));
      to += sizeof(T);
    }
  }

  template <class T>
  T value(std::string_view field, size_t column) const {
    T number{};
    if (!classes_.empty()) {
      const auto found = std::find(classes_.begin(), classes_.end(), field);
      if (found == classes_.end())
        fail(column, fmt::format("'{}' is none of the {} classes, the first of which is '{}'",
                                 excerpt(field), classes_.size(), excerpt(classes_[0])));
      return static_cast<T>(found - classes_.begin());
    }
    // NaN has more spellings than is_missing knows, such as "-nan" and "NAN".
    const Parsed parsed = parse(field, number);
    if (is_missing(field) || (parsed == Parsed::number && number != number)) {
      if (std::numeric_limits<T>::has_quiet_NaN && options_.missing_as_nan)
        return std::numeric_limits<T>::quiet_NaN();
      fail(column, std::numeric_limits<T>::has_quiet_NaN
                       ? "the number is missing; missing_as_nan makes NaN of it"
                       : "the number is missing");
    }
    if (parsed == Parsed::none) refuse(field, column);
    if (parsed == Parsed::too_large)
      fail(column, fmt::format("'{}' is too large for {}", excerpt(field), dtype_));
    return number;
  }

  // Refuses a field that is no number, with what its place in the table lets one suspect.
  [[noreturn]] void refuse(std::string_view field, size_t column) const {
    double real = 0;
    std::string why =
        fmt::format("'{}' is no {}number", excerpt(field), dtype_ == DType::i64 ? "whole " : "");
    if (names_.size() == 1)
      why += fmt::format("; the table has this column alone, where '{}' is between columns",
                         printable(std::string(1, options_.delimiter)));
    else if (dtype_ == DType::i64)
      why += parse(field, real) == Parsed::number
                 ? "; for targets that are not whole, set target_dtype"
                 : "; for targets that are names, list them in classes";
    fail(column, why);
  }
  [[noreturn]] void fail(size_t column, const std::string& why) const {
    file_.fail(fmt::format(", column {} ('{}'): {}", column, printable(names_[column]), why));
  }

  const CsvFields& file_;
  const std::vector<std::string>& names_;
  const CsvOptions& options_;
  const DType dtype_;
  const std::vector<size_t> columns_;
  const std::vector<std::string>& classes_;
  std::vector<std::byte> bytes_;
};

void check(const CsvOptions& options) {
  if (std::string_view("\n\r\"\0", 4).find(options.delimiter) != std::string_view::npos ||
      options.delimiter == options.comment)
    throw ValueError(
        "CsvDataset: the delimiter cannot be a line's end, a quote, '\\0' or the sign of comments");
  if (options.dtype != DType::f32 && options.dtype != DType::f64)
    throw DTypeError(fmt::format("CsvDataset: dtype is f32 or f64, not {}", options.dtype));
  if (options.target_dtype != DType::i64 && options.target_dtype != DType::f32 &&
      options.target_dtype != DType::f64)
    throw DTypeError(
        fmt::format("CsvDataset: target_dtype is i64, f32 or f64, not {}", options.target_dtype));
}

// Returns the number of the column that is asked for.
size_t find_column(const CsvFields& file, const std::vector<std::string>& names,
                   const CsvColumn& asked) {
  const auto count = static_cast<int64_t>(names.size());
  const int64_t number = asked.number < 0 ? asked.number + count : asked.number;
  if (!asked.by_name) {
    if (number >= 0 && number < count) return static_cast<size_t>(number);
    file.fail_file(
        fmt::format("there is no column {}; it has {} columns", asked.number, names.size()));
  }
  const auto found = std::find(names.begin(), names.end(), asked.name);
  if (found == names.end()) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
    file.fail_file(fmt::format("there is no column '{}'; its columns are {}", printable(asked.name),
                               excerpt(list)));
  }
  if (std::find(found + 1, names.end(), asked.name) != names.end())
    file.fail_file(
        fmt::format("it has several columns '{}'; give a number", printable(asked.name)));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

CsvDataset::Table::Table(const std::filesystem::path& where, const CsvOptions& options)
    : path(where.string()) {
  check(options);
  naming_lack_of_memory<DataError>("cannot read", where, [&] {
    CsvFields file(where, options.delimiter, options.comment);
    bool more = file.next();
    std::vector<std::string> all;
    for (size_t i = 0; more && i < file.fields().size(); ++i)
      all.push_back(options.header ? std::string(file.fields()[i]) : std::to_string(i));
    if (options.header) more = more && file.next();
    if (!more) file.fail_file("it has no rows");

    std::vector<size_t> inputs, outputs;
    for (const CsvColumn& column : options.target)
      outputs.push_back(find_column(file, all, column));
    for (const CsvColumn& column : options.columns)
      inputs.push_back(find_column(file, all, column));
    for (size_t i = 0; options.columns.empty() && i < all.size(); ++i)
      if (std::find(outputs.begin(), outputs.end(), i) == outputs.end()) inputs.push_back(i);
    for (size_t column : inputs) names.push_back(all[column]);

    const std::vector<std::string> no_classes;
    const bool flat = outputs.size() == 1;
    Part x(file, all, options, options.dtype, inputs, no_classes),
        y(file, all, options, options.target_dtype, outputs, options.classes);
    int64_t rows = 0;
    for (; more; more = file.next(), ++rows) {
      if (file.fields().size() != all.size())
        file.fail(fmt::format(
            " has {} fields, and the table has {} columns, where '{}' is between them",
            file.fields().size(), all.size(), printable(std::string(1, options.delimiter))));
      x.add_row(file.fields());
      y.add_row(file.fields());
    }
    data = x.tensor(rows, false), target = y.tensor(rows, flat);
  });
}

CsvDataset::CsvDataset(const std::filesystem::path& path, const CsvOptions& options)
    : CsvDataset(Table(path, options)) {}

CsvDataset::CsvDataset(Table&& table)
    : TensorDataset(table.data, table.target),
      names_(std::make_shared<const std::vector<std::string>>(std::move(table.names))),
      path_(std::move(table.path)) {}

std::string CsvDataset::name() const { return fmt::format("CsvDataset '{}'", printable(path_)); }

}  // namespace tenon::data
