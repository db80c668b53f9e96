#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tenon/plugins/sdk/requests/linalg.h>

#include "kernels/pointwise/finish.h"
#include "runtime/common.h"

namespace tenon::onednn {
namespace {

enum Operand : size_t { kA, kB, kBias, kY, kKeptB, kOperands };

// Sizes and strides of this and more are left to the base: oneDNN's kernels count in 32 bits.
constexpr int64_t kTooMany = int64_t{1} << 31;
constexpr const char* kTooLarge = "an operand is too large for oneDNN's kernels";

// Multiply-adds below which waking another thread costs more than it saves.
constexpr double kSerialWork = 1 << 19;
// With so few terms, the base computes products more than twice as fast
// (docs/benchmarks.md).
constexpr int64_t kShallow = 4;
// Elements of a matrix in bf16 from which on its product with a vector is left to the core. That
// takes less than half of the time in f32, with the copy to it, where the matrix is in a cache.
constexpr double kSmallVector = 1e5;
// Columns are cut where there are this many times more of them than rows.
constexpr int64_t kColumnsOverRows = 8;
// The least number of columns that a job takes.
constexpr int64_t kMinColumns = 48;
// Elements of f32 in 2 KiB. Rows of an operand that are a multiple of that apart evict each other
// from the first cache.
constexpr int64_t kRowsThatEvict = 2048 / 4;

// The primitive packs a right operand with contiguous columns in every run. With fewer
// rows than this, that takes more than a twentieth of the run. Reordering it once takes as long as
// packing it eight times.
constexpr int64_t kRowsWorthKeeping = 256;
constexpr uint32_t kRunsWorthKeeping = 8;

// oneDNN's kernels for one product are better than those for a batch of one.
std::span<const int64_t> without_batch(std::span<const int64_t> dims, int64_t count) {
  return dims.subspan(count == 1 ? 1 : 0);
}

// A matrix of a product: which of its dimensions is contiguous, and how far the other one steps.
struct Matrix {
  int64_t rows, cols, row, col;  // sizes, strides
  int64_t batch;                 // stride from one matrix to the next; 0: one for all

  // Returns why oneDNN cannot read the matrix, or nothing. The stride of a dimension of size 1 says
  // nothing, and is replaced by one that suits it.
  const char* settle() {
    if (cols == 1 && row != 1) col = 1;
    if (rows == 1) row = col == 1 ? cols : 1;
    if (cols == 1 && row == 1) col = rows;
    const bool by_rows = col == 1 && row >= cols, by_columns = row == 1 && col >= rows;
    if (!by_rows && !by_columns)
      return "neither the rows nor the columns of an operand are contiguous";
    if (std::max(row, col) >= kTooMany) return kTooLarge;
    return nullptr;
  }
  Desc desc(dnnl_data_type_t type, int64_t count) const {
    const int64_t shape[] = {batch == 0 ? 1 : count, rows, cols},
                  strides[] = {batch == 0 ? rows * cols : batch, row, col};
    return strided(type, without_batch(shape, count), without_batch(strides, count));
  }
};

// A part of the result that one job computes. oneDNN's best kernels write rows without gaps, so
// columns are computed in scratch memory and copied from there.
struct Part {
  int64_t first, count, row, rows, column, cols;
  bool in_scratch = false;
  int64_t scratch = 0;  // where it begins there, in bytes
};

// One product or a batch of them.
struct Product {
  sdk::ProductRequest asked;
  dnnl_data_type_t type;
  int64_t batch, m, n, k;
  Matrix a, b;
  bool bias;
  Finish ending;
  // An operand of bf16 that oneDNN cannot read is first copied to scratch memory, row by row.
  bool copies_a = false, copies_b = false;

  Product(const Request& request, const sdk::ProductRequest& r);

  int64_t element() const { return static_cast<int64_t>(dnnl_data_type_size(type)); }
  double work() const { return double(batch) * double(m) * double(n) * double(k); }
  bool transposes() const { return b.row == 1 && b.col != 1; }
  bool worth_keeping() const { return transposes() && batch == 1 && m < kRowsWorthKeeping; }
  bool packs_much() const;
  std::vector<Part> cut(int64_t threads) const;
  // `packed`: the right operand is in the layout that the primitive chooses.
  Primitive primitive(const Part& part, bool packed = false) const;
  std::vector<Argument> arguments(const Primitive& primitive, const Part& part) const;
  bool add_with_kept(Work& work, Kept& kept, const Part& part, const Primitive& plain) const;
  int64_t copied_bytes(bool copies, int64_t rows, int64_t cols) const {
    return copies ? asked.batch * rows * cols * element() : 0;
  }
  void copy_a(const void* from, void* to) const;
  void copy_b(const void* from, void* to) const;
  template <class T>
  void finish(const Part& part, const void* workspace, const void* added, void* y) const;

 private:
  // An operand that oneDNN cannot read where it lies, and why; nothing where it can read both.
  struct Unreadable {
    Operand operand = kOperands;
    const char* why = nullptr;
  };
  Unreadable lay_out();
};

// Of the operator, a bias that is absent included.
uint32_t inputs_of(const Request& request) { return request.op() == "matmul" ? 2 : 3; }

Product::Product(const Request& request, const sdk::ProductRequest& r)
    : asked(r),
      type(compute_type(r.dtype)),
      bias(r.bias),
      ending(Finish::of(request, type, inputs_of(request))) {
  if (base_computes(type) && (r.m == 1 || r.n == 1))
    unsupported("the product of a matrix and a vector is limited by memory, not by computing");
  if (base_computes(type) && r.k <= kShallow)
    unsupported("its sums have so few terms that the base is faster");
  for (Unreadable found; (found = lay_out()).why;) {
    bool& copies = found.operand == kA ? copies_a : copies_b;
    // Another copy would lie as the first one does.
    if (base_computes(type) || copies) unsupported(found.why);
    copies = true;
  }
  if (std::max({m, n, k}) >= kTooMany) unsupported(kTooLarge);
  if (!base_computes(type) && r.n == 1 && double(r.m) * double(r.k) >= kSmallVector)
    unsupported("by a vector on the right f32 is faster");
  // oneDNN 2.6 sets the tiles of AMX up wrongly for some of them, (257, 63) by (63, 11) for one:
  // the process ends with SIGILL.
  if (type == dnnl_bf16 && r.k % 2 != 0 && dnnl_version()->major < 3)
    unsupported("oneDNN 2 may crash on products in bf16 of an odd number of elements a row");
}

Product::Unreadable Product::lay_out() {
  const auto& r = asked;
  batch = r.batch, m = r.m, n = r.n, k = r.k;
  const auto a_step = copies_a ? m * k : r.step_of(r.a_batch),
             b_step = copies_b ? k * n : r.step_of(r.b_batch);
  const char* uneven = "the matrices of a batch do not lie evenly one behind the other";
  if (!a_step) return {kA, uneven};
  if (!b_step) return {kB, uneven};
  a = {m, k, copies_a ? k : r.a_row, copies_a ? 1 : r.a_col, *a_step};
  b = {k, n, copies_b ? n : r.b_row, copies_b ? 1 : r.b_col, *b_step};
  // One right operand for all, and rows that go on from matrix to matrix: a single tall product.
  if (batch > 1 && b.batch == 0 && (m == 1 || a.batch == m * a.row)) {
    if (m == 1) a.row = a.batch;
    m = a.rows = m * batch;
    batch = 1;
  }
  for (auto [operand, x] : {std::pair{kA, &a}, {kB, &b}}) {
    if (const char* why = x->settle()) return {operand, why};
    if (batch > 1 && x->batch != 0 && x->batch < x->rows * x->cols)
      return {operand, "the matrices of a batch overlap"};
  }
  return {};
}

// Copies matrices of bf16 with any strides to rows without gaps; at(i) is where matrix i begins.
template <class At>
void copy_rows(const void* from, void* to, int64_t matrices, int64_t rows, int64_t cols,
               int64_t row, int64_t col, At&& at) {
  sdk::parallel_for(
      host(), matrices * rows, ceil_div(1 << 14, cols), [&](int64_t begin, int64_t end, uint32_t) {
        for (int64_t i = begin; i < end; ++i) {
          const auto* x = static_cast<const uint16_t*>(from) + at(i / rows) + i % rows * row;
          auto* y = static_cast<uint16_t*>(to) + i * cols;
          for (int64_t j = 0; j < cols; ++j) y[j] = x[j * col];
        }
      });
}
void Product::copy_a(const void* from, void* to) const {
  copy_rows(from, to, asked.batch, asked.m, asked.k, asked.a_row, asked.a_col,
            [&](int64_t i) { return asked.offsets(i).a; });
}
void Product::copy_b(const void* from, void* to) const {
  copy_rows(from, to, asked.batch, asked.k, asked.n, asked.b_row, asked.b_col,
            [&](int64_t i) { return asked.offsets(i).b; });
}

// Whether packing the right operand takes a good part of the work: it serves few rows, and lies by
// columns, or so that its rows evict each other. The left one may have to be packed, too.
bool Product::packs_much() const {
  const bool packs_left = a.row == 1 && a.col != 1;
  return type == dnnl_f32 && m < kRowsWorthKeeping && (n >= m || !packs_left) &&
         (transposes() || b.row % kRowsThatEvict == 0);
}

// Into parts of about equal size: whole matrices where there are enough of them, else rows, or
// columns where there are few rows or where each job packs the operand that it does not share:
// half of the columns on two threads instead of all of them twice.
std::vector<Part> Product::cut(int64_t threads) const {
  std::vector<Part> parts;
  const auto pieces = [](int64_t size, int64_t most, int64_t unit, auto&& piece) {
    const int64_t each = ceil_div(ceil_div(size, most), unit) * unit;
    for (int64_t at = 0; at < size; at += each) piece(at, std::min(each, size - at));
  };
  if (work() <= kSerialWork) threads = 1;
  if (batch >= threads) {
    pieces(batch, threads, 1, [&](int64_t first, int64_t count) {
      parts.push_back({first, count, 0, m, 0, n});
    });
    return parts;
  }
  const int64_t each = threads / batch;
  for (int64_t i = 0; i < batch; ++i) {
    if (!(packs_much() && n >= kMinColumns * each) && m * kColumnsOverRows >= n)
      pieces(m, each, 8, [&](int64_t row, int64_t rows) {
        parts.push_back({i, 1, row, rows, 0, n});
      });
    else
      pieces(n, each, type == dnnl_f32 ? 16 : 64, [&](int64_t column, int64_t cols) {
        parts.push_back({i, 1, 0, m, column, cols, cols != n});
      });
  }
  return parts;
}

Primitive Product::primitive(const Part& part, bool packed) const {
  Matrix left = a, right = b;
  left.rows = part.rows, right.cols = part.cols;
  const int64_t matrix[] = {k, part.cols};
  const Desc source = left.desc(type, part.count),
             weight = packed ? any_layout(type, matrix) : right.desc(type, part.count);
  const int64_t shape[] = {part.count, part.rows, part.cols};
  const Desc result = contiguous(type, without_batch(shape, part.count));
  const int64_t bias_shape[] = {1, 1, part.cols};
  const Desc added = contiguous(type, without_batch(bias_shape, part.count));
  dnnl_matmul_desc_t op;
  check(dnnl_matmul_desc_init(&op, &source, &weight, bias ? &added : nullptr, &result),
        "a matrix product");
  return Primitive::make(&op, code_for(type));
}

std::vector<Argument> Product::arguments(const Primitive& primitive, const Part& part) const {
  std::vector<Argument> all;
  const auto add = [&](int name, size_t operand, int64_t at) {
    all.push_back({name, operand, primitive.layout(name), at * element()});
  };
  add(DNNL_ARG_SRC, kA, part.first * a.batch + part.row * a.row);
  add(DNNL_ARG_WEIGHTS, kB, part.first * b.batch + part.column * b.col);
  if (part.in_scratch)
    all.push_back({DNNL_ARG_DST, kWorkspace, primitive.layout(DNNL_ARG_DST), part.scratch});
  else
    add(DNNL_ARG_DST, kY, (part.first * m + part.row) * n);
  if (bias) add(DNNL_ARG_BIAS, kBias, part.column);
  return all;
}

// Adds the job that computes `part` with a right operand that is kept packed. Returns false where
// that would be other code than `plain`, and so might round otherwise.
bool Product::add_with_kept(Work& work, Kept& kept, const Part& part, const Primitive& plain) const
    try {
  const Primitive packed = primitive(part, true);
  if (!packed.name().starts_with("brg") || packed.name() != plain.name()) return false;
  std::vector<Argument> all = arguments(plain, part);
  for (auto& argument : all)
    if (argument.name == DNNL_ARG_WEIGHTS)
      argument = kept.add(DNNL_ARG_WEIGHTS, argument, packed.layout(DNNL_ARG_WEIGHTS));
  work.add({{packed, all}});
  return true;
} catch (const sdk::Error& e) {
  if (e.code() != TN_CODE_UNSUPPORTED) throw;
  return false;  // nothing is packed, or brought into that layout, but by reference code
}

// `added` is the residual, or null.
template <class T>
void Product::finish(const Part& part, const void* workspace, const void* added, void* y) const {
  if (!part.in_scratch && !ending) return;
  const auto* from = reinterpret_cast<const T*>(static_cast<const char*>(workspace) + part.scratch);
  for (int64_t row = part.row; row < part.row + part.rows * part.count; ++row) {
    const int64_t at = (part.first * m + row) * n + part.column;
    T* to = static_cast<T*>(y) + at;
    if (part.in_scratch) std::copy_n(from + row * part.cols, part.cols, to);
    ending(to, added ? static_cast<const T*>(added) + at : nullptr, part.cols);
  }
}

// Where a part has few rows, AVX2 reads the right operand of f32 where it lies, even where its rows
// evict each other. docs/benchmarks.md has how much that takes.
bool evicts_itself(const Product& p) {
  constexpr int64_t kManyRows = 1024, kRowsOfWide = 384, kWide = 1024;
  if (p.type != dnnl_f32 || p.transposes() || p.b.row % kRowsThatEvict != 0) return false;
  const int64_t threads = p.batch == 1 ? thread_count() : 1, rows = ceil_div(p.m, threads);
  return rows < (p.n >= kWide ? kRowsOfWide : kManyRows);
}

// So does the gradient of a weight, whose left operand lies transposed: where the result is narrow,
// AVX2 reads it in place, a column at a time, and worst of all where columns are a multiple of 4
// KiB apart.
bool reads_by_columns(const Product& p) {
  constexpr int64_t kWide = 512, kNarrow = 64, kApart = 4096 / 4;
  const bool transposed = p.a.row == 1 && p.a.col > 1;
  return transposed && p.type == dnnl_f32 && p.n < kWide &&
         (p.n > kNarrow || p.a.col % kApart == 0);
}

// On one core, for the choice between this plan and the base's (docs/benchmarks.md has the
// measurements). Columns are computed by whole vectors, and a right operand whose columns are
// contiguous is transposed into scratch memory first.
uint64_t cost_ns(const Product& p) {
  const auto lanes = static_cast<double>(vector_lanes());
  const bool avx2 = lanes == 8, avx512 = lanes == 16;
  const double width = p.type == dnnl_f32 ? 1 : 2;
  const double columns = std::ceil(static_cast<double>(p.n) / lanes) * lanes;
  const double sums = static_cast<double>(p.m) * columns * static_cast<double>(p.k);
  const double slower = avx2 && (evicts_itself(p) || reads_by_columns(p)) ? 0.6 : 1;
  const double rate = (avx2 ? 47 * slower : 58.0 * lanes / 16) * width;
  const double packing_ns = avx2 ? 0.35 : avx512 ? 0.25 : 0.2;
  const double packing =
      p.transposes() ? packing_ns * static_cast<double>(p.k) * static_cast<double>(p.n) : 0;
  const double count = static_cast<double>(p.batch);
  const double last = p.ending.ns() * static_cast<double>(p.m) * static_cast<double>(p.n);
  return (avx512 ? 1250 : 1500) +
         static_cast<uint64_t>(std::min(count * (sums / rate + packing + last), 0x1p60));
}

tn_plan* make_product(tn_device*, const Request& request) {
  const auto asked = sdk::ProductRequest::from(request);
  if (asked.m == 0 || asked.n == 0 || asked.k == 0 || asked.batch == 0) {
    const auto type = compute_type(asked.dtype);
    if (base_computes(type)) unsupported("an operand has no elements");
    return make_empty_sum(request, asked.bias, 1,
                          Finish::of(request, type, inputs_of(request)).relu);
  }
  const Product product(request, asked);
  auto parts = product.cut(thread_count());
  Work work, work_with_kept;
  const auto reserve = [&](bool copies, int64_t rows, int64_t cols) {
    return work.reserve(static_cast<uint64_t>(product.copied_bytes(copies, rows, cols)));
  };
  for (auto& part : parts)
    if (part.in_scratch)
      part.scratch = work.reserve(static_cast<uint64_t>(part.rows * part.cols * product.element()));
  const int64_t at_a = reserve(product.copies_a, asked.m, asked.k),
                at_b = reserve(product.copies_b, asked.k, asked.n);
  work_with_kept.reserve(work.workspace_bytes());  // the results there are at the same place
  Kept kept(kB, kKeptB, kRunsWorthKeeping);
  bool keeps = product.worth_keeping();
  std::map<std::array<int64_t, 3>, Primitive> known;
  for (auto& part : parts) {
    auto& primitive = known[{part.count, part.rows, part.cols}];
    if (!primitive) primitive = product.primitive(part);
    work.add({{primitive, product.arguments(primitive, part)}});
    keeps = keeps && product.add_with_kept(work_with_kept, kept, part, primitive);
  }
  sdk::PlanOptions options{std::max(work.workspace_bytes(), work_with_kept.workspace_bytes()),
                           cost_ns(product)};
  if (keeps) options.flags = TN_PLAN_INPUT_VERSIONS;
  return sdk::make_plan(
      [product, keeps, at_a, at_b, parts = std::move(parts), work = std::move(work),
       work_with_kept = std::move(work_with_kept),
       kept = std::move(kept)](const tn_run& run) mutable {
        void* y = run.outputs[0];
        void* operands[kOperands] = {run.inputs[0], run.inputs[1],
                                     product.bias ? run.inputs[2] : nullptr, y, nullptr};
        if (product.copies_a)
          product.copy_a(run.inputs[0], operands[kA] = static_cast<char*>(run.workspace) + at_a);
        if (product.copies_b)
          product.copy_b(run.inputs[1], operands[kB] = static_cast<char*>(run.workspace) + at_b);
        const bool there = keeps && kept.provide(operands, sdk::input_version(run, 1));
        const void* added = product.ending.residual_of(run);
        (there ? work_with_kept : work).run(operands, run.workspace, [&](size_t job) {
          if (product.type == dnnl_f32)
            product.finish<float>(parts[job], run.workspace, added, y);
          else
            product.finish<uint16_t>(parts[job], run.workspace, added, y);
        });
      },
      options);
}

const sdk::Kernel products({"matmul", "linear", "linear_relu"}, make_product);

}  // namespace
}  // namespace tenon::onednn
