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

// A data set that several others may read.
using SharedDataset = Shared<Dataset>;

// The examples of a data set that have these indices, in this order. Augmentation depends on the
// index in the whole data set.
class TENON_API Subset : public Dataset {
 public:
  // Takes a data set and indices of its examples. Throws an IndexError for an index outside of it,
  // and a ValueError for a null pointer or a data set of negative size.
  Subset(SharedDataset dataset, std::vector<int64_t> indices);

  // Returns the number of indices.
  int64_t size() const override { return static_cast<int64_t>(indices_->size()); }
  // Returns the examples of the data set at indices()[i] for each i of `indices`.
  Batch get_batch(std::span<const int64_t> indices) const override;
  // Returns the example of the data set at indices()[index].
  Example get(int64_t index) const override;
  // Returns "Subset of " and the name of the data set.
  std::string name() const override;
  // Returns the indices in the data set.
  const std::vector<int64_t>& indices() const { return *indices_; }
  // Returns the data set of which this is a part.
  const Dataset& dataset() const { return *dataset_; }

 private:
  int64_t original(int64_t index) const;
  SharedDataset dataset_;
  std::shared_ptr<const std::vector<int64_t>> indices_;
};

// The length of a part for random_split: a number of examples, or a share of them.
struct SplitLength {
  // Takes any number.
  template <class T>
    requires std::is_arithmetic_v<T>
  SplitLength(T value) : value(static_cast<double>(value)) {}
  double value;
};
// Splits a data set at random into parts that do not overlap: random_split(set, {0.9, 0.1}) or
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
  // Takes the data sets. Throws a ValueError if there is none, or a null pointer among them.
  explicit ConcatDataset(std::vector<SharedDataset> datasets);

  // Returns the number of all examples.
  int64_t size() const override { return ends_.back(); }
  // Returns the examples with these indices. Throws a ShapeError if those of two data sets differ
  // in shape, and a DTypeError if they differ in dtype.
  Batch get_batch(std::span<const int64_t> indices) const override;
  // Returns one example, which its data set reads.
  Example get(int64_t index) const override;
  // Returns "ConcatDataset of " and the names of the first three data sets.
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
  // Takes a data set whose data is u8 or f32 images (C, H, W), and the steps. Throws a ValueError
  // for a null pointer.
  TransformedDataset(SharedDataset dataset, Compose steps);

  // Returns the size of the data set.
  int64_t size() const override { return dataset_->size(); }
  // Returns images (N, C, H, W) that went through the steps, and their targets. Throws a DataError
  // that names the example if a step refuses it or its image has another size than the first one,
  // and a ValueError if there are no indices.
  Batch get_batch(std::span<const int64_t> indices) const override;
  // Returns one image (C, H, W) that went through the steps, and its target.
  Example get(int64_t index) const override;
  // Returns "transformed " and the name of the data set.
  std::string name() const override;

 private:
  SharedDataset dataset_;
  Compose steps_;
};

}  // namespace tenon::data
