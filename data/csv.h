// Tables in text files.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data/tensor_dataset.h>

namespace tenon::data {

// Names a column by its name in the header or by its number from 0 on; negative numbers count from
// the last.
struct CsvColumn {
  // Names the column with this number.
  template <std::integral I>
  CsvColumn(I number) : number(static_cast<int64_t>(number)) {}
  // Name the column with this name.
  CsvColumn(std::string name) : name(std::move(name)), by_name(true) {}
  CsvColumn(const char* name) : CsvColumn(std::string(name)) {}

  // The name if by_name is true; otherwise `number` counts.
  std::string name;
  int64_t number = 0;
  bool by_name = false;
};

// Says how a table is read and what becomes data and target.
struct CsvOptions {
  // True if the first line has the names of the columns.
  bool header = true;
  // Sets the character between two fields.
  char delimiter = ',';
  // Lines that begin with this character are left out; '\0' means that there are none.
  char comment = '\0';
  // Lists the columns that become the data, in this order; if there are none, all but the target.
  std::vector<CsvColumn> columns = {};
  // Lists the columns that become the target; if there are none, the target has the shape (N, 0).
  std::vector<CsvColumn> target = {-1};
  // Sets the dtype of the data, f32 or f64.
  DType dtype = DType::f32;
  // Sets the dtype of the target: i64, for classes, or f32 or f64.
  DType target_dtype = DType::i64;
  // Lists the names of the classes. If there are any, the target is names, which become their
  // numbers in this list.
  std::vector<std::string> classes = {};
  // Makes NaN of a missing number, where the dtype has it. A field is missing if it is empty, or
  // NA, N/A, NaN, nan, null or NULL.
  bool missing_as_nan = false;
};

// The rows of a table in memory: data (N, columns) and target (N), or (N, targets) if there are
// several. Numbers are rounded once, to the nearest number of the dtype, whatever the locale.
// Fields may be quoted ("a,""b"""), lines end in LF, CRLF or CR, empty lines are left out, and a
// file that is packed with gzip is unpacked.
class TENON_API CsvDataset : public TensorDataset {
 public:
  // Reads a table. Throws a DataError that names the file, the line and the column for a field that
  // is missing, or no number that the dtype has, for lines of different numbers of fields, for a
  // quote that does not end, and for a file without rows; a DataError that lists the columns for
  // one that is not there; and a ValueError or DTypeError for options out of range.
  explicit CsvDataset(const std::filesystem::path& path, const CsvOptions& options = {});

  // Returns the names of the data's columns: those of the header, or their numbers.
  const std::vector<std::string>& column_names() const { return *names_; }
  // Returns the name of the class and the path of the file.
  std::string name() const override;

 private:
  struct Table;
  explicit CsvDataset(Table&& table);
  std::shared_ptr<const std::vector<std::string>> names_;
  std::string path_;
};

}  // namespace tenon::data
