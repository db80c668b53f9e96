// Data sets that are made of others: a part, parts by chance, several behind each other, and one
// whose images are transformed.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include <tenon/core/random.h>
#include <tenon/data/dataset.h>
#include <tenon/data/image.h>
#include <tenon/data/shared.h>

namespace tenon::data {

using SharedDataset = Shared<Dataset>;

// The examples of a data set that have these indices, in this order. Augmentation depends on the
// index in the whole data set.
class TENON_API Subset : public Dataset {
 public:
  // Throws an IndexError for an index outside of the data set, and a ValueError for a null pointer.
  Subset(SharedDataset dataset, std::vector<int64_t> indices);

  int64_t size() const override { return static_cast<int64_t>(indices_->size()); }
  Batch get_batch(std::span<const int64_t> indices) const override;
  Example get(int64_t index) const override;
  std::string name() const override;
  const std::vector<int64_t>& indices() const { return *indices_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  int64_t original(int64_t index) const;
  SharedDataset dataset_;
  std::shared_ptr<const std::vector<int64_t>> indices_;
};

// A number of examples, or a share of them.
struct SplitLength {
  template <class T>
    requires std::is_arithmetic_v<T>
  SplitLength(T value) : value(static_cast<double>(value)) {}
  double value;
};
// Splits a data set by chance into parts that do not overlap: random_split(set, {0.9, 0.1}) or
// random_split(set, {50000, 10000}). Shares add up to 1; what their rounding leaves over goes to
// the first parts, one each. The order is drawn from Tenon's generator, so that manual_seed decides
// it, or from `generator` (RandomState{.seed = 42}). Throws a ValueError unless the lengths are
// whole numbers that add up to the size of the data set, or shares that add up to 1.
TENON_API std::vector<Subset> random_split(const SharedDataset& dataset,
                                           const std::vector<SplitLength>& lengths,
                                           std::optional<RandomState> generator = {});

// The examples of several data sets, one after the other.
class TENON_API ConcatDataset : public Dataset {
 public:
  // Throws a ValueError if there is none, or a null pointer among them.
  explicit ConcatDataset(std::vector<SharedDataset> datasets);

  int64_t size() const override { return ends_.back(); }
  // Throws a ShapeError or DTypeError if the examples of two data sets differ.
  Batch get_batch(std::span<const int64_t> indices) const override;
  Example get(int64_t index) const override;
  std::string name() const override;

 private:
  size_t part_of(int64_t index) const;
  int64_t begin_of(size_t part) const { return part ? ends_[part - 1] : 0; }
  std::vector<SharedDataset> datasets_;
  std::vector<int64_t> ends_;  // the number of examples up to the end of each data set
};

// A data set whose images go through steps, one by one, so that they may differ in size before
// that. TensorDataset::transform and ImageFolderOptions::transform do the same faster.
class TENON_API TransformedDataset : public Dataset {
 public:
  // The data of the examples has to be u8 or f32 images (C, H, W). Throws a ValueError for a null
  // pointer.
  TransformedDataset(SharedDataset dataset, Compose steps);

  int64_t size() const override { return dataset_->size(); }
  // Throws a DataError that names the example if a step refuses it.
  Batch get_batch(std::span<const int64_t> indices) const override;
  Example get(int64_t index) const override;
  std::string name() const override;

 private:
  SharedDataset dataset_;
  Compose steps_;
};

}  // namespace tenon::data
