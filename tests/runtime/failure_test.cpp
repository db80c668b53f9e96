// What a failure leaves behind: which bytes have no values, and what keeps its values.
#include <algorithm>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor_impl.h>
#include <tenon/tenon.h>

#include "runtime/never_made.h"
#include "sim/faults.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(failure_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

// A view of a matrix, and which of its elements it shows.
struct Window {
  int64_t row, rows, row_step, column, columns, column_step;
  bool transposed;

  static Window random(std::mt19937& engine, int64_t height, int64_t width) {
    auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    Window w{};
    w.row_step = pick(1, 3), w.column_step = pick(1, 3);
    w.row = pick(0, height - 1), w.rows = pick(1, (height - 1 - w.row) / w.row_step + 1);
    w.column = pick(0, width - 1), w.columns = pick(1, (width - 1 - w.column) / w.column_step + 1);
    if (pick(0, 3) == 0) w.column = 0, w.column_step = 1, w.columns = width;  // whole rows
    w.transposed = pick(0, 1);
    return w;
  }
  Tensor of(const Tensor& x) const {
    Tensor v = x.slice(0, row, row + (rows - 1) * row_step + 1, row_step)
                   .slice(1, column, column + (columns - 1) * column_step + 1, column_step);
    return transposed ? v.t() : v;
  }
  bool any(const std::vector<bool>& bad, int64_t width) const {
    bool found = false;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        found |= bad[static_cast<size_t>((row + r * row_step) * width + column + c * column_step)];
    return found;
  }
  void mark(std::vector<bool>& bad, int64_t width, bool value) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        bad[static_cast<size_t>((row + r * row_step) * width + column + c * column_step)] = value;
  }
};

struct Selects : nn::Module<Selects> {
  Tensor mask;
  Tensor forward(const Tensor& x) const { return masked_select(x, mask); }
};

}  // namespace

// ---- which bytes ----

BOOST_AUTO_TEST_CASE(what_was_not_written_is_known_to_the_element) {
  synchronize();
  constexpr int64_t height = 7, width = 10;
  std::mt19937 engine(11);
  for (DType dtype : {f32, f64, u8}) {
    Tensor x = zeros({height, width}, {.dtype = dtype, .device = "sim:0"});
    std::vector<bool> bad(height * width, false);
    int refused = 0, readable = 0;
    for (int i = 0; i < 400; ++i) {
      const Window w = Window::random(engine, height, width);
      const bool fails = std::uniform_int_distribution<int>(0, 4)(engine) == 0 && dtype != u8;
      if (fails)
        w.of(x).fill_(sim::kFailsAtOnce);  // an operator that fails while it writes there
      else
        w.of(x).fill_(1 + i % 100);
      w.mark(bad, width, fails);
      for (int reads = 0; reads < 3; ++reads) {
        const Window r = Window::random(engine, height, width);
        const bool throws = !error_of([&] { r.of(x).to_vector<double>(); }).empty();
        BOOST_REQUIRE_EQUAL(throws, r.any(bad, width));
        throws ? ++refused : ++readable;
      }
      BOOST_REQUIRE_EQUAL(!error_of([&] { x.wait(); }).empty(),
                          std::find(bad.begin(), bad.end(), true) != bad.end());
    }
    if (dtype != u8) BOOST_TEST((refused > 50 && readable > 50));
    while (!error_of([] { synchronize(); }).empty()) {
    }
    x.fill_(1);
    BOOST_TEST(x.sum().item() == 70.0);
  }
}

BOOST_AUTO_TEST_CASE(a_part_that_failed_is_not_read_through_the_whole) {
  synchronize();
  Tensor x = empty({4, 6});
  x.slice(1, 0, 3).fill_(1);
  x.slice(1, 3, 6).copy_(never_made({4, 3}));
  BOOST_TEST(x.slice(1, 0, 3).sum().item() == 12.0);
  BOOST_CHECK_THROW(x.wait(), IndexError);
  BOOST_CHECK_THROW(x.data<float>(), IndexError);
  BOOST_CHECK_THROW(x.str(), IndexError);
  BOOST_CHECK_THROW((x + 1.0).to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(x.to("cpu:1").to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(x.to("sim:0").to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(x.t().clone().to_vector<float>(), IndexError);
  // One element is healed, and no other; then a column, and then the rest.
  x[1].slice(0, 4, 5).fill_(2);
  BOOST_TEST(x[1][4].item() == 2.0);
  BOOST_CHECK_THROW(x[1][3].item(), IndexError);
  BOOST_CHECK_THROW(x[1][5].item(), IndexError);
  x.select(1, 3).fill_(3);
  BOOST_TEST(x.slice(1, 0, 4).sum().item() == 24.0);
  BOOST_CHECK_THROW(x.slice(1, 3, 5).to_vector<float>(), IndexError);
  BOOST_CHECK_THROW(x.select(1, 5).to_vector<float>(), IndexError);
  x.slice(1, 4, 6).t().fill_(0);
  BOOST_TEST(x.sum().item() == 24.0);
}

// Neither the function that waits for it nor its module has anything to do with it.
BOOST_AUTO_TEST_CASE(a_failure_names_what_failed_and_not_who_waited_for_it) {
  synchronize();
  Tensor mask;
  const StreamGraph graph = StreamGraph::capture(
      "sim:0", [&] { mask = ones({4}, {.dtype = boolean, .device = "sim:0"}); });
  const std::string never_replayed = "this tensor is made by a stream graph of sim:0 that";
  const Tensor x = ones({4}, {.device = "sim:0"});
  Selects select;
  select.mask = mask;
  for (const std::string& text :
       {error_of([&] { masked_select(x, mask); }), error_of([&] { select(x); })})
    BOOST_TEST((text.starts_with(never_replayed) && !has(text, "Selects")), text);
  // An error of the call itself has both names.
  require_error<DTypeError>([&] { masked_select(x, x); }, "masked_select: the mask must be bool");
}

// The operator that fails is one that the program did not call itself.
BOOST_AUTO_TEST_CASE(a_failure_names_the_function_of_which_the_operator_is_a_part) {
  synchronize();
  const Tensor scores = zeros({2, 3}), labels = tensor(std::vector<int64_t>{0, 7});
  require_error<IndexError>([&] { nll_loss(scores, labels).wait(); },
                            "\n  in gather: (2, 3), (2, 1) on cpu:0, part of nll_loss");
}

BOOST_AUTO_TEST_CASE(columns_of_a_large_matrix_are_kept_track_of) {
  synchronize();
  constexpr int64_t rows = 3000, columns = 500;
  Tensor x = empty({rows, columns}), bad = never_made({rows});
  for (int64_t c = 0; c < columns; c += 2) x.select(1, c).copy_(bad);
  for (int64_t c = 1; c < columns; c += 2) x.select(1, c).fill_(1);
  BOOST_CHECK_THROW(x.select(1, 250).wait(), IndexError);
  BOOST_TEST(x.select(1, 251).sum().item() == rows);
  BOOST_CHECK_THROW(x[1].to_vector<float>(), IndexError);
  for (int64_t c = 0; c < columns; c += 2) x.select(1, c).fill_(1);
  BOOST_TEST(x.sum().item() == rows * columns);
}

BOOST_AUTO_TEST_CASE(memory_that_is_used_again_has_no_past) {
  synchronize();
  for (int round = 0; round < 20; ++round) {
    for (int64_t n : {10, 1000, 100000}) error_of([&] { never_made({n}).wait(); });
    for (int64_t n : {10, 1000, 100000}) {
      BOOST_TEST(full({n}, 2).sum().item() == 2.0 * n);
      Tensor bytes = empty({n}, {.dtype = u8});
      for (int64_t part = 0; part < 3; ++part) bytes.slice(0, part, n, 3).fill_(1);
      BOOST_TEST(bytes.to(i64).sum().item<int64_t>() == n);
      Tensor pieces[] = {ones({n}), zeros({n})};
      BOOST_TEST(cat(pieces, 0).sum().item() == n);
    }
  }
  BOOST_CHECK_NO_THROW(synchronize());
}

// The first owner's failure may not even have happened when the memory has a new one.
BOOST_AUTO_TEST_CASE(an_empty_tensor_does_not_know_what_failed_in_its_memory_before) {
  synchronize();
  for (int64_t n : {10, 1000, 100000})
    for (const char* device : {"cpu:0", "sim:0"})
      for (bool busy : {false, true}) {
        Tensor before = ones({300, 300}, {.device = device});
        for (int i = 0; busy && i < 20; ++i) before = matmul(before, before) * 1e-3;
        const void* memory = nullptr;
        {
          Tensor bad = empty({n}, {.device = device});
          if (before.device().type() == "sim")
            bad.fill_(sim::kFailsAtOnce);
          else
            bad = never_made({n});
          memory = bad.impl()->storage->data;
        }
        Tensor unwritten = empty({n}, {.device = device});
        // Blocks that other tests have left may fit as well, and be taken first.
        std::vector<Tensor> others;
        for (; unwritten.impl()->storage->data != memory && others.size() < 1000;
             unwritten = empty({n}, {.device = device}))
          others.push_back(unwritten);
        BOOST_REQUIRE(unwritten.impl()->storage->data == memory);
        unwritten.slice(0, 0, n / 2).fill_(1);
        BOOST_CHECK_NO_THROW((unwritten * 2.0).wait());
        BOOST_CHECK_NO_THROW(unwritten.wait());
        BOOST_CHECK_NO_THROW(unwritten.to("cpu:1").wait());
        BOOST_TEST(unwritten.slice(0, 0, n / 2).sum().item() == n / 2);
        while (!error_of([] { synchronize(); }).empty()) {
        }
      }
}

// ---- what keeps its values ----

BOOST_AUTO_TEST_CASE(what_is_skipped_leaves_values_as_they_were) {
  synchronize();
  Tensor w = full({3}, 5), mean = full({2}, 1), var = full({2}, 2);
  w.copy_(never_made({3}));
  w.slice(0, 1, 2).copy_(never_made({1}));
  BOOST_TEST(w.sum().item() == 15.0);
  Tensor y = batch_norm(never_made({4, 2}), mean, var, Tensor(), Tensor(), true, 0.5, 1e-5);
  BOOST_CHECK_THROW(y.wait(), IndexError);
  BOOST_TEST(mean.sum().item() == 2.0);
  BOOST_TEST(var.sum().item() == 4.0);
  while (!error_of([] { synchronize(); }).empty()) {
  }
  w.fill_(1);
  BOOST_TEST(w.sum().item() == 3.0);
}

BOOST_AUTO_TEST_CASE(what_empty_made_has_values_once_they_are_written) {
  synchronize();
  const auto keeps = [](Tensor x, double sum) {
    x.copy_(never_made(x.shape()));
    return error_of([&] { BOOST_TEST(x.sum().item() == sum); }).empty();
  };
  Tensor turned = empty({3, 4}).t();
  turned.fill_(1);
  BOOST_TEST(keeps(turned, 12));
  // Row by row, of which some are written twice and one by its transpose; then what lies in rows
  // that are there.
  Tensor rows = empty({4, 2, 3});
  for (int64_t row : {0, 0, 1}) rows[row].fill_(2);
  BOOST_TEST(keeps(rows[0], 12));
  BOOST_TEST(keeps(rows.slice(0, 0, 2).slice(2, 1, 3), 16));
  rows[2].t().fill_(2);
  BOOST_TEST(keeps(rows[2], 12));
  BOOST_TEST(!keeps(rows.slice(0, 2, 4), 0));
  rows.slice(0, 2, 4).fill_(3);
  BOOST_TEST(keeps(rows, 60));
  // What is written elsewhere says nothing of what lies before it.
  Tensor late = empty({2, 3});
  late[1].fill_(1);
  BOOST_TEST(!keeps(late[0], 0));
  while (!error_of([] { synchronize(); }).empty()) {
  }
}

BOOST_AUTO_TEST_CASE(what_fails_itself_leaves_nobody_knows_what) {
  synchronize();
  Tensor w = full({3}, 5, {.device = "sim:0"});
  w.fill_(sim::kFailsAtOnce);
  for (int i = 0; i < 2; ++i)
    require_error<Error>([&] { w.to_vector<float>(); }, "an accident at once");
  Tensor u = full({3}, 1, {.device = "sim:0"});
  u.copy_(w);
  BOOST_TEST(u.sum().item() == 3.0);
  BOOST_CHECK_NO_THROW(synchronize());
  w.fill_(2);
  BOOST_TEST(w.sum().item() == 6.0);
}

BOOST_AUTO_TEST_SUITE_END()
