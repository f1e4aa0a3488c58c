#include "common/gpu_peaks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/built_in.h"
#include "common/status.h"
#include "common/text.h"
#include "common/yaml_map.h"

namespace solward {
namespace {

constexpr absl::string_view kFile = "gpu_peaks.yaml";
constexpr double kTera = 1e12;
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

// What a device reports, relative to the printed size: a T4 with ECC on tells
// 14.6 of 16 GiB, an H200 139.8 of 141, and none more than is printed.
constexpr double kMemoryFloor = 0.90;
constexpr double kMemoryCeiling = 1.005;

struct DtypeNames {
  v1::Dtype dtype;
  absl::string_view name;
  absl::string_view column;
};

constexpr DtypeNames kDtypes[] = {
    {v1::DTYPE_FP64, "fp64", "fp64"},    {v1::DTYPE_FP32, "fp32", "fp32"},
    {v1::DTYPE_TF32, "tf32", "tf32"},    {v1::DTYPE_FP16, "fp16", "fp16_tc"},
    {v1::DTYPE_BF16, "bf16", "bf16_tc"}, {v1::DTYPE_FP8, "fp8", "fp8_tc"},
    {v1::DTYPE_FP4, "fp4", "fp4_tc"},    {v1::DTYPE_INT8, "int8", "int8_tc"},
};

struct DtypeAlias {
  absl::string_view word;
  v1::Dtype dtype;
};

constexpr DtypeAlias kDtypeAliases[] = {
    {"float64", v1::DTYPE_FP64},
    {"double", v1::DTYPE_FP64},
    {"f64", v1::DTYPE_FP64},
    {"float32", v1::DTYPE_FP32},
    {"float", v1::DTYPE_FP32},
    {"single", v1::DTYPE_FP32},
    {"f32", v1::DTYPE_FP32},
    {"tfloat32", v1::DTYPE_TF32},
    {"tensorfloat32", v1::DTYPE_TF32},
    {"float16", v1::DTYPE_FP16},
    {"half", v1::DTYPE_FP16},
    {"f16", v1::DTYPE_FP16},
    {"bfloat16", v1::DTYPE_BF16},
    {"float8", v1::DTYPE_FP8},
    {"f8", v1::DTYPE_FP8},
    {"e4m3", v1::DTYPE_FP8},
    {"e5m2", v1::DTYPE_FP8},
    {"fp8_e4m3", v1::DTYPE_FP8},
    {"fp8_e5m2", v1::DTYPE_FP8},
    {"float8_e4m3fn", v1::DTYPE_FP8},
    {"float8_e5m2", v1::DTYPE_FP8},
    {"mxfp8", v1::DTYPE_FP8},
    {"float4", v1::DTYPE_FP4},
    {"nvfp4", v1::DTYPE_FP4},
    {"mxfp4", v1::DTYPE_FP4},
    {"e2m1", v1::DTYPE_FP4},
    {"fp4_e2m1", v1::DTYPE_FP4},
    {"i8", v1::DTYPE_INT8},
    {"s8", v1::DTYPE_INT8},
    {"uint8", v1::DTYPE_INT8},
};

// "<major>.<minor>" in digits.
bool IsComputeCapability(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  uint32_t number = 0;
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], &number) &&
         absl::SimpleAtoi(parts[1], &number);
}

// A positive number times `scale`; nullopt when absent.
std::optional<double> TakeScaled(YamlMap& map, absl::string_view key, double scale) {
  const std::optional<double> value = map.OptionalNumber(key);
  if (!value.has_value()) return std::nullopt;
  if (*value <= 0) map.Fail(absl::StrCat(key, ": expected a positive number"));
  return *value * scale;
}

absl::StatusOr<GpuPeak> ParsePeak(const YAML::Node& node, size_t index) {
  YamlMap map(node, absl::StrCat(kFile, ": entry ", index));
  GpuPeak peak;
  peak.name = map.String("name");
  map.SetWhere(absl::StrCat(kFile, ": \"", peak.name, "\""));
  peak.aliases = map.Strings("aliases");
  if (peak.aliases.empty()) map.Fail("aliases: expected at least one");
  peak.compute_capability = map.String("cc");
  if (!IsComputeCapability(peak.compute_capability)) map.Fail("cc: expected major.minor");
  const double sm = map.Number("sm", 0);
  if (sm < 0 || sm > 10'000 || sm != std::floor(sm)) map.Fail("sm: expected a count");
  peak.memory_gib = map.Numbers("memory_gib");
  if (peak.memory_gib.empty()) map.Fail("memory_gib: expected at least one size");
  for (const double size : peak.memory_gib) {
    if (size <= 0) map.Fail("memory_gib: expected positive sizes");
  }
  peak.boost_hz = TakeScaled(map, "boost_mhz", 1e6);
  peak.tensor_hz = TakeScaled(map, "tensor_mhz", 1e6);
  peak.fp64 = TakeScaled(map, "fp64", kTera);
  peak.fp64_tc = TakeScaled(map, "fp64_tc", kTera);
  peak.fp32 = TakeScaled(map, "fp32", kTera);
  peak.tf32 = TakeScaled(map, "tf32", kTera);
  peak.fp16 = TakeScaled(map, "fp16_tc", kTera);
  peak.bf16 = TakeScaled(map, "bf16_tc", kTera);
  peak.fp8 = TakeScaled(map, "fp8_tc", kTera);
  peak.fp4 = TakeScaled(map, "fp4_tc", kTera);
  peak.int8 = TakeScaled(map, "int8_tc", kTera);
  peak.dram_bytes_per_second = TakeScaled(map, "dram_gb_per_s", 1e9);
  peak.nvlink_bytes_per_second = TakeScaled(map, "nvlink_gb_per_s", 1e9);
  peak.confidence = map.String("confidence");
  if (!absl::StrContains("ABC", peak.confidence.substr(0, 1))) {
    map.Fail("confidence: expected A, B or C");
  }
  peak.source = map.String("source");
  peak.notes = map.String("notes", "");
  RETURN_IF_ERROR(map.Finish());
  peak.sm_count = static_cast<uint32_t>(sm);
  return peak;
}

std::string ComputeCapabilityOf(const v1::Gpu& gpu) {
  return absl::StrCat(gpu.compute_major(), ".", gpu.compute_minor());
}

std::string GibText(double bytes) { return absl::StrFormat("%.1f GiB", bytes / kGibibyte); }

// What does not fit, or "" when the device is one of this row.
std::string Mismatch(const GpuPeak& peak, const v1::Gpu& gpu) {
  const bool has_cc = gpu.compute_major() != 0;
  if (!has_cc && gpu.sm_count() == 0 && gpu.memory_bytes() == 0) {
    return "a name alone is not enough: compute capability, SM count and memory size are unknown";
  }
  if (has_cc && ComputeCapabilityOf(gpu) != peak.compute_capability) {
    return absl::StrCat("expected compute capability ", peak.compute_capability, ", found ",
                        ComputeCapabilityOf(gpu));
  }
  if (gpu.sm_count() != 0 && peak.sm_count != 0 && gpu.sm_count() != peak.sm_count) {
    return absl::StrCat("expected ", peak.sm_count, " SMs, found ", gpu.sm_count());
  }
  if (gpu.memory_bytes() != 0 && !peak.MemoryFits(static_cast<double>(gpu.memory_bytes()))) {
    return absl::StrCat("expected ", absl::StrJoin(peak.memory_gib, " or "),
                        " GiB of memory, found ", GibText(static_cast<double>(gpu.memory_bytes())));
  }
  return "";
}

absl::Status PeakUnknown(const v1::Gpu& gpu, absl::string_view why) {
  return MakeError(
      absl::StatusCode::kNotFound, "PEAK_UNKNOWN",
      absl::StrCat("no peak known for \"", Truncate(CleanUtf8(gpu.name()), 120), "\": ", why,
                   "; add the device to config/gpu_peaks.yaml with its dense peaks"));
}

}  // namespace

std::optional<double> GpuPeak::PeakOf(v1::Dtype dtype) const {
  switch (dtype) {
    case v1::DTYPE_FP64:
      return fp64_tc.has_value() ? fp64_tc : fp64;
    case v1::DTYPE_FP32:
      return fp32;
    case v1::DTYPE_TF32:
      return tf32;
    case v1::DTYPE_FP16:
      return fp16;
    case v1::DTYPE_BF16:
      return bf16;
    case v1::DTYPE_FP8:
      return fp8;
    case v1::DTYPE_FP4:
      return fp4;
    case v1::DTYPE_INT8:
      return int8;
    default:
      return std::nullopt;
  }
}

absl::string_view GpuPeak::ColumnOf(v1::Dtype dtype) const {
  if (dtype == v1::DTYPE_FP64 && fp64_tc.has_value()) return "fp64_tc";
  for (const DtypeNames& names : kDtypes) {
    if (names.dtype == dtype) return names.column;
  }
  return "";
}

bool GpuPeak::MemoryFits(double bytes) const {
  return std::any_of(memory_gib.begin(), memory_gib.end(), [&](double gib) {
    return bytes >= gib * kGibibyte * kMemoryFloor && bytes <= gib * kGibibyte * kMemoryCeiling;
  });
}

absl::StatusOr<GpuPeaks> GpuPeaks::Parse(absl::string_view yaml) {
  ASSIGN_OR_RETURN(const YAML::Node root, LoadYaml(yaml, kFile));
  YamlMap map(root, kFile);
  const std::vector<YAML::Node> entries = map.List("gpus");
  RETURN_IF_ERROR(map.Finish());
  GpuPeaks out;
  std::set<std::string> names, aliases;
  for (size_t i = 0; i < entries.size(); ++i) {
    ASSIGN_OR_RETURN(GpuPeak peak, ParsePeak(entries[i], i));
    if (!names.insert(peak.name).second) {
      return ConfigError(kFile, absl::StrCat("\"", peak.name, "\" is defined twice"));
    }
    for (const std::string& alias : peak.aliases) {
      if (aliases.insert(alias).second) continue;
      return ConfigError(
          kFile, absl::StrCat("\"", peak.name, "\": alias \"", alias, "\" stands there twice"));
    }
    out.rows_.push_back(std::move(peak));
  }
  return out;
}

absl::StatusOr<const GpuPeak*> GpuPeaks::Match(const v1::Gpu& gpu) const {
  if (gpu.name().empty()) return PeakUnknown(gpu, "the capture does not name the device");
  for (const GpuPeak& peak : rows_) {
    if (std::find(peak.aliases.begin(), peak.aliases.end(), gpu.name()) == peak.aliases.end()) {
      continue;
    }
    const std::string mismatch = Mismatch(peak, gpu);
    if (mismatch.empty()) return &peak;
    return PeakUnknown(gpu, absl::StrCat("it has the name of ", peak.name, " but ", mismatch));
  }
  std::vector<std::string> names;
  for (const GpuPeak& peak : rows_) names.push_back(peak.name);
  return PeakUnknown(
      gpu, absl::StrCat("no row has this name; the rows are ", absl::StrJoin(names, ", ")));
}

const GpuPeaks& BuiltInGpuPeaks() {
  static const GpuPeaks peaks = ParseBuiltIn(kFile, GpuPeaks::Parse);
  return peaks;
}

v1::Dtype ParseDtype(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  absl::string_view word = lower;
  for (const absl::string_view prefix : {"torch.", "c10::"}) {
    if (absl::StartsWith(word, prefix)) word.remove_prefix(prefix.size());
  }
  for (const DtypeNames& names : kDtypes) {
    if (names.name == word) return names.dtype;
  }
  for (const DtypeAlias& alias : kDtypeAliases) {
    if (alias.word == word) return alias.dtype;
  }
  return v1::DTYPE_UNSPECIFIED;
}

absl::string_view DtypeName(v1::Dtype dtype) {
  for (const DtypeNames& names : kDtypes) {
    if (names.dtype == dtype) return names.name;
  }
  return "unspecified";
}

}  // namespace solward
