// Sums of products over named dimensions (core/ops/linalg.h).
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Dimensions have labels: letters, and behind them numbers for those of an ellipsis, of which
// number 0 is the last.
using Labels = std::vector<int>;
constexpr int kEllipsis = 1000;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
int64_t place_of(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// An operand and what its dimensions are called.
struct Term {
  Tensor x;
  Labels labels;

  int64_t size(int label) const { return x.size(place_of(labels, label)); }
  void remove(int label) { labels.erase(labels.begin() + place_of(labels, label)); }
  // With the dimensions in this order.
  Tensor ordered(const Labels& order) const {
    Shape dims;
    for (int label : order) dims.push_back(place_of(labels, label));
    return permute(x, dims);
  }
  void sum_over(const Labels& gone) {
    if (gone.empty()) return;
    Shape dims;
    for (int label : gone) dims.push_back(place_of(labels, label));
    const DType t = dtype_of(x);
    x = sum(x, dims).to(t);
    for (int label : gone) remove(label);
  }
};

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  throw ValueError(fmt::format("einsum: the equation \"{}\" {}", equation, why));
}

// Reads one side of an equation, or one operand of it, of which an ellipsis stands for `rank`
// dimensions.
struct Subscripts {
  std::string letters;         // before and behind the ellipsis
  size_t ellipsis = kNowhere;  // where it is among the letters
  static constexpr size_t kNowhere = std::string::npos;

  Subscripts(std::string_view equation, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') continue;
      if (text.substr(i, 3) == "...") {
        if (ellipsis != kNowhere) refuse(equation, "has two ellipses in one operand");
        ellipsis = letters.size();
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        letters += text[i];
      } else {
        refuse(equation, fmt::format("has '{}' where a letter was expected", text[i]));
      }
    }
  }
  Labels labels(int64_t ellipsis_rank) const {
    Labels result(letters.begin(), letters.end());
    if (ellipsis == kNowhere) return result;
    for (int64_t i = 0; i < ellipsis_rank; ++i)
      result.insert(result.begin() + static_cast<int64_t>(ellipsis),
                    kEllipsis + static_cast<int>(i));
    return result;
  }
};

std::vector<std::string_view> split_operands(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// Takes the diagonal of dimensions with one name.
void merge_repeated(Term& term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t k = i + 1; k < term.labels.size();) {
      if (term.labels[i] != term.labels[k]) {
        ++k;
        continue;
      }
      const auto first = static_cast<int64_t>(i), second = static_cast<int64_t>(k);
      if (term.x.size(first) != term.x.size(second))
        throw ShapeError(fmt::format(
            "einsum: '{}' of the equation stands for dimensions of {} and {} in one operand, which "
            "must be equal",
            static_cast<char>(term.labels[i]), term.x.size(first), term.x.size(second)));
      term.x = movedim(diagonal(term.x, 0, first, second), -1, first);
      term.labels.erase(term.labels.begin() + second);
    }
}

Term term_of(std::string_view equation, std::string_view text, const Tensor& x, size_t number) {
  const Subscripts subscripts(equation, text);
  const auto rank = static_cast<int64_t>(shape_of(x).size()),
             named = static_cast<int64_t>(subscripts.letters.size());
  const bool open = subscripts.ellipsis != Subscripts::kNowhere;
  if (open ? rank < named : rank != named)
    throw ShapeError(fmt::format(
        "einsum: operand {} has shape {}, but its subscripts \"{}\" stand for {}{} "
        "dimension{}",
        number, shape_of(x), text, open ? "at least " : "", named, named == 1 ? "" : "s"));
  Term term{x, subscripts.labels(rank - named)};
  merge_repeated(term);
  return term;
}

// The dimensions of the result: those behind the arrow, or all of an ellipsis and the letters that
// occur once.
Labels result_labels(std::string_view equation, const std::vector<std::string_view>& operands,
                     const std::vector<Term>& terms) {
  int64_t ellipsis_rank = 0;
  for (auto& term : terms)
    for (int label : term.labels)
      ellipsis_rank = std::max<int64_t>(ellipsis_rank, label - kEllipsis + 1);
  const size_t arrow = equation.find("->");
  if (arrow != equation.npos) {
    const Subscripts subscripts(equation, equation.substr(arrow + 2));
    Labels labels = subscripts.labels(ellipsis_rank);
    for (size_t i = 0; i < labels.size(); ++i) {
      const char name = static_cast<char>(labels[i]);
      if (labels[i] >= kEllipsis) continue;
      if (std::count(labels.begin(), labels.end(), labels[i]) > 1)
        refuse(equation, fmt::format("has '{}' twice in the result", name));
      if (std::none_of(terms.begin(), terms.end(),
                       [&](const Term& t) { return contains(t.labels, labels[i]); }))
        refuse(equation, fmt::format("has '{}' in the result, but in no operand", name));
    }
    return labels;
  }
  Labels labels;
  for (int i = static_cast<int>(ellipsis_rank); i-- > 0;) labels.push_back(kEllipsis + i);
  for (int letter = 0; letter < 128; ++letter) {
    int64_t count = 0;
    for (auto& text : operands)
      count += std::count(text.begin(), text.end(), static_cast<char>(letter));
    if (std::isalpha(letter) && count == 1) labels.push_back(letter);
  }
  return labels;
}

// Sizes of one name must be equal or 1. A dimension of size 1 where another operand has more takes
// no part: it is removed.
void broadcast(std::vector<Term>& terms) {
  for (auto& term : terms)
    for (size_t i = 0; i < term.labels.size();) {
      const int label = term.labels[i];
      int64_t largest = term.size(label);
      for (auto& other : terms) {
        if (!contains(other.labels, label)) continue;
        const int64_t size = other.size(label);
        if (size == 1 || size == largest) continue;
        if (largest != 1)
          throw ShapeError(fmt::format(
              "einsum: {} of the equation stands for dimensions of {} and {}, which do not "
              "broadcast",
              label < kEllipsis ? fmt::format("'{}'", static_cast<char>(label)) : "the ellipsis",
              largest, size));
        largest = size;
      }
      if (largest == term.size(label)) {
        ++i;
        continue;
      }
      term.x = squeeze(term.x, static_cast<int64_t>(i));
      term.labels.erase(term.labels.begin() + static_cast<int64_t>(i));
    }
}

int64_t numel_of(const Term& term, const Labels& labels) {
  int64_t n = 1;
  for (int label : labels) n *= term.size(label);
  return n;
}

Labels joined(std::initializer_list<const Labels*> lists) {
  Labels all;
  for (auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

// x with size 1 for the dimensions of `order` that it does not have.
Tensor aligned(const Term& term, const Labels& order) {
  Labels own;
  for (int label : order)
    if (contains(term.labels, label)) own.push_back(label);
  const Tensor x = term.ordered(own);
  Shape shape;
  for (int label : order) shape.push_back(contains(own, label) ? term.size(label) : 1);
  return reshape(x, shape);
}

// The product of two operands, summed over what they share and nobody else needs.
Term product(Term a, Term b, const Labels& needed) {
  Labels batch, shared, left, right, gone;
  for (int label : a.labels) {
    const bool needs = contains(needed, label);
    if (contains(b.labels, label))
      (needs ? batch : shared).push_back(label);
    else
      (needs ? left : gone).push_back(label);
  }
  a.sum_over(gone);
  gone.clear();
  for (int label : b.labels)
    if (!contains(a.labels, label)) (contains(needed, label) ? right : gone).push_back(label);
  b.sum_over(gone);
  const Labels order = joined({&batch, &left, &right});
  const DType t = result_type(a.x, b.x);
  if (shared.empty() || !is_floating_point(t)) {
    const Labels whole = joined({&order, &shared});
    Term y{aligned(a, whole) * aligned(b, whole), whole};
    y.sum_over(shared);
    return y;
  }
  const int64_t batches = numel_of(a, batch), sums = numel_of(a, shared);
  const Tensor x = reshape(a.ordered(joined({&batch, &left, &shared})),
                           {batches, numel_of(a, left), sums}),
               y = reshape(b.ordered(joined({&batch, &shared, &right})),
                           {batches, sums, numel_of(b, right)});
  Shape shape;
  for (int label : batch) shape.push_back(a.size(label));
  for (int label : left) shape.push_back(a.size(label));
  for (int label : right) shape.push_back(b.size(label));
  return {reshape(matmul(x, y), shape), order};
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) try {
  if (const Autocasting cast{"einsum", operands}) return einsum(equation, cast(operands));
  if (operands.empty()) throw ValueError("einsum: needs at least one operand");
  const auto texts = split_operands(equation.substr(0, equation.find("->")));
  if (texts.size() != operands.size())
    refuse(equation,
           fmt::format("names {} operands, but {} are given", texts.size(), operands.size()));
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    require_tensor("einsum", operands[i], "operands", i);
    if (dtype_of(operands[i]) == DType::boolean)
      throw DTypeError(fmt::format("einsum: operand {} is bool, but must be a number; {}", i,
                                   conversion_to(DType::i64)));
    terms.push_back(term_of(equation, texts[i], operands[i], i));
  }
  const Labels result = result_labels(equation, texts, terms);
  broadcast(terms);
  Term total = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels needed = result;
    for (size_t k = i + 1; k < terms.size(); ++k)
      needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
    total = product(std::move(total), terms[i], needed);
  }
  Labels gone;
  for (int label : total.labels)
    if (!contains(result, label)) gone.push_back(label);
  total.sum_over(gone);
  return aligned(total, result);
} catch (const Error&) {
  rethrow_in("einsum");
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims) try {
  require_defined("tensordot", {{"a", a}, {"b", b}});
  const auto rank_a = static_cast<int64_t>(shape_of(a).size()),
             rank_b = static_cast<int64_t>(shape_of(b).size());
  if (dims < 0 || dims > rank_a || dims > rank_b)
    throw ValueError(
        fmt::format("tensordot: dims must be from 0 to the number of dimensions of both, found {} "
                    "for {} and {}",
                    dims, shape_of(a), shape_of(b)));
  Shape last, first;
  for (int64_t d = 0; d < dims; ++d) {
    last.push_back(rank_a - dims + d);
    first.push_back(d);
  }
  return tensordot(a, b, last, first);
} catch (const Error&) {
  rethrow_in("tensordot");
}

namespace {

// A matrix of x: the dimensions that are not listed as its rows, or as its columns, and their
// sizes.
struct Side {
  Shape free, order;
  int64_t size = 1, inner = 1;
  Side(const Tensor& x, const Shape& dims, const char* name, bool inner_first) {
    const Shape& shape = shape_of(x);
    uint32_t chosen = 0;
    Shape wrapped;
    for (int64_t dim : dims) {
      wrapped.push_back(wrap_dim(dim, static_cast<int64_t>(shape.size()), "tensordot"));
      if (chosen >> wrapped.back() & 1)
        throw ValueError(fmt::format("tensordot: {} {} lists dim {} twice", name, dims, dim));
      chosen |= 1u << wrapped.back();
      inner *= shape[wrapped.back()];
    }
    if (inner_first) order = wrapped;
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      if (chosen >> d & 1) continue;
      order.push_back(d);
      free.push_back(shape[d]);
      size *= shape[d];
    }
    if (!inner_first)
      for (int64_t d : wrapped) order.push_back(d);
  }
};

}  // namespace

Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& dims_a, const Shape& dims_b) try {
  if (const Autocasting cast{"tensordot", {&a, &b}})
    return tensordot(cast(a), cast(b), dims_a, dims_b);
  require_defined("tensordot", {{"a", a}, {"b", b}});
  if (dims_a.size() != dims_b.size())
    throw ValueError(
        fmt::format("tensordot: both tensors need as many dimensions to sum over, found {} and {}",
                    dims_a, dims_b));
  const Side left(a, dims_a, "dims_a", false), right(b, dims_b, "dims_b", true);
  for (size_t i = 0; i < dims_a.size(); ++i)
    if (a.size(dims_a[i]) != b.size(dims_b[i]))
      throw ShapeError(fmt::format("tensordot: dim {} of {} and dim {} of {} must be equal",
                                   dims_a[i], shape_of(a), dims_b[i], shape_of(b)));
  Shape shape = left.free;
  for (int64_t n : right.free) shape.push_back(n);
  const DType t = result_type(a, b);
  const Tensor x = reshape(permute(a, left.order), {left.size, left.inner}),
               y = reshape(permute(b, right.order), {right.inner, right.size});
  if (is_floating_point(t)) return reshape(matmul(x, y), shape);
  if (t == DType::boolean)
    throw DTypeError("tensordot: takes numbers, found bool; " + conversion_to(DType::i64, "them"));
  return reshape(sum(unsqueeze(x, -1) * unsqueeze(y, 0), 1).to(t), shape);
} catch (const Error&) {
  rethrow_in("tensordot");
}

}  // namespace tenon
