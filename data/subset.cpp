#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/image_batch.h>
#include <tenon/data/naming.h>
#include <tenon/data/random.h>
#include <tenon/data/reading.h>
#include <tenon/data/subset.h>

namespace tenon::data {
namespace {

SharedDataset checked(const char* who, SharedDataset dataset) {
  if (!dataset) throw ValueError(fmt::format("{}: the data set is null", who));
  if (const int64_t size = dataset->size(); size < 0)
    throw ValueError(fmt::format("{}: {} says that its size is {}; it has to be at least 0", who,
                                 dataset->name(), size));
  return dataset;
}

void require_index(const Dataset& dataset, int64_t index) {
  if (index < 0 || index >= dataset.size())
    throw IndexError(fmt::format("{}: there is no example {}; it has {}", dataset.name(), index,
                                 dataset.size()));
}

// Copies rows of parts of a batch to their places in the whole.
class Scatter {
 public:
  explicit Scatter(size_t count) : count_(count) {}
  void put(const Tensor& part, std::span<const size_t> places, const char* what) {
    const Tensor rows = on_host(part);
    Shape shape = rows.shape();
    if (shape.empty() || shape[0] != static_cast<int64_t>(places.size()))
      throw ShapeError(fmt::format("ConcatDataset: a batch of {} examples has {} of shape {}",
                                   places.size(), what, shape));
    shape[0] = static_cast<int64_t>(count_);
    if (!whole_.tensor.defined()) whole_ = make_host_tensor(shape, rows.dtype());
    if (whole_.tensor.dtype() != rows.dtype())
      throw DTypeError(fmt::format("ConcatDataset: the {} of one data set is {}, of another {}",
                                   what, whole_.tensor.dtype(), rows.dtype()));
    if (whole_.tensor.shape() != shape)
      throw ShapeError(
          fmt::format("ConcatDataset: the {} of one data set has shape {} a batch, of another {}",
                      what, whole_.tensor.shape(), shape));
    const size_t bytes = static_cast<size_t>(rows.numel()) / places.size() * size_of(rows.dtype());
    auto* from = static_cast<const std::byte*>(host_values(rows));
    for (size_t i = 0; bytes && i < places.size(); ++i)
      std::memcpy(static_cast<std::byte*>(whole_.values) + places[i] * bytes, from + i * bytes,
                  bytes);
  }
  const Tensor& tensor() const { return whole_.tensor; }

 private:
  const size_t count_;
  HostTensor whole_{Tensor(), nullptr};
};

}  // namespace

Subset::Subset(SharedDataset dataset, std::vector<int64_t> indices)
    : dataset_(checked("Subset", std::move(dataset))) {
  const int64_t size = dataset_->size();
  for (int64_t index : indices)
    if (index < 0 || index >= size)
      throw IndexError(fmt::format("Subset: there is no example {} in {}; it has {}", index,
                                   dataset_->name(), size));
  indices_ = std::make_shared<const std::vector<int64_t>>(std::move(indices));
}

int64_t Subset::original(int64_t index) const {
  require_index(*this, index);
  return (*indices_)[static_cast<size_t>(index)];
}

Batch Subset::get_batch(std::span<const int64_t> indices) const {
  std::vector<int64_t> originals(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) originals[i] = original(indices[i]);
  return dataset_->get_batch(originals);
}
Example Subset::get(int64_t index) const { return dataset_->get(original(index)); }
std::string Subset::name() const { return "Subset of " + dataset_->name(); }

std::vector<Subset> random_split(const SharedDataset& dataset,
                                 const std::vector<SplitLength>& lengths,
                                 std::optional<RandomState> generator) {
  checked("random_split", dataset);
  const int64_t size = dataset->size();
  double sum = 0;
  std::string given;
  bool shares = true, whole = true;
  for (const SplitLength& length : lengths) {
    sum += length.value;
    given += (given.empty() ? "" : ", ") + number_text(length.value);
    shares &= length.value >= 0 && length.value <= 1;
    whole &= length.value >= 0 && length.value == std::floor(length.value);
  }
  shares &= std::abs(sum - 1) < 1e-9 && !(whole && size == 1);
  whole &= sum == static_cast<double>(size);
  if (!shares && !whole)
    throw ValueError(fmt::format(
        "random_split: lengths are numbers of examples that add up to {}, the size of {}, or "
        "shares that add up to 1, and these are {}",
        size, dataset->name(), given));
  std::vector<int64_t> counts;
  for (const SplitLength& length : lengths)
    counts.push_back(static_cast<int64_t>(
        shares ? std::floor(static_cast<double>(size) * length.value) : length.value));
  const int64_t left = size - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (int64_t i = 0; i < left; ++i) ++counts[static_cast<size_t>(i) % counts.size()];

  const RandomState state = generator ? *generator : next_random();
  const std::vector<int64_t> order = permutation(size, state.seed, ~state.offset);
  std::vector<Subset> parts;
  auto next = order.begin();
  for (int64_t count : counts) {
    parts.emplace_back(dataset, std::vector<int64_t>(next, next + count));
    next += count;
  }
  return parts;
}

ConcatDataset::ConcatDataset(std::vector<SharedDataset> datasets) : datasets_(std::move(datasets)) {
  if (datasets_.empty()) throw ValueError("ConcatDataset: no data sets given");
  int64_t end = 0;
  for (const SharedDataset& dataset : datasets_) {
    checked("ConcatDataset", dataset);
    if (__builtin_add_overflow(end, dataset->size(), &end))
      throw ValueError("ConcatDataset: the data sets have more examples than can be counted");
    ends_.push_back(end);
  }
}

size_t ConcatDataset::part_of(int64_t index) const {
  require_index(*this, index);
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
}

Batch ConcatDataset::get_batch(std::span<const int64_t> indices) const {
  std::vector<std::vector<int64_t>> asked(datasets_.size());
  std::vector<std::vector<size_t>> places(datasets_.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t part = part_of(indices[i]);
    asked[part].push_back(indices[i] - begin_of(part));
    places[part].push_back(i);
  }
  Scatter data(indices.size()), target(indices.size());
  for (size_t part = 0; part < datasets_.size(); ++part) {
    if (asked[part].empty()) continue;
    Batch batch = datasets_[part]->get_batch(asked[part]);
    if (asked[part].size() == indices.size()) return batch;
    data.put(batch.data, places[part], "data");
    target.put(batch.target, places[part], "target");
  }
  if (indices.empty()) return datasets_[0]->get_batch({});
  return {data.tensor(), target.tensor()};
}

Example ConcatDataset::get(int64_t index) const {
  const size_t part = part_of(index);
  return datasets_[part]->get(index - begin_of(part));
}

std::string ConcatDataset::name() const {
  std::string names;
  for (size_t i = 0; i < datasets_.size() && i < 3; ++i)
    names += (i ? ", " : "") + datasets_[i]->name();
  return "ConcatDataset of " + names + (datasets_.size() > 3 ? ", …" : "");
}

TransformedDataset::TransformedDataset(SharedDataset dataset, Compose steps)
    : dataset_(checked("TransformedDataset", std::move(dataset))), steps_(std::move(steps)) {}

Batch TransformedDataset::get_batch(std::span<const int64_t> indices) const {
  if (indices.empty()) throw ValueError("TransformedDataset: no examples asked for");
  const std::vector<Example> examples = get_examples(*dataset_, indices);
  ImageBatch images(indices.size());
  std::vector<Example> targets;
  Image image;
  Reading now = reading();
  for (size_t i = 0; i < indices.size(); ++i)
    naming_example(*this, indices[i], [&] {
      const Tensor pixels = on_host(examples[i].data);
      if (pixels.dim() != 3)
        throw ShapeError(
            fmt::format("images have to be (C, H, W), and its data has shape {}", pixels.shape()));
      image.assign(host_values(pixels), pixels.dtype(), pixels.size(0), pixels.size(1),
                   pixels.size(2));
      now.place = i;
      Random random = now.random(indices[i]).at(1);  // other numbers than the data set itself draws
      steps_(image, random);
      images.put(i, image);
      targets.push_back({examples[i].target, examples[i].target});
    });
  return {images.tensor(), collate(targets, indices, *this).target};
}

Example TransformedDataset::get(int64_t index) const {
  require_index(*this, index);
  Batch batch = get_batch({&index, 1});
  return {batch.data[0], batch.target[0]};
}

std::string TransformedDataset::name() const { return "transformed " + dataset_->name(); }

}  // namespace tenon::data
