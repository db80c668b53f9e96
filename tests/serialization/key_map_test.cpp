// How names are brought together, on names and shapes alone.
#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>
#include <tenon/serialization/key_map.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(key_map_test)

using namespace tenon;

namespace {

using Keys = std::vector<std::string>;

// Keys of one shape; "name:3" has shape (3,) instead.
KeySide side(const Keys& keys, std::optional<Keys> wrappers = {}) {
  KeySide result{{}, std::move(wrappers)};
  for (const std::string& key : keys) {
    const size_t colon = key.find(':');
    result.tensors.push_back(
        {key.substr(0, colon), {colon == key.npos ? 1 : std::stoll(key.substr(colon + 1))}});
  }
  return result;
}

// "from>to" for every pair, in the model's order.
Keys pairs(const KeySide& checkpoint, const KeySide& model, const LoadOptions& options = {}) {
  Keys result;
  for (auto [from, to] : map_keys(checkpoint, model, options, "Net").pairs)
    result.push_back(checkpoint.tensors[from].key + ">" + model.tensors[to].key);
  return result;
}
std::string refusal(const KeySide& checkpoint, const KeySide& model,
                    const LoadOptions& options = {}) {
  return error_of<StateDictError>([&] { map_keys(checkpoint, model, options, "Net"); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(exact_names_come_first) {
  // Read with wrappers taken out, these two would change places.
  BOOST_TEST((pairs(side({"module.w", "w"}), side({"w", "module.w"})) ==
              Keys{"w>w", "module.w>module.w"}));
}

BOOST_AUTO_TEST_CASE(prefixes_of_other_tools_are_taken_out_at_any_depth) {
  const KeySide model = side({"body.0.weight", "head.bias"}, Keys{});
  for (const Keys& keys : std::vector<Keys>{
           {"module.body.0.weight", "module.head.bias"},
           {"_orig_mod.body.0.weight", "_orig_mod.head.bias"},
           {"_orig_mod.module.body.0.weight", "_orig_mod.module.head.bias"},
           {"body.0.weight", "head._orig_mod.bias"},
           {"body._checkpoint_wrapped_module.0._fsdp_wrapped_module.weight", "module.head.bias"}})
    BOOST_TEST(
        (pairs(side(keys), model) == Keys{keys[0] + ">body.0.weight", keys[1] + ">head.bias"}));
}

BOOST_AUTO_TEST_CASE(a_wrapper_that_is_known_may_have_any_name) {
  BOOST_TEST((pairs(side({"inner.w"}, Keys{"inner"}), side({"w"}, Keys{})) == Keys{"inner.w>w"}));
  BOOST_TEST((pairs(side({"w"}), side({"inner.w"}, Keys{"inner"})) == Keys{"w>inner.w"}));
  BOOST_TEST(has(refusal(side({"inner.w"}, Keys{}), side({"w"}, Keys{})), "Missing key(s)"));
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_itself_called_module_stays) {
  BOOST_TEST((pairs(side({"module.module"}), side({"module"})) == Keys{"module.module>module"}));
}

BOOST_AUTO_TEST_CASE(a_real_layer_named_module_is_told_from_a_wrapper) {
  const KeySide plain = side({"module.w", "w"}, Keys{});
  const Keys expected = {"module.module.w>module.w", "module.w>w"};
  BOOST_TEST((pairs(side({"module.module.w", "module.w"}, Keys{"module"}), plain) == expected));
  // Another tool's file does not say what is a wrapper; that all names begin with it does.
  BOOST_TEST((pairs(side({"module.module.w", "module.w"}), plain) == expected));
}

BOOST_AUTO_TEST_CASE(an_ambiguous_mapping_is_refused) {
  const std::string text = refusal(side({"a.module.w", "a.w"}), side({"module.a.w", "b"}, Keys{}));
  BOOST_TEST(
      text.starts_with("Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
                       "\"module.a.w\", \"b\". "
                       "\n\tUnexpected key(s) in state_dict: \"a.module.w\", \"a.w\". "));
  BOOST_TEST(has(text, "ambiguous: \"a.module.w\" and \"a.w\" would both become \"a.w\""));
}

BOOST_AUTO_TEST_CASE(every_shape_has_to_agree) {
  const std::string text = refusal(side({"module.w:3", "module.b"}), side({"w:2", "b"}));
  BOOST_TEST(has(text, "Missing key(s) in state_dict: \"w\", \"b\". "));
  BOOST_TEST(has(text,
                 "the names agree, but not the shapes:\n\tsize mismatch for w (module.w in "
                 "the checkpoint): copying a param with "
                 "shape (3,) from checkpoint, the shape in current model is (2,)."));
}

BOOST_AUTO_TEST_CASE(what_is_left_over_is_named_with_the_nearest_names) {
  const std::string text =
      refusal(side({"fc1.weight", "fc1.bais", "scale"}), side({"fc1.weight", "fc1.bias"}));
  BOOST_TEST(text ==
             "Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
             "\"fc1.bias\". \n\tUnexpected key(s) in state_dict: "
             "\"fc1.bais\", \"scale\". \n\tNearest names in state_dict: \"fc1.bais\" for "
             "\"fc1.bias\".\n\tLoad with .strict = false to "
             "take what fits and leave the rest as it is.");
  BOOST_TEST(has(refusal(side({"module.a", "module.b"}), side({"a", "b", "c"})),
                 "2 of 3 tensors find their place; still missing: \"c\"."));
  BOOST_TEST(has(refusal(side({"x"}), side({"yyyy"})), "is this a checkpoint of another model?"));
}

BOOST_AUTO_TEST_CASE(a_name_with_the_same_shape_is_nearer) {
  const KeySide checkpoint{{{"head.weight", {3, 16}}, {"conv1.weight", {4, 1, 3, 3}}}, {}};
  const KeySide model{{{"layers.0.weight", {4, 1, 3, 3}}, {"layers.9.weight", {3, 16}}}, {}};
  BOOST_TEST(has(refusal(checkpoint, model),
                 "\"conv1.weight\" for \"layers.0.weight\", \"head.weight\" for "
                 "\"layers.9.weight\""));
}

BOOST_AUTO_TEST_CASE(without_strictness_the_mapping_that_places_most_is_taken) {
  const LoadOptions loose{.strict = false};
  BOOST_TEST((pairs(side({"module.a", "module.b", "extra"}), side({"a", "b", "c"}), loose) ==
              Keys{"module.a>a", "module.b>b"}));
  const LoadReport report =
      map_keys(side({"module.a", "extra"}), side({"a", "c"}), loose, "Net").report;
  BOOST_TEST((report.missing == Keys{"c"}));
  BOOST_TEST((report.unexpected == Keys{"extra"}));
  BOOST_TEST(report.str() ==
             "loaded 1 of 2 tensors\n  renamed: module.a -> a\n  missing from the checkpoint: c\n  "
             "unexpected in the checkpoint: extra");
  BOOST_TEST(has(refusal(side({"module.a:2"}), side({"a"}), loose),
                 "size mismatch for a (module.a in the checkpoint)"));
  BOOST_TEST(
      pairs(side({"module.a"}), side({"a"}), {.strict = false, .prefix = Prefix::exact}).empty());
}

BOOST_AUTO_TEST_CASE(nothing_on_either_side_is_complete) {
  BOOST_TEST(map_keys(side({}), side({}), {}, "Net").report.complete());
  BOOST_TEST(has(refusal(side({}), side({"a"})), "Missing key(s) in state_dict: \"a\". "));
  BOOST_TEST(has(refusal(side({"a"}), side({})), "Unexpected key(s) in state_dict: \"a\". "));
}

BOOST_AUTO_TEST_CASE(long_reports_are_cut) {
  LoadReport report;
  for (int i = 0; i < 20; ++i) report.missing.push_back(std::string("w").append(std::to_string(i)));
  BOOST_TEST(report.str() ==
             "loaded 0 of 20 tensors\n  missing from the checkpoint: w0, w1, w2, w3, w4, w5, w6, "
             "w7 and 12 more");
}

BOOST_AUTO_TEST_SUITE_END()
