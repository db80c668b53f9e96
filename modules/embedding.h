// The embedding layer: a table of vectors that are looked up by number.
#pragma once

#include <optional>
#include <string>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct EmbeddingOptions {
  // This row starts at 0 and gets no gradient; a negative number counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
  // Each call first scales the rows that it looks up down to this norm, in the weight itself.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;       // the p of that norm
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Returns a vector for each index: indices of any shape (…), i64 or i32, give shape (…,
// embedding_dim). The weight has shape (num_embeddings, embedding_dim) and starts with samples of
// the standard normal distribution. The constructor throws a ValueError for negative sizes, for a
// padding_idx outside the table, a max_norm below 0 and a norm_type that is not above 0. An index
// outside [0, num_embeddings) is an IndexError of the queued work, which the next wait throws.
struct TENON_API Embedding final : Module<Embedding> {
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  Tensor forward(const Tensor& indices) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t num_embeddings, embedding_dim;
  std::optional<int64_t> padding_idx;
  std::optional<double> max_norm;
  double norm_type;
  Parameter weight;
};

struct EmbeddingBagOptions {
  std::string mode = "mean";         // or "sum", "max": what is made of the rows of a bag
  bool include_last_offset = false;  // whether the last offset is the end of the last bag
  // Indices of this row do not count; it starts at 0. A negative number counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
  // As in EmbeddingOptions.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Returns one vector for each bag of indices, made of their rows in the weight (num_embeddings,
// embedding_dim): shape (bags, embedding_dim). Indices are i64 or i32: (bags, n), or all of them
// in a row (n) with `offsets` (bags), where each bag begins, the first at 0. A bag without indices
// gives zeros. per_sample_weights, of the shape of the indices and the dtype of the weight,
// multiply the rows where the mode is "sum". The weight starts with samples of the standard normal
// distribution. The constructor throws a ValueError as that of Embedding and for another mode;
// calls a ValueError or ShapeError for offsets or weights that do not fit. An index outside [0,
// num_embeddings) is an IndexError of the queued work.
struct TENON_API EmbeddingBag final : Module<EmbeddingBag> {
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim,
               const EmbeddingBagOptions& options = {});
  Tensor forward(const Tensor& indices, const Tensor& offsets = Tensor(),
                 const Tensor& per_sample_weights = Tensor()) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t num_embeddings, embedding_dim;
  EmbeddingBagOptions options;
  Parameter weight;
};

}  // namespace tenon::nn
