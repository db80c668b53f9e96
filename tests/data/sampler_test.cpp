// Which examples an epoch has: samplers, parts of data sets, and data sets of one's own.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <boost/test/unit_test.hpp>

#include <tenon/core/random.h>
#include <tenon/core/tensor.h>
#include <tenon/data/augment.h>
#include <tenon/data/loader.h>
#include <tenon/data/reading.h>
#include <tenon/data/subset.h>
#include <tenon/data/tensor_dataset.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(sampler_test)

using namespace tenon;
using namespace tenon::data;
using tenon::test::require_error;
using Indices = std::vector<int64_t>;

namespace {

TensorDataset counted(int64_t count, int64_t first = 0) {
  const Tensor x = arange(static_cast<double>(first), static_cast<double>(first + count)).to(i64);
  return TensorDataset(x, x);
}
Indices read(DataLoader& loader) {
  Indices all;
  for (auto& [x, y] : loader)
    for (int64_t value : x.to_vector<int64_t>()) all.push_back(value);
  return all;
}
Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}
Indices up_to(int64_t count) {
  Indices all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Example i is i ones; it knows the epoch it is read for.
struct Rows : ExampleDataset {
  int64_t fails_at = -1;
  int64_t size() const override { return 9; }
  Example get(int64_t index) const override {
    if (index == fails_at) throw std::runtime_error("the row is torn");
    Random random = reading().random(index);
    return {ones({index % 3 + 1}), tensor(Indices{index, static_cast<int64_t>(reading().epoch),
                                                  static_cast<int64_t>(random.below(1000))})};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(orders) {
  BOOST_TEST((SequentialSampler(4).order(1, 2) == Indices{0, 1, 2, 3}));
  BOOST_TEST((sorted(RandomSampler(50).order(1, 0)) == up_to(50)));
  BOOST_TEST((RandomSampler(50).order(1, 0) != RandomSampler(50).order(1, 1)));
  BOOST_TEST((RandomSampler(50).order(1, 0) != RandomSampler(50).order(2, 0)));
  const Indices many = RandomSampler(5, {.num_samples = 12}).order(0, 0);
  BOOST_TEST((sorted(Indices(many.begin(), many.begin() + 5)) == up_to(5)));
  BOOST_TEST((sorted(Indices(many.begin() + 5, many.begin() + 10)) == up_to(5)));
  BOOST_TEST(many.size() == 12u);
  BOOST_TEST(RandomSampler(5, {.num_samples = 2}).order(0, 0).size() == 2u);
  const Indices drawn = RandomSampler(10, {.replacement = true, .num_samples = 1000}).order(0, 0);
  for (int64_t i = 0; i < 10; ++i)
    BOOST_TEST(std::abs(std::count(drawn.begin(), drawn.end(), i) - 100) < 50);
  BOOST_TEST((sorted(SubsetRandomSampler({3, 5, 8}).order(7, 1)) == Indices{3, 5, 8}));
  require_error<ValueError>([] { RandomSampler(0, {.num_samples = 1}); },
                            "1 samples of an empty data set");
  require_error<ValueError>([] { SequentialSampler(-1); },
                            "the size has to be at least 0, but is -1");
}

BOOST_AUTO_TEST_CASE(weights) {
  const WeightedRandomSampler sampler({0, 1, 3, 0, 4, 0}, 8000);
  const Indices drawn = sampler.order(1, 0);
  std::map<int64_t, int> count;
  for (int64_t index : drawn) ++count[index];
  BOOST_TEST(count.size() == 3u);
  BOOST_TEST(std::abs(count[1] - 1000) < 150);
  BOOST_TEST(std::abs(count[2] - 3000) < 220);
  BOOST_TEST(std::abs(count[4] - 4000) < 230);
  // Without replacement the first is drawn with the same probabilities.
  int first = 0;
  for (uint64_t epoch = 0; epoch < 2000; ++epoch) {
    const Indices two = WeightedRandomSampler({1, 0, 3}, 2, false).order(0, epoch);
    BOOST_REQUIRE((sorted(two) == Indices{0, 2}));
    first += two[0] == 2;
  }
  BOOST_TEST(std::abs(first - 1500) < 100);
  require_error<ValueError>(
      [] {
        WeightedRandomSampler({1, 0}, 2, false);
      },
      "cannot draw 2 samples without replacement of 1 positive weights");
  require_error<ValueError>([] { WeightedRandomSampler({1, -1}, 2); }, "weight 1 is -1");
  require_error<ValueError>([] { WeightedRandomSampler({0, NAN}, 2); }, "weight 1 is nan");
  require_error<ValueError>([] { WeightedRandomSampler({}, 2); },
                            "2 samples with replacement of 0");
  BOOST_TEST(WeightedRandomSampler({}, 0).order(0, 0).empty());
}

BOOST_AUTO_TEST_CASE(processes_share_an_epoch) {
  auto parts = [](int64_t size, int64_t replicas, bool drop_last, uint64_t epoch) {
    Indices all;
    for (int64_t rank = 0; rank < replicas; ++rank) {
      const DistributedSampler sampler(
          size, {.num_replicas = replicas, .rank = rank, .drop_last = drop_last});
      const Indices part = sampler.order(static_cast<uint64_t>(rank), epoch);
      BOOST_TEST(static_cast<int64_t>(part.size()) == sampler.size());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  BOOST_TEST((sorted(parts(12, 3, false, 0)) == up_to(12)));
  BOOST_TEST((parts(12, 3, false, 0) != parts(12, 3, false, 1)));
  const Indices padded = parts(10, 4, false, 0), dropped = parts(10, 4, true, 0);
  BOOST_TEST(padded.size() == 12u);
  BOOST_TEST(std::set<int64_t>(padded.begin(), padded.end()).size() == 10u);
  BOOST_TEST(std::set<int64_t>(dropped.begin(), dropped.end()).size() == 8u);
  BOOST_TEST(parts(1, 3, false, 0).size() == 3u);
  BOOST_TEST(parts(0, 3, false, 0).empty());
  // As PyTorch cuts it: every third of 0 to 9, and the beginning once more.
  BOOST_TEST(
      (DistributedSampler(10, {.num_replicas = 3, .rank = 1, .shuffle = false}).order(0, 0) ==
       Indices{1, 4, 7, 0}));

  auto sampler = std::make_shared<DistributedSampler>(6, DistributedSamplerOptions{});
  DataLoader loader(counted(6), {.batch_size = 6, .sampler = sampler});
  const Indices first = read(loader), second = read(loader);
  BOOST_TEST((first != second));
  sampler->set_epoch(0);
  BOOST_TEST((read(loader) == first));
  BOOST_TEST((read(loader) == first));
  sampler->set_epoch(1);
  BOOST_TEST((read(loader) == second));
  require_error<ValueError>([] { DistributedSampler(6, {.num_replicas = 2, .rank = 2}); },
                            "rank has to be from 0 to 1, but is 2");
}

BOOST_AUTO_TEST_CASE(a_loader_reads_what_its_sampler_says) {
  DataLoader loader(
      counted(10),
      {.batch_size = 4, .workers = 3, .sampler = SubsetRandomSampler({7, 1, 4, 4, 9})});
  BOOST_TEST(loader.size() == 2);
  const Indices first = read(loader), second = read(loader);
  BOOST_TEST((sorted(first) == Indices{1, 4, 4, 7, 9}));
  BOOST_TEST((sorted(second) == sorted(first)));
  loader.set_state({0, 1});  // the second batch of the first epoch
  BOOST_TEST((read(loader) == Indices{first[4]}));

  struct Wrong : Sampler {
    int64_t says = 2;
    Indices given = {0, 10};
    int64_t size() const override { return says; }
    Indices order(uint64_t, uint64_t) const override { return given; }
  } wrong;
  require_error<IndexError>([&] { DataLoader(counted(10), {.sampler = wrong}).begin(); },
                            "the sampler asks for example 10 of TensorDataset, which has 10");
  wrong.says = 3;
  require_error<ValueError>([&] { DataLoader(counted(10), {.sampler = wrong}).begin(); },
                            "the sampler says that its size is 3", "has 2 examples");
  wrong.says = -3;
  require_error<ValueError>([&] { DataLoader(counted(10), {.sampler = wrong}).size(); }, "is -3");
  DataLoader none(counted(10), {.sampler = SequentialSampler(0)});
  BOOST_TEST(read(none).empty());
}

// An example that is drawn again in an epoch is augmented in another way.
BOOST_AUTO_TEST_CASE(repetitions_differ) {
  TensorDataset one(ones({1, 1, 9, 9}).to(u8), zeros({1}));
  one.transform({RandomCrop(9, {.padding = 4})});
  const RandomSampler sampler(1, {.replacement = true, .num_samples = 40});
  auto crops = [&](int64_t batch_size, int workers) {
    DataLoader loader(one, {.batch_size = batch_size, .workers = workers, .sampler = sampler});
    std::vector<std::vector<int>> all;
    for (auto& [x, y] : loader)
      for (int64_t i = 0; i < x.size(0); ++i) all.push_back(x[i].to_vector<int>());
    return all;
  };
  const auto found = crops(8, 0);
  const std::set<std::vector<int>> different(found.begin(), found.end());
  BOOST_TEST(different.size() > 20u);
  BOOST_TEST((crops(8, 3) == found));
}

BOOST_AUTO_TEST_CASE(parts_by_chance) {
  const SharedDataset set = counted(10);
  manual_seed(3);
  const std::vector<Subset> parts = random_split(set, {0.75, 0.25});
  BOOST_TEST(parts[0].size() == 8);  // floor(7.5), and the one that is left
  BOOST_TEST(parts[1].size() == 2);
  Indices all = parts[0].indices();
  BOOST_TEST((random_split(set, {0.75, 0.25})[0].indices() != all));
  manual_seed(3);
  BOOST_TEST((random_split(set, {0.75, 0.25})[0].indices() == all));
  all.insert(all.end(), parts[1].indices().begin(), parts[1].indices().end());
  BOOST_TEST((sorted(all) == up_to(10)));
  const int64_t rest = 4;
  const RandomState generator{.seed = 5};
  BOOST_TEST((random_split(set, {6, rest}, generator)[1].indices() ==
              random_split(set, {6, rest}, generator)[1].indices()));
  BOOST_TEST((random_split(counted(1), {1, 0})[0].size() == 1));
  require_error<ValueError>(
      [&] {
        random_split(set, {6, 3});
      },
      "add up to 10, the size of TensorDataset", "and these are 6, 3");
  require_error<ValueError>([&] { random_split(set, {0.5, 0.6}); }, "these are 0.5, 0.6");
  require_error<ValueError>([&] { random_split(set, {11, -1}); }, "these are 11, -1");
  require_error<ValueError>([&] { random_split(set, {}); }, "these are ");
}

BOOST_AUTO_TEST_CASE(subsets) {
  const Subset part(counted(10), {7, 7, 2});
  BOOST_TEST((part.get_batch(Indices{2, 0}).data.to_vector<int64_t>() == Indices{2, 7}));
  BOOST_TEST(part.get(1).target.item<int64_t>() == 7);
  BOOST_TEST(Subset(part, {2}).get(0).data.item<int64_t>() == 2);
  require_error<IndexError>([&] { part.get(3); },
                            "Subset of TensorDataset: there is no example 3; it has 3");
  require_error<IndexError>([] { Subset(counted(10), {10}); },
                            "no example 10 in TensorDataset; it has 10");
  require_error<ValueError>([] { Subset(std::shared_ptr<const Dataset>(), {}); },
                            "Subset: the data set is null");
}

BOOST_AUTO_TEST_CASE(one_after_the_other) {
  const ConcatDataset both(
      {counted(3), Subset(counted(5, 10), {4, 0}), counted(0), counted(1, 50)});
  BOOST_TEST(both.size() == 6);
  BOOST_TEST((both.get_batch(Indices{5, 0, 3, 2, 4, 3}).data.to_vector<int64_t>() ==
              Indices{50, 0, 14, 2, 10, 14}));
  BOOST_TEST((both.get_batch(Indices{4, 3}).target.to_vector<int64_t>() == Indices{10, 14}));
  BOOST_TEST(both.get(5).data.item<int64_t>() == 50);
  DataLoader loader(both, {.batch_size = 4});
  BOOST_TEST((sorted(read(loader)) == Indices{0, 1, 2, 10, 14, 50}));
  require_error<IndexError>([&] { both.get_batch(Indices{6}); }, "there is no example 6; it has 6");
  const ConcatDataset unlike({counted(3), TensorDataset(zeros({3, 2}), zeros({3}))});
  require_error<DTypeError>(
      [&] {
        unlike.get_batch(Indices{0, 3});
      },
      "the data of one data set is i64, of another f32");
  const ConcatDataset wider({counted(3), TensorDataset(zeros({3, 2}, i64), zeros({3}))});
  require_error<ShapeError>(
      [&] {
        wider.get_batch(Indices{0, 3});
      },
      "has shape (2,) a batch, of another (2, 2)");
  require_error<ValueError>([] { ConcatDataset({}); }, "no data sets given");
}

BOOST_AUTO_TEST_CASE(the_epoch_of_a_data_set_of_ones_own) {
  auto pad = [](std::span<const Example> examples) {
    std::vector<Example> padded;
    for (const Example& example : examples) {
      std::vector<float> row = example.data.to_vector<float>();
      row.resize(3);
      padded.push_back({tensor(row), example.target});
    }
    return collate(padded);
  };
  auto epochs = [&](int workers, uint64_t seed) {
    DataLoader loader(
        Rows(),
        {.batch_size = 4, .shuffle = false, .seed = seed, .workers = workers, .collate = pad});
    std::vector<Indices> found(2);
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& [x, y] : loader)
        for (int64_t i = 0; i < y.size(0); ++i) {
          const Indices row = y[i].to_vector<int64_t>();
          BOOST_TEST(row[1] == epoch);
          BOOST_TEST(x[i].sum().item<int64_t>() == row[0] % 3 + 1);
          found[static_cast<size_t>(epoch)].push_back(row[2]);
        }
    return found;
  };
  const auto expected = epochs(0, 1);
  BOOST_TEST((expected[0] != expected[1]));
  BOOST_TEST((epochs(3, 1) == expected));
  BOOST_TEST((epochs(0, 2) != expected));
  BOOST_TEST((reading().epoch == 0 && reading().batch == 0));
  // Without the function, rows of different lengths cannot be put together.
  DataLoader plain(Rows(), {.batch_size = 2, .shuffle = false});
  require_error<DataError>(
      [&] { read(plain); }, "batch 0 of epoch 0 (examples 0, 1 of Rows)",
      "the data of example 1 of Rows has shape (2,), that of example 0 (1,); examples "
      "of different shapes need a `collate` of their own");
  require_error<ShapeError>(
      [] {
        Rows().get_batch(Indices{7, 6, 3});
      },
      "the data of example 6 of Rows has shape (1,), that of example 7 (2,)");
}

BOOST_AUTO_TEST_CASE(errors_name_the_example_and_its_data_set) {
  Rows rows;
  rows.fails_at = 5;
  for (bool collates : {false, true}) {
    LoaderOptions options{.batch_size = 3, .shuffle = false, .workers = 2};
    if (collates)
      options.collate = [](std::span<const Example> examples) {
        return collate(examples.first(1));
      };
    DataLoader loader(TransformedDataset(rows, {}), options);
    require_error<DataError>([&] { read(loader); }, "of transformed Rows) cannot be made",
                             collates ? "example 0" : "examples 0, 1, 2");
    DataLoader direct(Subset(rows, {5}), options);
    require_error<DataError>([&] { read(direct); }, "of Subset of Rows) cannot be made: ",
                             collates ? "example 0 of Subset of Rows: the row is torn"
                                      : "example 5 of Rows: the row is torn");
  }
  require_error<DataError>([&] { rows.get_batch(Indices{9}); },
                           "example 9 of Rows: there is no such example; the data set has 9");
}

BOOST_AUTO_TEST_CASE(functions_of_ones_own_that_fail) {
  DataLoader collates(counted(4), {.collate = [](std::span<const Example>) -> Batch {
                        throw std::runtime_error("no glue");
                      }});
  require_error<DataError>([&] { read(collates); }, "cannot be made: collate: no glue");
  DataLoader transforms(counted(4), {.transform_batch = [](const Batch&, Random&) -> Batch {
                          throw std::runtime_error("no mixer");
                        }});
  require_error<DataError>([&] { read(transforms); }, "cannot be made: transform_batch: no mixer");
}

BOOST_AUTO_TEST_CASE(images_of_several_sizes) {
  struct Pictures : ExampleDataset {
    int64_t size() const override { return 5; }
    Example get(int64_t index) const override {
      return {full({1, index + 3, index + 4}, static_cast<double>(index)).to(u8), scalar(0)};
    }
  };
  const TransformedDataset set(Pictures(), {RandomCrop(3), Normalize({0}, {1. / 255})});
  const Batch batch = set.get_batch(Indices{4, 1});
  BOOST_TEST((batch.data.shape() == Shape{2, 1, 3, 3}));
  BOOST_TEST(batch.data[0][0][1][1].item<float>() == 4);
  BOOST_TEST((set.get(2).data.shape() == Shape{1, 3, 3}));
  require_error<DataError>([&] { TransformedDataset(counted(2), {RandomCrop(3)}).get(1); },
                           "example 1 of transformed TensorDataset: images have to be (C, H, W)");
  require_error<DataError>([] { TransformedDataset(Pictures(), {RandomCrop(4)}).get(0); },
                           "example 0 of transformed Pictures: RandomCrop: cannot take 4 × 4");
}

BOOST_AUTO_TEST_SUITE_END()
