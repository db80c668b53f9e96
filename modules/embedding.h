// The embedding layer: a table of vectors that are looked up by number.
#pragma once

#include <optional>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct EmbeddingOptions {
  // This row starts at 0 and gets no gradient; a negative number counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
  TensorOptions tensor = {};  // dtype and device of the parameters
};

// Returns a vector for each index: indices of any shape (…), i64 or i32, give shape (…,
// embedding_dim). The weight has shape (num_embeddings, embedding_dim) and starts with samples of
// the standard normal distribution. The constructor throws a ValueError for negative sizes and for
// a padding_idx outside the table. An index outside [0, num_embeddings) is an IndexError of the
// queued work, which the next wait throws.
struct TENON_API Embedding final : Module<Embedding> {
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  Tensor forward(const Tensor& indices) const;
  void fields(FieldVisitor& v);
  std::string extra_repr() const;

  int64_t num_embeddings, embedding_dim;
  std::optional<int64_t> padding_idx;
  Parameter weight;
};

}  // namespace tenon::nn
