#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/modules/embedding.h>
#include <tenon/modules/init.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

Embedding::Embedding(int64_t count, int64_t dim, const EmbeddingOptions& options)
    : num_embeddings(count), embedding_dim(dim), padding_idx(options.padding_idx) {
  require(count >= 0, "Embedding", "num_embeddings", static_cast<double>(count), "at least 0");
  require(dim >= 0, "Embedding", "embedding_dim", static_cast<double>(dim), "at least 0");
  Tensor values = init::normal_(empty({count, dim}, options.tensor));
  if (padding_idx) {
    require(*padding_idx >= -count && *padding_idx < count, "Embedding", "padding_idx",
            static_cast<double>(*padding_idx),
            "a row: at least -num_embeddings and less than num_embeddings");
    if (*padding_idx < 0) *padding_idx += count;
    init::zeros_(values.select(0, *padding_idx));
  }
  weight = Parameter(values);
}

Tensor Embedding::forward(const Tensor& indices) const {
  return embedding(indices, weight, padding_idx.value_or(-1));
}

void Embedding::fields(FieldVisitor& v) { v("weight", weight); }

std::string Embedding::extra_repr() const {
  std::string text = fmt::format("{}, {}", num_embeddings, embedding_dim);
  return padding_idx ? fmt::format("{}, padding_idx={}", text, *padding_idx) : text;
}

}  // namespace tenon::nn
