#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <tenon/plugins/host/host_error.h>

namespace tenon::plugins {

namespace {

struct HostError {
  tn_error head;
  std::string message;
  std::deque<std::string> texts;  // of the details; these do not move
  std::vector<tn_key_value> details;

  const char* keep(const char* text) { return text ? texts.emplace_back(text).c_str() : nullptr; }
};

void destroy_host_error(tn_error* error) { delete reinterpret_cast<HostError*>(error); }

void never_destroyed(tn_error*) {}

tn_error without_memory{sizeof(tn_error),
                        TN_CODE_OUT_OF_MEMORY,
                        "a plugin broke the contract, and there was no memory to say how",
                        0,
                        nullptr,
                        never_destroyed};

// An error of each code, for the case that there is no memory for what a plugin said.
tn_error* unsaid(tn_code code) {
  static constexpr const char* text =
      "a plugin gave an error, and there was no memory for what it said";
  static tn_error of_code[] = {
      {sizeof(tn_error), TN_CODE_INTERNAL, text, 0, nullptr, never_destroyed},
      {sizeof(tn_error), TN_CODE_INVALID_ARGUMENT, text, 0, nullptr, never_destroyed},
      {sizeof(tn_error), TN_CODE_OUT_OF_RANGE, text, 0, nullptr, never_destroyed},
      {sizeof(tn_error), TN_CODE_UNSUPPORTED, text, 0, nullptr, never_destroyed},
      {sizeof(tn_error), TN_CODE_OUT_OF_MEMORY, text, 0, nullptr, never_destroyed},
      {sizeof(tn_error), TN_CODE_UNAVAILABLE, text, 0, nullptr, never_destroyed},
      {sizeof(tn_error), TN_CODE_DEVICE_LOST, text, 0, nullptr, never_destroyed}};
  for (auto& error : of_code)
    if (error.code == code) return &error;
  return &of_code[0];
}

}  // namespace

tn_error* error_without_memory() noexcept { return &without_memory; }

tn_error* host_error(tn_code code, std::string message) noexcept try {
  auto error = std::make_unique<HostError>();
  error->message = std::move(message);
  error->head = {sizeof(tn_error), code, error->message.c_str(), 0, nullptr, destroy_host_error};
  return &error.release()->head;
} catch (...) {
  return &without_memory;
}

tn_error* copy_of(const tn_error& error) noexcept try {
  auto copy = std::make_unique<HostError>();
  if (error.message) copy->message = error.message;
  for (size_t i = 0; i < error.num_details; ++i)
    copy->details.push_back({copy->keep(error.details[i].key), copy->keep(error.details[i].value)});
  copy->head = {sizeof(tn_error),     error.code,           copy->message.c_str(),
                copy->details.size(), copy->details.data(), destroy_host_error};
  return &copy.release()->head;
} catch (...) {
  return unsaid(error.code);
}

}  // namespace tenon::plugins
