// A table of vectors, looked up by number.
#pragma once

#include <optional>

#include <tenon/modules/module.h>

namespace tenon::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx =
      std::nullopt;  // this row starts at 0 and gets no gradient; negative counts from the end
  TensorOptions tensor = {};
};

// Integer indices of any shape to vectors: shape (…, embedding_dim). Weight (num_embeddings,
// embedding_dim) starts standard normal.
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
