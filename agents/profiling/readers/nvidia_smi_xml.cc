// Output of `nvidia-smi -q -x`. Element names differ between drivers and do not
// follow the DTD's number: values keep their path below <gpu>, and who looks
// for one asks for either name.
#include <expat.h>

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/smi_values.h"
#include "agents/profiling/readers/statistics.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::readers {
namespace {

constexpr uint64_t kMaxBytes = 256ull << 20;

struct ParserFree {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};
using ParserPointer = std::unique_ptr<std::remove_pointer_t<XML_Parser>, ParserFree>;

// Repeated parts that are lists of things, not fields of the device.
bool IsList(absl::string_view element) {
  return element == "processes" || element == "supported_clocks" ||
         element == "accounted_processes" || element == "mig_devices" ||
         element == "retired_pages" || element == "remapped_rows_histogram";
}

class Builder {
 public:
  Builder(const ReaderLimits& limits, XML_Parser parser) : limits_(limits), parser_(parser) {}

  void Start(absl::string_view element) {
    if (path_.size() >= limits_.max_depth) return Stop("elements nested too deeply");
    path_.push_back({std::string(element), ""});
    if (path_.size() == 1) {
      is_smi_ = element == "nvidia_smi_log";
      if (!is_smi_) Stop("the root element is not <nvidia_smi_log>");
    } else if (path_.size() == 2 && element == "gpu") {
      sample_ = SmiSample();
      sample_.row = sample_.device = static_cast<int32_t>(report_.samples.size());
    } else if (element == "mig_device") {
      statistics_.Count("smi_mig_devices", v1::PARSE_SEVERITY_INFO,
                        "MIG devices; nvidia-smi prints no utilization for a GPU in MIG mode.");
    }
  }

  void Text(absl::string_view text) {
    if (path_.empty()) return;
    if (path_.back().text.size() + text.size() > limits_.max_string_bytes) {
      return Stop("an element's text is longer than max_string_bytes");
    }
    path_.back().text.append(text.data(), text.size());
  }

  void End() {
    if (path_.empty()) return;
    const absl::string_view text = absl::StripAsciiWhitespace(path_.back().text);
    if (!text.empty()) Leaf(text);
    if (path_.size() == 2 && path_[1].name == "gpu") EndGpu();
    path_.pop_back();
  }

  SmiReport Take() {
    report_.statistics = statistics_.Take();
    return std::move(report_);
  }
  const std::string& stopped() const { return stopped_; }

 private:
  struct Level {
    std::string name, text;
  };

  void Stop(std::string why) {
    if (stopped_.empty()) stopped_ = std::move(why);
    XML_StopParser(parser_, XML_FALSE);
  }

  void Leaf(absl::string_view text) {
    if (path_.size() == 2) {
      if (path_[1].name == "driver_version") report_.driver_version = CleanUtf8(text);
      if (path_[1].name == "cuda_version") report_.cuda_version = CleanUtf8(text);
      return;
    }
    if (path_.size() < 3 || path_[1].name != "gpu") return;
    for (size_t i = 2; i < path_.size(); ++i) {
      if (IsList(path_[i].name)) return;
    }
    if (++values_ > limits_.max_entries) return Stop("more values than max_entries");
    const std::string field =
        absl::StrJoin(path_.begin() + 2, path_.end(), "/",
                      [](std::string* out, const Level& level) { out->append(level.name); });
    AddSmiValue(field, text, "", &sample_, &statistics_);
  }

  void EndGpu() {
    v1::Gpu gpu;
    gpu.set_device(sample_.device);
    gpu.set_name(SmiText(sample_, {"product_name"}));
    gpu.set_uuid(SmiText(sample_, {"uuid"}));
    gpu.set_memory_bytes(
        static_cast<uint64_t>(SmiNumber(sample_, {"fb_memory_usage/total"}, 1e16)));
    gpu.set_max_sm_clock_hz(
        static_cast<uint64_t>(SmiNumber(sample_, {"max_clocks/sm_clock"}, 1e12)));
    report_.gpus.push_back(std::move(gpu));
    report_.samples.push_back(std::move(sample_));
    sample_ = SmiSample();
  }

  const ReaderLimits& limits_;
  const XML_Parser parser_;
  std::vector<Level> path_;
  bool is_smi_ = false;
  std::string stopped_;
  uint64_t values_ = 0;
  SmiSample sample_;
  SmiReport report_;
  Statistics statistics_;
};

void OnStart(void* builder, const XML_Char* name, const XML_Char**) {
  static_cast<Builder*>(builder)->Start(name);
}
void OnEnd(void* builder, const XML_Char*) { static_cast<Builder*>(builder)->End(); }
void OnText(void* builder, const XML_Char* text, int length) {
  static_cast<Builder*>(builder)->Text(absl::string_view(text, static_cast<size_t>(length)));
}

absl::Status XmlError(const std::string& label, XML_Parser parser, absl::string_view stopped) {
  const absl::string_view why =
      stopped.empty() ? absl::string_view(XML_ErrorString(XML_GetErrorCode(parser))) : stopped;
  return MakeError(
      absl::StatusCode::kInvalidArgument, "CAPTURE_MALFORMED",
      absl::StrCat(label, ":", XML_GetCurrentLineNumber(parser),
                   ": not a complete nvidia-smi XML: ", why, "; record it again with -q -x"));
}

}  // namespace

absl::StatusOr<SmiReport> ReadNvidiaSmiXml(const std::string& path, const ReaderLimits& limits) {
  ReaderLimits capped = limits;
  capped.max_decompressed_bytes = std::min<uint64_t>(limits.max_decompressed_bytes, kMaxBytes);
  ASSIGN_OR_RETURN(auto input, InputFile::Open(path, capped));
  ParserPointer parser(XML_ParserCreate(nullptr));
  if (parser == nullptr) {
    return MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY", "no memory for XML");
  }
  Builder builder(limits, parser.get());
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(parser.get(), OnStart, OnEnd);
  XML_SetCharacterDataHandler(parser.get(), OnText);
  char block[1 << 16];
  for (bool last = false; !last;) {
    ASSIGN_OR_RETURN(const size_t n, input->Read(block, sizeof block));
    last = n == 0;
    if (XML_Parse(parser.get(), block, static_cast<int>(n), last ? 1 : 0) != XML_STATUS_OK) {
      return XmlError(input->label(), parser.get(), builder.stopped());
    }
  }
  SmiReport report = builder.Take();
  if (report.samples.empty()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "CAPTURE_HAS_NO_ROWS",
                     absl::StrCat(input->label(), ": nvidia-smi XML without a <gpu> element"));
  }
  return report;
}

}  // namespace solward::readers
