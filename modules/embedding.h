// Embedding layers: tables of vectors that are looked up by number. The results have the dtype of
// the table.
#pragma once

#include <optional>
#include <string>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct EmbeddingOptions {
  // The row for padding, which starts at 0 and gets no gradient; a negative number counts from the
  // end. By default there is none.
  std::optional<int64_t> padding_idx = std::nullopt;
  // The largest norm of a row, at least 0: each call first scales longer rows among those that it
  // looks up down to it, in the weight itself. By default there is no limit.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;       // the p of that norm, above 0
  TensorOptions tensor = {};  // dtype and device of the weight
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
  std::string mode = "mean";         // how the rows of a bag are joined: "mean", "sum" or "max"
  bool include_last_offset = false;  // whether the last offset is the end of the last bag
  // The row for padding, which starts at 0 and whose indices do not count; a negative number counts
  // from the end. By default there is none.
  std::optional<int64_t> padding_idx = std::nullopt;
  // The largest norm of a row, as in EmbeddingOptions.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;       // the p of that norm, above 0
  TensorOptions tensor = {};  // dtype and device of the weight
};

// Returns one vector for each bag of indices, joined from their rows in the weight (num_embeddings,
// embedding_dim): shape (bags, embedding_dim). Indices are i64 or i32: (bags, n), or all of them
// in a row (n) with `offsets` (bags), i64 or i32, where each bag begins, the first at 0. A bag
// without indices gives zeros. per_sample_weights, of the shape of the indices and the dtype of the
// weight, multiply the rows where the mode is "sum". The weight starts with samples of the standard
// normal distribution. The constructor throws a ValueError as that of Embedding and for another
// mode. Calls throw a ValueError, ShapeError or DTypeError for offsets or weights that do not fit;
// an index outside [0, num_embeddings) is an IndexError of the queued work.
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
