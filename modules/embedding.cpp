#include <limits>

#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>
#include <tenon/modules/embedding.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

// The samples that a table starts with, in which a row for padding is 0; counts it from the front.
template <class Options>
Parameter table(const char* layer, int64_t count, int64_t dim, std::optional<int64_t>& padding_idx,
                const Options& o) {
  require(count >= 0, layer, "num_embeddings", static_cast<double>(count), "at least 0");
  require(dim >= 0, layer, "embedding_dim", static_cast<double>(dim), "at least 0");
  if (o.max_norm) require(*o.max_norm >= 0, layer, "max_norm", *o.max_norm, "at least 0");
  require(o.norm_type > 0, layer, "norm_type", o.norm_type, "above 0");
  Tensor values = init::normal_(empty({count, dim}, o.tensor));
  if (padding_idx) {
    require(*padding_idx >= -count && *padding_idx < count, layer, "padding_idx",
            static_cast<double>(*padding_idx),
            "a row: at least -num_embeddings and less than num_embeddings");
    if (*padding_idx < 0) *padding_idx += count;
    init::zeros_(values.select(0, *padding_idx));
  }
  return Parameter(values);
}

// Scales the rows of these indices that are longer than max_norm, in the table itself; of equal
// indices each writes the same.
void shorten_rows(const Tensor& weight, const Tensor& indices, std::optional<double> max_norm,
                  double norm_type) {
  if (!max_norm || indices.numel() == 0) return;
  const NoGrad guard;
  const Tensor all = indices.flatten().to(i64), rows = embedding(all, weight);
  const Tensor wide = is_floating_point(rows.dtype()) && rows.dtype() != f64 ? rows.to(f32) : rows;
  const Tensor lengths = norm(wide, norm_type, {1}, true);
  const Tensor shorter = wide * (*max_norm / (lengths + 1e-7));
  Tensor(weight).index_put_({all}, where(gt(lengths, *max_norm), shorter, wide).to(rows.dtype()));
}

// What a table's options add to a printed model.
std::string norm_repr(std::optional<double> max_norm, double norm_type) {
  std::string text;
  if (max_norm) text = fmt::format(", max_norm={}", repr(*max_norm));
  return norm_type == 2 ? text : fmt::format("{}, norm_type={}", text, repr(norm_type));
}

}  // namespace

Embedding::Embedding(int64_t count, int64_t dim, const EmbeddingOptions& options)
    : num_embeddings(count),
      embedding_dim(dim),
      padding_idx(options.padding_idx),
      max_norm(options.max_norm),
      norm_type(options.norm_type) {
  weight = table("Embedding", count, dim, padding_idx, options);
}

Tensor Embedding::forward(const Tensor& indices) const {
  if (max_norm) shorten_rows(weight, indices, max_norm, norm_type);
  return embedding(indices, weight, padding_idx.value_or(-1));
}

void Embedding::fields(FieldVisitor& v) { v("weight", weight); }

std::string Embedding::extra_repr() const {
  std::string text = fmt::format("{}, {}", num_embeddings, embedding_dim);
  if (padding_idx) text += fmt::format(", padding_idx={}", *padding_idx);
  return text + norm_repr(max_norm, norm_type);
}

// ---- EmbeddingBag

namespace {

// All indices in a row, and to which bag each belongs.
struct Bags {
  Tensor indices, bag;
  int64_t count = 0, wanted = 0;  // the first `wanted` bags are the result
};

[[noreturn]] void refuse_bag(const std::string& why) {
  throw ShapeError(fmt::format("EmbeddingBag: {}", why));
}

// Places are whole numbers; others would be cut off.
void require_numbers(const char* what, const Tensor& t) {
  if (t.dtype() != i64 && t.dtype() != i32)
    throw DTypeError(
        fmt::format("EmbeddingBag: {} are i64 or i32, found {}; convert them with .to(tenon::i64)",
                    what, t.dtype()));
}

Bags bags_of(const Tensor& indices, const Tensor& offsets, bool include_last_offset) {
  Bags bags;
  const TensorOptions places = {.dtype = i64, .device = indices.device()};
  if (indices.dim() == 2) {
    if (offsets.defined())
      throw ValueError(fmt::format(
          "EmbeddingBag: indices of shape {} are bags by their rows, so there are no offsets",
          indices.shape()));
    bags.count = bags.wanted = indices.size(0);
    bags.bag = arange(0, bags.count, 1, places).unsqueeze(1).expand(indices.shape()).flatten();
    bags.indices = indices.flatten();
    return bags;
  }
  if (indices.dim() != 1)
    refuse_bag(fmt::format("indices have shape (bags, n), or (n) with offsets; found {}",
                           indices.shape()));
  if (!offsets.defined())
    throw ValueError(fmt::format(
        "EmbeddingBag: indices of shape {} need offsets, which say where each bag begins",
        indices.shape()));
  if (offsets.dim() != 1 || (include_last_offset && offsets.size(0) == 0))
    refuse_bag(fmt::format("offsets are a vector{}; found shape {}",
                           include_last_offset ? " that ends with the end of the last bag" : "",
                           offsets.shape()));
  // What lies behind the last offset, if it is the end of the last bag, is in a bag of its own.
  bags.count = offsets.size(0);
  bags.wanted = bags.count - (include_last_offset ? 1 : 0);
  bags.indices = indices;
  require_numbers("offsets", offsets);
  // An index belongs to the last bag that begins at or before it. One before the first bag gets
  // -1, which is an error of the queued work: of one operator, not of each that reads the bags.
  const Tensor begins = offsets.to(i64).contiguous(), all = arange(0, indices.size(0), 1, places),
               bag = searchsorted(begins, all, SearchOptions{.right = true}) - 1;
  bags.bag = arange(0, bags.count, 1, places).gather(0, bag);
  return bags;
}

// For each bag and column the largest element: of equal ones the first, which gets the gradient.
Tensor largest_of_bags(const Tensor& rows, const Bags& bags, const Tensor& counts) {
  const int64_t n = rows.size(0), dim = rows.size(1);
  const Tensor none = zeros({bags.count, dim}, {.dtype = rows.dtype(), .device = rows.device()});
  if (n == 0) return index_add(none, 0, bags.bag, rows);
  const Tensor place = no_grad([&] {
    const Tensor bag = bags.bag.unsqueeze(1).expand({n, dim});
    const Tensor best = scatter_reduce(none, 0, bag, rows, "amax", false).gather(0, bag);
    const Tensor at = arange(0, n, 1, {.dtype = i64, .device = rows.device()}).unsqueeze(1);
    const Tensor found = where(logical_or(eq(rows, best), isnan(rows)), at, n - 1);
    const Tensor last = full({bags.count, dim}, n - 1, {.dtype = i64, .device = rows.device()});
    return scatter_reduce(last, 0, bag, found, "amin", true);
  });
  return where(eq(counts, 0).unsqueeze(1), none, rows.gather(0, place));
}

}  // namespace

EmbeddingBag::EmbeddingBag(int64_t count, int64_t dim, const EmbeddingBagOptions& o)
    : num_embeddings(count), embedding_dim(dim), options(o) {
  if (o.mode != "sum" && o.mode != "mean" && o.mode != "max")
    throw ValueError(fmt::format(
        "EmbeddingBag: mode is \"{}\"; it has to be \"sum\", \"mean\" or \"max\"", o.mode));
  weight = table("EmbeddingBag", count, dim, options.padding_idx, o);
}

Tensor EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  if (!indices.defined()) throw ValueError("EmbeddingBag: the indices are an undefined tensor");
  const Bags bags = bags_of(indices, offsets, options.include_last_offset);
  shorten_rows(weight, bags.indices, options.max_norm, options.norm_type);
  Tensor rows = embedding(bags.indices, weight);
  if (per_sample_weights.defined()) {
    if (options.mode != "sum")
      throw ValueError(
          fmt::format("EmbeddingBag: per_sample_weights need the mode \"sum\", but it is \"{}\"",
                      options.mode));
    if (!(per_sample_weights.shape() == indices.shape()))
      refuse_bag(
          fmt::format("per_sample_weights have shape {}, but must have that of the indices, {}",
                      per_sample_weights.shape(), indices.shape()));
    if (per_sample_weights.dtype() != weight.dtype())
      throw DTypeError(fmt::format(
          "EmbeddingBag: per_sample_weights are {}, but the weight is {}; convert them with "
          ".to(tenon::{})",
          per_sample_weights.dtype(), weight.dtype(), weight.dtype()));
    rows = rows * per_sample_weights.flatten().unsqueeze(1);
  }
  const TensorOptions like = {.dtype = weight.dtype(), .device = rows.device()};
  Tensor counted = ones({bags.indices.size(0)}, like);
  if (options.padding_idx) {
    const Tensor padding = eq(bags.indices, *options.padding_idx);
    const bool largest = options.mode == "max";
    rows = masked_fill(rows, padding.unsqueeze(1),
                       largest ? -std::numeric_limits<double>::infinity() : 0.0);
    counted = logical_not(padding).to(weight.dtype());
  }
  const auto wanted = [&](const Tensor& y) {
    return bags.wanted == bags.count ? y : y.narrow(0, 0, bags.wanted);
  };
  const Tensor sums = zeros({bags.count, embedding_dim}, like);
  if (options.mode == "sum") return wanted(index_add(sums, 0, bags.bag, rows));
  const Tensor counts = index_add(zeros({bags.count}, like), 0, bags.bag, counted);
  if (options.mode == "max") return wanted(largest_of_bags(rows, bags, counts));
  return wanted(index_add(sums, 0, bags.bag, rows) / clamp(counts, 1).unsqueeze(1));
}

void EmbeddingBag::fields(FieldVisitor& v) { v("weight", weight); }

std::string EmbeddingBag::extra_repr() const {
  std::string text = fmt::format("{}, {}{}, mode='{}'", num_embeddings, embedding_dim,
                                 norm_repr(options.max_norm, options.norm_type), options.mode);
  if (options.padding_idx) text += fmt::format(", padding_idx={}", *options.padding_idx);
  return text;
}

}  // namespace tenon::nn
