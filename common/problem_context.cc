#include "common/problem_context.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/gpu_peaks.h"
#include "common/status.h"
#include "common/text.h"
#include "common/units.h"

namespace solward {
namespace {

// Largest integer that a double holds exactly.
constexpr double kMaxDimension = 9007199254740992.0;
constexpr size_t kMaxValueBytes = 1024;

absl::Status BadValue(absl::string_view key, absl::string_view value, absl::string_view expected) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CONTEXT_VALUE_INVALID",
                   absl::StrCat(key, ": expected ", expected, ", found \"",
                                Truncate(CleanUtf8(value), 80), "\""));
}

std::string Normalized(absl::string_view key) {
  std::string out = absl::AsciiStrToLower(absl::StripAsciiWhitespace(key));
  std::replace(out.begin(), out.end(), '-', '_');
  std::replace(out.begin(), out.end(), ' ', '_');
  return out;
}

absl::StatusOr<double> PositiveQuantity(absl::string_view key, absl::string_view value,
                                        absl::string_view unit, absl::string_view default_unit,
                                        absl::string_view expected) {
  const absl::StatusOr<double> number = ParseQuantity(value, unit, default_unit);
  if (!number.ok() || !std::isfinite(*number) || *number <= 0) {
    return BadValue(key, value, expected);
  }
  return *number;
}

void Give(v1::GivenNumber& number, absl::string_view key, double value) {
  number.set_value(value);
  number.set_field(absl::StrCat("context.", key));
  number.clear_text();
}

absl::StatusOr<bool> ParseBool(absl::string_view key, absl::string_view value) {
  const std::string word = Normalized(value);
  if (word == "true" || word == "yes" || word == "1" || word == "oui" || word == "vrai") {
    return true;
  }
  if (word == "false" || word == "no" || word == "0" || word == "non" || word == "faux") {
    return false;
  }
  return BadValue(key, value, "true or false");
}

v1::Operation& TheOperation(v1::ProblemContext& context) {
  if (context.operations().empty()) context.add_operations()->set_field("context");
  return *context.mutable_operations(0);
}

absl::Status SetDimension(absl::string_view name, absl::string_view value,
                          v1::ProblemContext& context) {
  const absl::StatusOr<double> number = ParseCount(value);
  const double least = name == "padding" ? 0 : 1;
  if (!number.ok() || *number < least || *number > kMaxDimension ||
      std::floor(*number) != *number) {
    return BadValue(name, value, least == 0 ? "a whole number" : "a whole number of at least 1");
  }
  (*TheOperation(context).mutable_dimensions())[std::string(name)] = static_cast<int64_t>(*number);
  return absl::OkStatus();
}

// --- the keys ----------------------------------------------------------------

using Setter = std::function<absl::Status(absl::string_view value, v1::ProblemContext&)>;
using MutableNumber = v1::GivenNumber* (v1::ProblemContext::*)();

Setter Flops(const char* key, MutableNumber number) {
  return [=](absl::string_view value, v1::ProblemContext& context) -> absl::Status {
    ASSIGN_OR_RETURN(const double flops,
                     PositiveQuantity(key, value, "{FLOP}", "{FLOP}",
                                      "a FLOP count such as \"68.72 GFLOP\" (a rate is none)"));
    Give(*(context.*number)(), key, flops);
    return absl::OkStatus();
  };
}

Setter Count(const char* key, MutableNumber number) {
  return [=](absl::string_view value, v1::ProblemContext& context) -> absl::Status {
    const absl::StatusOr<double> count = ParseCount(value);
    if (!count.ok() || *count < 1) return BadValue(key, value, "a count of at least 1");
    Give(*(context.*number)(), key, *count);
    return absl::OkStatus();
  };
}

absl::Status SetStepTime(absl::string_view value, v1::ProblemContext& context) {
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  constexpr absl::string_view kExpected = "a time with its unit such as \"24 ms\"";
  if (text.empty() || absl::ascii_isdigit(text.back())) {
    return BadValue("step_time", value, kExpected);
  }
  ASSIGN_OR_RETURN(const double ns, PositiveQuantity("step_time", text, "ns", "s", kExpected));
  Give(*context.mutable_step_time(), "step_time", ns / 1e9);
  return absl::OkStatus();
}

absl::Status SetDtype(absl::string_view value, v1::ProblemContext& context) {
  const v1::Dtype dtype = ParseDtype(absl::StripAsciiWhitespace(value));
  if (dtype == v1::DTYPE_UNSPECIFIED) {
    return BadValue("dtype", value, "one of fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8");
  }
  context.set_dtype(dtype);
  return absl::OkStatus();
}

absl::Status SetMode(absl::string_view value, v1::ProblemContext& context) {
  const std::string word = Normalized(value);
  if (word == "training" || word == "train") {
    context.set_mode(v1::TRAINING_MODE_TRAINING);
  } else if (word == "inference" || word == "infer") {
    context.set_mode(v1::TRAINING_MODE_INFERENCE);
  } else {
    return BadValue("mode", value, "training or inference");
  }
  return absl::OkStatus();
}

absl::Status SetOperation(absl::string_view value, v1::ProblemContext& context) {
  const v1::OperationKind kind = ParseOperationKind(value);
  if (kind == v1::OPERATION_KIND_UNSPECIFIED) {
    return BadValue("operation", value,
                    "one of gemm, batched_gemm, convolution, attention, transformer_training");
  }
  TheOperation(context).set_kind(kind);
  return absl::OkStatus();
}

Setter Flag(const char* key, void (v1::Operation::*set)(bool)) {
  return [=](absl::string_view value, v1::ProblemContext& context) -> absl::Status {
    ASSIGN_OR_RETURN(const bool flag, ParseBool(key, value));
    (TheOperation(context).*set)(flag);
    return absl::OkStatus();
  };
}

absl::Status SetGpu(absl::string_view value, v1::ProblemContext& context) {
  const absl::string_view name = absl::StripAsciiWhitespace(value);
  if (name.empty() || name.size() > 128) return BadValue("gpu", value, "a GPU's name");
  context.set_gpu_name(CleanUtf8(name));
  return absl::OkStatus();
}

using Setters = std::map<std::string, Setter, std::less<>>;

const Setters& KeySetters() {
  static const Setters setters = {
      {"dtype", SetDtype},
      {"flops_per_call", Flops("flops_per_call", &v1::ProblemContext::mutable_flops_per_call)},
      {"flops_per_step", Flops("flops_per_step", &v1::ProblemContext::mutable_flops_per_step)},
      {"batch", Count("batch_size", &v1::ProblemContext::mutable_batch_size)},
      {"sequence", Count("sequence_length", &v1::ProblemContext::mutable_sequence_length)},
      {"world_size", Count("world_size", &v1::ProblemContext::mutable_world_size)},
      {"calls_per_step", Count("calls_per_step", &v1::ProblemContext::mutable_calls_per_step)},
      {"parameters", Count("parameters", &v1::ProblemContext::mutable_parameters)},
      {"step_time", SetStepTime},
      {"mode", SetMode},
      {"gpu", SetGpu},
      {"operation", SetOperation},
      {"causal", Flag("causal", &v1::Operation::set_causal)},
      {"backward", Flag("backward", &v1::Operation::set_backward)},
      {"dimensions", ApplyDimensions},
  };
  return setters;
}

std::string Alias(absl::string_view key) {
  static const std::map<absl::string_view, const char*> aliases = {
      {"batch_size", "batch"},     {"bs", "batch"},         {"batchsize", "batch"},
      {"seq", "sequence"},         {"seq_len", "sequence"}, {"sequence_length", "sequence"},
      {"seqlen", "sequence"},      {"ranks", "world_size"}, {"params", "parameters"},
      {"flops", "flops_per_call"}, {"gpu_name", "gpu"},     {"precision", "dtype"},
  };
  const auto found = aliases.find(key);
  return found == aliases.end() ? std::string(key) : found->second;
}

absl::Status ApplyTo(absl::string_view key, absl::string_view value, v1::ProblemContext& context) {
  if (value.size() > kMaxValueBytes) {
    return BadValue(key, value, absl::StrCat("at most ", kMaxValueBytes, " bytes"));
  }
  const std::string normalized = Alias(Normalized(key));
  const auto setter = KeySetters().find(normalized);
  if (setter != KeySetters().end()) return setter->second(value, context);
  if (const std::string dimension = DimensionName(key); !dimension.empty()) {
    return SetDimension(dimension, value, context);
  }
  const std::vector<std::string> close = CloseNames(normalized, ContextKeys());
  return MakeError(
      absl::StatusCode::kInvalidArgument, "CONTEXT_KEY_UNKNOWN",
      absl::StrCat("\"", Truncate(CleanUtf8(key), 40), "\": unknown context key",
                   close.empty() ? "" : absl::StrCat(", did you mean \"", close.front(), "\"?"),
                   " Known: ", absl::StrJoin(ContextKeys(), ", ")));
}

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

absl::Status ApplyContextValue(absl::string_view key, absl::string_view value,
                               v1::ProblemContext& context) {
  v1::ProblemContext changed = context;
  RETURN_IF_ERROR(ApplyTo(key, value, changed));
  context = std::move(changed);
  return absl::OkStatus();
}

absl::Status ApplyDimensions(absl::string_view text, v1::ProblemContext& context) {
  v1::ProblemContext changed = context;
  constexpr absl::string_view kExpected = "pairs such as \"B=32 M=512 N=1024 K=2048\"";
  size_t count = 0;
  for (const absl::string_view pair :
       absl::StrSplit(text, absl::ByAnyChar(" ,;\t\n"), absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(pair, '=');
    if (parts.size() < 2 || parts.back().empty()) return BadValue("dimensions", text, kExpected);
    // "M=N=K=8192" sets three.
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string name = DimensionName(parts[i]);
      if (name.empty()) return BadValue("dimensions", text, kExpected);
      RETURN_IF_ERROR(SetDimension(name, parts.back(), changed));
      ++count;
    }
  }
  if (count == 0) return BadValue("dimensions", text, kExpected);
  context = std::move(changed);
  return absl::OkStatus();
}

const std::vector<std::string>& ContextKeys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> out = {"B", "M",      "N",       "K",        "C",      "H",
                                    "W", "R",      "S",       "S_kv",     "D",      "P",
                                    "Q", "stride", "padding", "dilation", "groups", "tokens"};
    for (const auto& [key, setter] : KeySetters()) out.push_back(key);
    return out;
  }();
  return keys;
}

std::string DimensionName(absl::string_view name) {
  const absl::string_view word = absl::StripAsciiWhitespace(name);
  if (word.size() == 1 && absl::ascii_isalpha(word[0])) return absl::AsciiStrToUpper(word);
  static const std::map<absl::string_view, const char*> names = {
      {"s_kv", "S_kv"},       {"skv", "S_kv"},      {"kv_len", "S_kv"},
      {"s_q", "S"},           {"head_dim", "D"},    {"headdim", "D"},
      {"head_size", "D"},     {"heads", "H"},       {"num_heads", "H"},
      {"n_heads", "H"},       {"n_head", "H"},      {"stride", "stride"},
      {"padding", "padding"}, {"pad", "padding"},   {"dilation", "dilation"},
      {"groups", "groups"},   {"tokens", "tokens"}, {"tokens_per_step", "tokens"},
  };
  const auto found = names.find(Normalized(word));
  return found == names.end() ? "" : found->second;
}

absl::StatusOr<double> ParseCount(absl::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const absl::StatusOr<double> number = ParseQuantity(trimmed, "{parameter}", "{parameter}");
  if (!number.ok() || !std::isfinite(*number) || *number < 0) {
    return BadValue("number", text, "a count such as 32, 1e9 or 7B");
  }
  return *number;
}

v1::OperationKind ParseOperationKind(absl::string_view text) {
  static const std::map<absl::string_view, v1::OperationKind> kinds = {
      {"gemm", v1::OPERATION_KIND_GEMM},
      {"matmul", v1::OPERATION_KIND_GEMM},
      {"batched_gemm", v1::OPERATION_KIND_BATCHED_GEMM},
      {"bmm", v1::OPERATION_KIND_BATCHED_GEMM},
      {"batched_matmul", v1::OPERATION_KIND_BATCHED_GEMM},
      {"convolution", v1::OPERATION_KIND_CONVOLUTION},
      {"conv", v1::OPERATION_KIND_CONVOLUTION},
      {"conv2d", v1::OPERATION_KIND_CONVOLUTION},
      {"attention", v1::OPERATION_KIND_ATTENTION},
      {"transformer_training", v1::OPERATION_KIND_TRANSFORMER_TRAINING},
  };
  const auto found = kinds.find(Normalized(text));
  return found == kinds.end() ? v1::OPERATION_KIND_UNSPECIFIED : found->second;
}

absl::string_view OperationKindName(v1::OperationKind kind) {
  switch (kind) {
    case v1::OPERATION_KIND_GEMM:
      return "gemm";
    case v1::OPERATION_KIND_BATCHED_GEMM:
      return "batched_gemm";
    case v1::OPERATION_KIND_CONVOLUTION:
      return "convolution";
    case v1::OPERATION_KIND_ATTENTION:
      return "attention";
    case v1::OPERATION_KIND_TRANSFORMER_TRAINING:
      return "transformer_training";
    default:
      return "";
  }
}

v1::OperationKind KindOfDimensions(const v1::Operation& operation) {
  const auto& d = operation.dimensions();
  const auto has = [&](const char* name) { return d.count(name) > 0; };
  if (has("M") && has("N") && has("K")) {
    return has("B") ? v1::OPERATION_KIND_BATCHED_GEMM : v1::OPERATION_KIND_GEMM;
  }
  if (has("C") && has("H") && has("W")) return v1::OPERATION_KIND_CONVOLUTION;
  if (has("H") && has("D")) return v1::OPERATION_KIND_ATTENTION;
  if (has("tokens")) return v1::OPERATION_KIND_TRANSFORMER_TRAINING;
  return v1::OPERATION_KIND_UNSPECIFIED;
}

std::vector<std::string> CloseNames(absl::string_view name, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest) return {};
  const std::string wanted = Normalized(name);
  const size_t most = std::max<size_t>(2, wanted.size() / 3);
  std::vector<std::pair<size_t, std::string>> close;
  for (const std::string& candidate : names) {
    // One letter is close to every other one.
    if (candidate.size() < 2 || candidate.size() > kLongest) continue;
    const size_t distance = EditDistance(wanted, Normalized(candidate));
    if (distance <= most && distance < wanted.size()) close.emplace_back(distance, candidate);
  }
  std::stable_sort(close.begin(), close.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (size_t i = 0; i < close.size() && i < 3; ++i) out.push_back(close[i].second);
  return out;
}

}  // namespace solward
