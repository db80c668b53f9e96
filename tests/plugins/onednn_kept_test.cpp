// The onednn overlay keeps weights in the layout of its primitives while they do not change, and
// never uses a copy of values that have changed since.
#include <cstring>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/dlpack.h>
#include <tenon/core/dlpack_layout.h>
#include <tenon/core/tensor_impl.h>

#include "overlaid.h"

BOOST_AUTO_TEST_SUITE(onednn_kept_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::overlaid;

namespace {

// More than any plan waits for before it keeps a copy.
constexpr int kRuns = 12;

const std::vector<Attr> kNoPadding = {Attr("stride", Dims{1, 1}), Attr("padding", Dims{0, 0}),
                                      Attr("dilation", Dims{1, 1}), Attr("groups", 1)};

// Channels that fill blocks and channels that do not; work that is cut by channels and by images;
// rows of a product, columns of one, and few rows.
std::vector<Case> cases() {
  return {{"conv2d",
           {Desc({1, 48, 9, 9}), Desc({64, 48, 3, 3}), Desc({64})},
           Desc({1, 64, 7, 7}),
           kNoPadding},
          {"conv2d",
           {Desc({6, 20, 9, 9}), Desc({37, 20, 3, 3}), std::nullopt},
           Desc({6, 37, 7, 7}),
           kNoPadding},
          {"conv2d_backward_input",
           {Desc({2, 64, 7, 7}), Desc({64, 48, 3, 3})},
           Desc({2, 48, 9, 9}),
           kNoPadding},
          {"linear", {Desc({40, 200}), Desc({100, 200}), Desc({100})}, Desc({40, 100})},
          {"linear", {Desc({9, 150}), Desc({700, 150}), std::nullopt}, Desc({9, 700})},
          {"linear_relu", {Desc({130, 257}), Desc({65, 257}), Desc({65})}, Desc({130, 65})}};
}

// A plan, and memory of its operands. Input 1 is the weight.
struct Subject {
  Case c;
  tn_dtype dtype;
  Planned planned;
  std::vector<std::vector<char>> data;
  std::vector<char> other;  // another weight

  Subject(const Case& of, tn_dtype type, Planned plan)
      : c(of), dtype(type), planned(std::move(plan)) {
    for (auto& d : c.inputs) data.push_back(bytes_of(random_values(d ? d->extent() : 0), dtype));
    other = bytes_of(random_values(c.inputs[1]->extent()), dtype);
  }
  std::vector<void*> inputs(std::vector<char>& weight) {
    std::vector<void*> pointers;
    for (size_t i = 0; i < data.size(); ++i)
      pointers.push_back(c.inputs[i] ? data[i].data() : nullptr);
    pointers[1] = weight.data();
    return pointers;
  }
  Values run(std::vector<char>& weight, uint64_t version) {
    return planned.run(inputs(weight), std::vector<uint64_t>{91, version, 92});
  }
  Values run(uint64_t version) { return run(data[1], version); }
  // The result of a new plan, which has no copies yet.
  Values expected(std::vector<char>& weight) {
    return both().overlay.plan(c, dtype)->run(inputs(weight));
  }
};

bool same(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void for_each_subject(auto&& f) {
  int subjects = 0;
  for (auto& c : cases())
    for (auto dtype : {TN_F32, TN_BF16}) {
      auto planned = both().overlay.plan(c, dtype);
      if (!planned || !(planned->plan().flags & TN_PLAN_INPUT_VERSIONS)) continue;
      Subject subject(c, dtype, std::move(*planned));
      BOOST_TEST_CONTEXT(c.op << (dtype == TN_BF16 ? " in bf16" : "")) f(subject);
      ++subjects;
    }
  // oneDNN's convolutions want blocks on every CPU.
  BOOST_TEST(subjects >= 3);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_weight_that_stays_is_reordered_once, *where_built()) {
  int kept = 0;
  for_each_subject([&](Subject& s) {
    const Values expected = s.expected(s.data[1]);
    for (int i = 0; i < kRuns; ++i) BOOST_TEST(same(s.run(7), expected), "run " << i);
    // The promise is broken so that it shows which of the two was read. Where oneDNN reads weights
    // as they lie, which depends on the processor, there is no copy.
    const auto weight = s.data[1];
    s.data[1] = s.other;
    const Values found = s.run(7);
    const bool copied = same(found, expected);
    BOOST_TEST((copied || same(found, s.expected(s.data[1]))));
    kept += copied;
    std::memcpy(s.data[1].data(), weight.data(), weight.size());
  });
  BOOST_TEST(kept >= 1);
}

BOOST_AUTO_TEST_CASE(a_weight_that_changes_is_read_again, *where_built()) {
  for_each_subject([](Subject& s) {
    for (int i = 0; i < kRuns; ++i) s.run(7);
    std::memcpy(s.data[1].data(), s.other.data(), s.other.size());
    const Values expected = s.expected(s.data[1]);
    for (int i = 0; i < kRuns; ++i) BOOST_TEST(same(s.run(8), expected), "run " << i);
    // Nothing is known of it, although it is at the same place.
    const auto changed = bytes_of(random_values(s.c.inputs[1]->extent()), s.dtype);
    std::memcpy(s.data[1].data(), changed.data(), changed.size());
    const Values unknown = s.expected(s.data[1]);
    BOOST_TEST(same(s.run(0), unknown));
    BOOST_TEST(same(s.planned.run(s.inputs(s.data[1])), unknown));
    BOOST_TEST(same(s.run(9), unknown));
  });
}

BOOST_AUTO_TEST_CASE(layers_that_share_a_plan_have_copies_of_their_own, *where_built()) {
  for_each_subject([](Subject& s) {
    const Values first = s.expected(s.data[1]), second = s.expected(s.other);
    for (int i = 0; i < kRuns; ++i) {
      // Views of one storage have the same version.
      BOOST_TEST(same(s.run(s.data[1], 7), first), "run " << i);
      BOOST_TEST(same(s.run(s.other, 7), second), "run " << i);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_plan_forgets_weights_that_do_not_come_again, *where_built()) {
  Case c = cases()[0];
  auto planned = both().overlay.plan(c, TN_F32);
  BOOST_REQUIRE(planned);
  Subject s(c, TN_F32, std::move(*planned));
  const Values first = s.expected(s.data[1]), second = s.expected(s.other);
  for (int i = 0; i < kRuns; ++i) s.run(s.data[1], 7);
  for (int i = 0; i < 2200; ++i) s.run(s.other, 8);
  // If the old copy still existed, it would be used and give the first result.
  const auto weight = s.data[1];
  std::memcpy(s.data[1].data(), s.other.data(), s.other.size());
  BOOST_TEST(same(s.run(s.data[1], 7), second));
}

namespace {

// The weight of a layer, changed through the library in every way. `apply` uses it often enough to
// be kept before.
void expect_fresh(Tensor w, auto&& apply) {
  const auto expect = [&](const char* what) {
    for (int i = 0; i < kRuns; ++i)
      BOOST_TEST(
          (apply(w).template to_vector<float>() == apply(w.clone()).template to_vector<float>()),
          what << ", run " << i);
  };
  expect("as it was made");
  w.copy_(rand(w.shape()));
  expect("copy_");
  w.select(0, 3).fill_(0.5);
  expect("a view");
  w.flatten().slice(0, 5, 50).copy_(rand({45}));
  expect("a view of a view");
  {
    Tensor p = w.detach().requires_grad_();
    optim::SGD sgd({p}, {.lr = 0.1});
    (p * p).sum().backward();
    sgd.step();
  }
  expect("an optimizer");
  set_data(w, rand(w.shape()));
  expect("other values");
  w.copy_(rand(w.shape()).to("cpu:1"));
  expect("a copy from another device");
}

}  // namespace

BOOST_AUTO_TEST_CASE(results_are_right_after_every_change, *where_built()) {
  Tensor rows = rand({32, 256}), images = rand({2, 64, 14, 14});
  expect_fresh(rand({256, 256}), [&](const Tensor& w) { return linear(rows, w); });
  expect_fresh(rand({64, 64, 3, 3}), [&](const Tensor& w) { return conv2d(images, w); });
  // Memory that was freed and is used again.
  Tensor before;
  for (int round = 0; round < 4; ++round) {
    Tensor w = rand({256, 256});
    for (int i = 0; i < kRuns; ++i)
      BOOST_TEST((linear(rows, w).to_vector<float>() ==
                  linear(rows.clone(), w.clone()).to_vector<float>()));
  }
}

// Memory that others can write to without being noticed has no version, so no copy of it is kept:
// memory that the user lends to a tensor, and memory whose address was handed out.
BOOST_AUTO_TEST_CASE(memory_that_others_write_to_is_read_again, *where_built()) {
  const Tensor rows = rand({32, 256});
  const auto expect_fresh_values = [&](const Tensor& w, float* memory, const char* what) {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < kRuns; ++i)
        BOOST_TEST(
            (linear(rows, w).to_vector<float>() == linear(rows, w.clone()).to_vector<float>()),
            what << ", round " << round << ", run " << i);
      synchronize();
      for (int64_t i = 0; i < w.numel(); i += 3) memory[i] = static_cast<float>(round + i % 5);
    }
  };
  std::vector<float> lent(256 * 256, 0.25f);
  expect_fresh_values(from_blob(lent.data(), {256, 256}), lent.data(), "adopted");
  const Tensor w = rand({256, 256});
  for (int i = 0; i < kRuns; ++i) linear(rows, w);  // a copy is kept, until it is given away
  DLManagedTensor* given = to_dlpack(w);
  expect_fresh_values(w, static_cast<float*>(given->dl_tensor.data), "exported");
  given->deleter(given);
}

BOOST_AUTO_TEST_SUITE_END()
