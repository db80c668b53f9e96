// The source that the cuda plugin writes of a fused program: that the real NVRTC compiles it for a
// GPU of capability 9.0, where it is installed (no device is needed), and that hostile programs are
// refused.
#include "kernels/pointwise/fused_source.h"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/requests/fused.h>

#include "kernels/pointwise/fused_rows.h"
#include "rtc/compiler.h"
#include "vendor/nvrtc.h"

using namespace tenon;
using namespace tenon::cuda;

namespace {

constexpr int kCapability = 90;

struct Described {
  tn_dtype dtype = TN_F32;
  std::vector<int64_t> shape = {6, 32}, strides = {32, 1};
};

// A request, as the host makes it.
class Asked {
 public:
  Asked(std::string program, const std::vector<Described>& inputs,
        const std::vector<Described>& outputs, size_t scalars = 0)
      : program_(std::move(program)) {
    for (auto& d : inputs) add(d);
    for (auto& d : outputs) add(d);
    for (auto& d : descs_) pointers_.push_back(&d);
    attr_ = {sizeof(tn_attr), "program", TN_ATTR_STRING, 0, 0, program_.c_str(), 0, nullptr};
    raw_ = {sizeof(tn_op_request),
            "fused",
            inputs.size(),
            pointers_.data(),
            outputs.size(),
            pointers_.data() + inputs.size(),
            nullptr,
            1,
            &attrs_,
            scalars};
  }
  Asked(const Asked&) = delete;

  // With the rows that are given the reductions of the program.
  std::string source_of_rows(FusedRows rows) const {
    const sdk::Request request(raw_);
    const auto program = sdk::FusedRequest::with_reductions(request);
    for (size_t i = 0; i < rows.reductions.size(); ++i)
      rows.reductions[i].step = i + program.steps.size() - rows.reductions.size();
    return fused_rows_source(program, std::vector<bool>(raw_.num_outputs, true), rows);
  }

  std::string source() const {
    const sdk::Request request(raw_);
    const auto program = sdk::FusedRequest::from(request);
    return fused_source(program, std::vector<bool>(raw_.num_outputs, true),
                        FusedLayout::of(program, request));
  }

 private:
  void add(const Described& described) {
    tn_tensor_desc d{};
    d.struct_size = sizeof d;
    d.dtype = described.dtype;
    d.rank = static_cast<uint32_t>(described.shape.size());
    std::copy(described.shape.begin(), described.shape.end(), d.shape);
    std::copy(described.strides.begin(), described.strides.end(), d.strides);
    descs_.push_back(d);
  }

  std::string program_;
  std::vector<tn_tensor_desc> descs_;
  std::vector<const tn_tensor_desc*> pointers_;
  tn_attr attr_{};
  const tn_attr* attrs_ = &attr_;
  tn_op_request raw_{};
};

bool has_compiler() {
  try {
    nvrtc();
    return true;
  } catch (const sdk::Error& e) {
    BOOST_TEST_MESSAGE("skipped: " << e.what());
    return false;
  }
}

void require_machine_code(const std::string& source) {
  try {
    BOOST_TEST(compile(source, kCapability).substr(1, 3) == "ELF");
  } catch (const sdk::Error& e) {
    BOOST_ERROR(e.what() << "\n" << source);
  }
}

// Whether a program is refused, by this code and with these words.
void require_refusal(tn_code code, const std::string& words, const Asked& asked) {
  try {
    asked.source();
    BOOST_ERROR("taken, but wanted was: " << words);
  } catch (const sdk::Error& e) {
    BOOST_TEST(e.code() == code);
    BOOST_TEST(std::string(e.what()).find(words) != std::string::npos, e.what());
  }
}

// A program of members of one dtype: each reads the inputs x0, x1 and x2, or x3 that is a bool, and
// each result is the first operand of the next member that takes it.
struct Chain {
  std::string text;
  size_t scalars = 0, steps = 0;

  void add(const sdk::FusedMember& m, tn_dtype dtype, bool number) {
    if (steps) text += "; ";
    text += m.op;
    if (m.attr) text += m.attr_kind == TN_ATTR_INT ? "[n=2]" : "[reverse=false]";
    text += m.selects() ? "(x3, x1, x2" : "(x0";
    for (int k = 1; k < m.operands && !m.selects(); ++k)
      text += number && k + 1 == m.operands ? ", _" : ", x" + std::to_string(k);
    const size_t numbers = m.scalars + (number ? 1u : 0u);
    if (numbers) text += ", #" + std::to_string(numbers);
    const tn_dtype made = m.result == sdk::FusedResult::boolean  ? TN_BOOL
                          : m.result == sdk::FusedResult::stated ? TN_F64
                                                                 : dtype;
    text += std::string("): ") + sdk::dtype_name(made);
    last = made;
    scalars += numbers;
    ++steps;
  }
  tn_dtype last = TN_F32;
};

}  // namespace

// Every member of some dtypes, with tensors and with numbers, and a third of them of the others,
// whose functions are the same text.
BOOST_AUTO_TEST_CASE(every_member_compiles) {
  const bool compiler = has_compiler();
  for (tn_dtype dtype = TN_F32; dtype <= TN_BOOL; ++dtype) {
    const bool all = dtype == TN_F32 || dtype == TN_I64 || dtype == TN_BOOL;
    std::vector<Chain> chains(1);
    int number = 0;
    for (auto& m : sdk::kFusedMembers) {
      if (!(m.takes >> dtype & 1) || m.reduces || m.op == std::string_view("binary_cross_entropy"))
        continue;
      if (!all && number++ % 3 != dtype % 3) continue;
      for (const bool number_for_last : {false, true}) {
        if (number_for_last && !(m.number_for_last && all)) continue;
        if (chains.back().steps == sdk::FusedLimits::kMaxSteps) chains.emplace_back();
        chains.back().add(m, dtype, number_for_last);
      }
    }
    for (auto& chain : chains) {
      const Described x{dtype};
      const Asked asked(chain.text + " -> t" + std::to_string(chain.steps - 1),
                        {x, x, x, {TN_BOOL}}, {{chain.last}}, chain.scalars);
      const std::string source = asked.source();
      if (compiler) require_machine_code(source);
    }
  }
}

BOOST_AUTO_TEST_CASE(layouts_compile) {
  const std::vector<int64_t> shape = {4, 6, 32};
  const Described line{TN_F32, shape, {192, 32, 1}}, one{TN_F16, shape, {0, 0, 0}},
      row{TN_BF16, shape, {0, 0, 1}}, column{TN_F32, shape, {6, 1, 0}},
      across{TN_F64, shape, {192, 1, 6}}, part{TN_U8, shape, {400, 40, 1}};
  const Asked asked(
      "copy(x1): f32; copy(x2): f32; copy(x4): f32; copy(x5): f32; add(x0, t0): f32; "
      "mul(t4, t1): f32; sub(t5, x3): f32; addcmul(t6, t2, t3): f32; gt[reverse=false](t7, _, #1): "
      "bool; where(t8, t7, x0): f32 -> t9, t8",
      {line, one, row, column, across, part}, {line, {TN_BOOL, shape, {192, 32, 1}}}, 1);
  const std::string source = asked.source();
  for (const char* words :
       {"load_line<V>(a.x0 + first, count, packs)", "load_one<V>(a.x1)",
        "load_line<V>(a.x2 + o2, count, packs)", "load_one<V>(a.x3 + o3)",
        "load_steps<V>(a.x4 + o4, a.strides[2][0], count)", "constexpr int V = 2;",
        "// t8 = gt[reverse=0](t7, _, #1): bool",
        "const uint8_t t8 = apply<uint8_t>(formulas::Gt()", "const float t9 = t8 ? t7 : x0;",
        "store_line<V>(a.y1 + first, count, packs, y1)"})
    BOOST_TEST(source.find(words) != source.npos, words << " is not in\n" << source);
  if (has_compiler()) require_machine_code(source);
}

// Every reduction, of what a member before it makes, by warps and by blocks.
BOOST_AUTO_TEST_CASE(reductions_compile) {
  const bool compiler = has_compiler();
  for (tn_dtype dtype = TN_F32; dtype <= TN_BOOL; ++dtype) {
    const bool half = dtype == TN_F16 || dtype == TN_BF16, whole = dtype >= TN_I64;
    const tn_dtype folded = half ? TN_F32 : dtype;
    FusedRows rows{.rows = 6,
                   .cols = 32,
                   .inputs = {FusedRows::Access::line, FusedRows::Access::one},
                   .steps = {1, 0},
                   .sizes = {2, 3},
                   .strides = {{96, 32}, {1, 4}},
                   .reductions = {},
                   .lanes = dtype == TN_F32 ? 256u : 8u,
                   .block = 256,
                   .grid = 1};
    std::string text = std::string("add(x0, x1): ") + sdk::dtype_name(dtype), results;
    std::vector<Described> outputs;
    const auto add = [&](const std::string& member, const char* reducer, tn_dtype made) {
      rows.reductions.push_back({0, reducer, folded, dtype == TN_F64 ? 2 : 1, 1});
      text += "; " + member + "(t0): " + sdk::dtype_name(made);
      results += (results.empty() ? " -> t" : ", t") + std::to_string(rows.reductions.size());
      outputs.push_back({made, {6, 1}, {1, 1}});
    };
    add("sum", "Sum", whole ? TN_I64 : dtype);
    if (dtype == TN_BOOL) add("any", "Any", dtype);
    if (dtype == TN_BOOL) add("all", "All", dtype);
    if (dtype != TN_BOOL) add("amax", "Amax", dtype);
    if (dtype == TN_I64) add("prod", "Prod", dtype);
    if (dtype == TN_F64) add("var[correction=1]", "Var", dtype);
    if (dtype == TN_F32) {
      add("prod", "Prod", dtype);
      add("amin", "Amin", dtype);
      add("mean", "Sum", dtype);
      add("var[correction=1]", "Var", dtype);
      add("logsumexp", "LogSumExp", dtype);
    }
    const Described x{dtype}, one{dtype, {6, 1}, {1, 1}};
    const std::string source = Asked(text + results, {x, one}, outputs).source_of_rows(rows);
    if (dtype == TN_F32)
      for (const char* words : {"row.t1 = cast<float>(reduce_row<Sum<float>, 1>(",
                                "const Group group = Group::of(256);",
                                "return operand2(a, row, x0[i], *x1);", "a.y0[number] = y0;"})
        BOOST_TEST(source.find(words) != source.npos, words << " is not in\n" << source);
    if (compiler) require_machine_code(source);
  }
}

// A tensor that 32 bits do not address is cut into parts of one kernel.
BOOST_AUTO_TEST_CASE(large_tensors_are_cut) {
  const int64_t rows = int64_t{1} << 20, cols = int64_t{1} << 13;
  const Described line{TN_F32, {rows, cols}, {cols, 1}}, row{TN_F32, {rows, cols}, {0, 1}};
  tn_tensor_desc a{sizeof(tn_tensor_desc), TN_F32, 2, {rows, cols}, {cols, 1}}, b = a;
  b.strides[0] = 0;
  const tn_tensor_desc *inputs[] = {&a, &b}, *output = &a;
  const tn_attr attr{sizeof(tn_attr),          "program", TN_ATTR_STRING, 0, 0,
                     "add(x0, x1): f32 -> t0", 0,         nullptr},
      *attrs = &attr;
  const tn_op_request raw{
      sizeof(tn_op_request), "fused", 2, inputs, 1, &output, nullptr, 1, &attrs, 0};
  const sdk::Request request(raw);
  const auto layout = FusedLayout::of(sdk::FusedRequest::from(request), request);
  int64_t first = 0;
  for (auto& piece : layout.pieces) {
    BOOST_TEST(piece.numel < int64_t{1} << 31);
    BOOST_TEST(piece.first == first);
    BOOST_TEST(piece.base[0] == first);
    BOOST_TEST(piece.base[1] == 0);
    first += piece.numel;
  }
  BOOST_TEST(first == rows * cols);
  BOOST_TEST(layout.pieces.size() == 8u);
}

BOOST_AUTO_TEST_CASE(hostile_programs_are_refused) {
  const Described x;
  const std::vector<Described> one = {x};
  const auto invalid = [&](const std::string& program, const std::string& words) {
    require_refusal(TN_CODE_INVALID_ARGUMENT, words, Asked(program, one, one));
  };
  const auto unsupported = [&](const std::string& program, const std::string& words) {
    require_refusal(TN_CODE_UNSUPPORTED, words, Asked(program, one, one));
  };
  invalid("exp(x0): f32", "needs \"->\"");
  invalid("exp(x0): f32 -> t0\"; system(\"true", "needs \"the end\"");
  invalid("exp(x0): f32 -> t7", "result 0 is that of step 7");
  invalid("exp(t0): f32 -> t0", "reads the result of step 0");
  invalid("exp(x99999999999): f32 -> t0", "a number");
  invalid("exp(x9): f32 -> t0", "reads input 9");
  invalid("exp(x0, x0): f32 -> t0", "takes 1 operands");
  invalid("exp(x0): f64 -> t0", "it does not make f64");
  invalid("add(x0, _, #3): f32 -> t0", "takes 1 scalars, found 3");
  invalid("add(x0, _, #1): f32 -> t0", "the program reads 1 scalars, found 0");
  invalid("polygamma[n=-3](x0): f32 -> t0", "polygamma: n is 1 to 1000, found -3");
  unsupported("", "no member \"\"");
  unsupported("exp(x0): f33 -> t0", "no dtype \"f33\"");
  unsupported("system(x0): f32 -> t0", "no member \"system\"");
  unsupported("exp[base=2](x0): f32 -> t0", "attribute \"base\"");
  unsupported("sum(x0): f32 -> t0", "the program reduces rows");
  unsupported("binary_cross_entropy(x0, x0): f32 -> t0", "no kernel of this plugin");
  std::string steps = "exp(x0): f32";
  for (int i = 0; i < 64; ++i) steps += "; exp(t" + std::to_string(i) + "): f32";
  unsupported(steps + " -> t64", "more than 64 steps");
  require_refusal(TN_CODE_UNSUPPORTED, "contiguous",
                  Asked("exp(x0): f32 -> t0", one, {{TN_F32, {6, 32}, {1, 6}}}));
}

BOOST_AUTO_TEST_CASE(an_error_of_the_compiler_is_a_short_reason) {
  if (!has_compiler()) return;
  try {
    compile("this is no C++\n" + std::string(5000, '{'), kCapability);
    BOOST_ERROR("it compiled");
  } catch (const sdk::Error& e) {
    BOOST_TEST(e.code() == TN_CODE_UNSUPPORTED);
    BOOST_TEST(std::string(e.what()).find("program.cu(1): error") != std::string::npos, e.what());
    BOOST_TEST(std::string(e.what()).size() < 800u);
  }
}
