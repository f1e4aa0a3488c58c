// Kind of a capture by its content.
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/profiling/readers/csv.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/ncu_csv.h"
#include "agents/profiling/readers/reader.h"
#include "common/status.h"

namespace solward::readers {
namespace {

using absl::StrContains;
using absl::string_view;

// Enough for every header seen; text whose header comes later (a program that
// prints a lot first) is looked at once more with the larger size.
constexpr size_t kHead = 256 << 10;
constexpr size_t kLongHead = 16 << 20;

constexpr string_view kReadable =
    "readable are ncu CSV (raw or details page), nsys SQLite exports, torch.profiler traces, "
    "nvidia-smi CSV and XML";

absl::Status Unknown(string_view label, string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNKNOWN",
                   absl::StrCat(label, ": ", what, "; ", kReadable));
}

// Something recognised that cannot be read, with what to do about it.
absl::Status Unsupported(string_view label, string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNSUPPORTED",
                   absl::StrCat(label, ": ", what));
}

bool StartsWithNoCase(string_view text, string_view prefix) {
  return absl::StartsWithIgnoreCase(text, prefix);
}

bool HasAny(string_view text, std::initializer_list<string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](string_view word) { return StrContains(text, word); });
}

// --- binary kinds -----------------------------------------------------------

bool LooksLikeNsysTables(string_view text) {
  return HasAny(text, {"CUPTI_ACTIVITY_KIND_", "TARGET_INFO_SYSTEM_ENV", "META_DATA_EXPORT",
                       "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SESSION_START_TIME",
                       "ENUM_NSYS_EVENT_TYPE"});
}

struct SqliteClose {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};

// Names of all tables, joined by blanks; the schema of a large database need
// not be in its first pages.
absl::StatusOr<std::string> TableNames(const std::string& path, const ReaderLimits& limits) {
  ASSIGN_OR_RETURN(PlainFile plain, PlainFile::Make(path, limits));
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(plain.path().c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, SqliteClose> db(raw);
  std::string names;
  const auto append = [](void* out, int, char** values, char**) {
    if (values[0] != nullptr) absl::StrAppend(static_cast<std::string*>(out), values[0], " ");
    return 0;
  };
  if (rc != SQLITE_OK || sqlite3_exec(db.get(), "SELECT name FROM sqlite_master WHERE type='table'",
                                      append, &names, nullptr) != SQLITE_OK) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_MALFORMED",
                     absl::StrCat(path.substr(path.find_last_of('/') + 1),
                                  ": a damaged SQLite file: ", sqlite3_errmsg(db.get())));
  }
  return names;
}

absl::StatusOr<v1::CaptureKind> DetectSqlite(const std::string& path, string_view label,
                                             string_view head, const ReaderLimits& limits) {
  if (LooksLikeNsysTables(head)) return v1::CAPTURE_KIND_NSYS_SQLITE;
  ASSIGN_OR_RETURN(const std::string names, TableNames(path, limits));
  if (LooksLikeNsysTables(names)) return v1::CAPTURE_KIND_NSYS_SQLITE;
  return Unsupported(
      label,
      absl::StrCat("an SQLite file without the tables of an nsys export (DLProf, rocprof and "
                   "others write SQLite too); its tables: ",
                   names.empty() ? "none" : names.substr(0, 200),
                   ". Export the nsys report with `nsys export --type sqlite`"));
}

// Kinds told by their first bytes; nullopt-like UNSPECIFIED when none fits.
absl::StatusOr<v1::CaptureKind> DetectBinary(const std::string& path, string_view label,
                                             string_view head, const ReaderLimits& limits) {
  if (absl::StartsWith(head, string_view("SQLite format 3\0", 16))) {
    return DetectSqlite(path, label, head, limits);
  }
  if (absl::StartsWith(head, string_view("NVR\0", 4))) return v1::CAPTURE_KIND_NCU_REPORT;
  if (absl::StartsWith(head,
                       "\x7f"
                       "ELF")) {
    return Unknown(label, "an ELF program or library, not a capture");
  }
  if (absl::StartsWith(head, "PK\x03\x04")) {
    return Unknown(label, "a zip archive; unpack it and give the capture inside");
  }
  if (head.size() > 262 && head.substr(257, 5) == "ustar") {
    return Unknown(label, "a tar archive; unpack it and give the captures inside");
  }
  const bool binary = head.substr(0, 4096).find('\0') != string_view::npos;
  if (binary &&
      HasAny(head.substr(0, 65536), {"NVIDIA Tegra Profiler", "QuadD", "Nsight Systems"})) {
    return v1::CAPTURE_KIND_NSYS_REPORT;
  }
  if (binary && HasAny(head.substr(0, 65536), {"/host:metadata", "/device:GPU", "/device:TPU"})) {
    return Unsupported(label, absl::StrCat("an XPlane profile (JAX, TensorFlow); ", kReadable));
  }
  return v1::CAPTURE_KIND_UNSPECIFIED;
}

// --- JSON -------------------------------------------------------------------

absl::StatusOr<v1::CaptureKind> DetectJson(string_view label, string_view head) {
  if (HasAny(head, {"\"rocprofiler-sdk-tool\"", "\"rocprofiler_sdk\"", "\"rocprofv3\""})) {
    return Unsupported(label, absl::StrCat("a rocprofv3 results file; ", kReadable));
  }
  if (!StrContains(head, "\"traceEvents\"") && StrContains(head, "\"nodes\"") &&
      HasAny(head, {"\"rf_id\"", "execution_trace", "\"op_schema\""})) {
    return Unsupported(label,
                       "a PyTorch/Chakra execution trace, which has no GPU timestamps; record a "
                       "torch.profiler trace (export_chrome_trace) beside it");
  }
  const bool kineto = HasAny(
      head, {"\"schemaVersion\"", "\"deviceProperties\"", "\"computeProperties\"",
             "\"baseTimeNanoseconds\"", "\"distributedInfo\"", "\"cupti_version\"",
             "\"roctracer_version\"", "PyTorch Profiler", "\"cuda_runtime\"", "\"gpu_memcpy\"",
             "\"cpu_op\"", "\"Operator\"", "\"External id\"", "\"external id\""});
  if (StrContains(head, "\"traceEvents\"")) {
    if (kineto) return v1::CAPTURE_KIND_TORCH_TRACE;
    return Unsupported(label,
                       "a Chrome trace without the marks of torch.profiler (Kineto): another "
                       "program wrote it, and it says nothing about the GPU. Record with "
                       "torch.profiler and ProfilerActivity.CUDA");
  }
  if (kineto) return v1::CAPTURE_KIND_TORCH_TRACE;
  if (HasAny(head, {"\"ph\"", "\"dur\""})) {
    return Unsupported(label,
                       "a Chrome trace as a bare list of events (the old autograd profiler writes "
                       "it), without GPU activity of Kineto; record with torch.profiler");
  }
  return Unknown(label, "JSON that is no torch.profiler trace (no traceEvents)");
}

// --- text -------------------------------------------------------------------

bool IsSmiField(string_view title) {
  title = absl::StripAsciiWhitespace(title);
  const size_t bracket = title.find(" [");
  if (bracket != string_view::npos) title = title.substr(0, bracket);
  return !title.empty() && std::all_of(title.begin(), title.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '_';
  });
}

bool IsSmiHeader(string_view line) {
  const std::vector<string_view> titles = absl::StrSplit(line, ',');
  if (!std::all_of(titles.begin(), titles.end(), IsSmiField)) return false;
  return std::any_of(titles.begin(), titles.end(), [](string_view title) {
    title = absl::StripAsciiWhitespace(title);
    return HasAny(title, {"utilization.", "memory.", "clocks.", "power.", "temperature.", "pci.",
                          "pcie.", "driver_version", "compute_cap", "fan.speed"}) ||
           title == "uuid" || title == "gpu_name" || title == "gpu_uuid";
  });
}

absl::Status NamedText(string_view label, string_view text) {
  if (absl::StartsWith(text, "version https://git-lfs.github.com/spec/")) {
    return Unsupported(label, "a Git LFS pointer, not the file itself; run `git lfs pull`");
  }
  const string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (StartsWithNoCase(start, "<!doctype html") || StartsWithNoCase(start, "<html")) {
    return Unknown(label, "an HTML page, probably of a failed download or a login");
  }
  if (StrContains(text, "is not a valid field to query")) {
    return Unsupported(label,
                       "an error message of nvidia-smi: a field it was asked for is unknown");
  }
  if (StrContains(text, "==PROF==") || StrContains(text, "Section: GPU Speed Of Light")) {
    return Unsupported(label,
                       "ncu's text output; export the report with `ncu --import FILE --page raw "
                       "--csv` and give that");
  }
  if (HasAny(text, {"cuda_gpu_kern_sum", "cuda_api_sum", "cudaapisum", "gpukernsum",
                    "Time (%),Total Time (ns)", "CUDA API Statistics"})) {
    return Unsupported(label,
                       "a summary of nsys stats, which has no time axis; export the report with "
                       "`nsys export --type sqlite` and give that");
  }
  if (HasAny(text, {"NVSMI LOG", "NVIDIA-SMI ", "# gpu "})) {
    return Unsupported(label,
                       "nvidia-smi's text for people; record `nvidia-smi -q -x` or `nvidia-smi "
                       "--query-gpu=... --format=csv`");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::CaptureKind> DetectText(string_view label, string_view text) {
  const size_t header = FindNcuHeader(text);
  if (header != string_view::npos) {
    CsvRecords reader(text.substr(header, text.find('\n', header) - header));
    std::vector<std::string> titles;
    reader.Next(&titles);
    switch (NcuPageOfHeader(titles)) {
      case NcuPage::kRaw:
        return v1::CAPTURE_KIND_NCU_CSV_RAW;
      case NcuPage::kDetails:
        return v1::CAPTURE_KIND_NCU_CSV_DETAILS;
      case NcuPage::kSummary:
        return Unsupported(label,
                           "an ncu summary over launches; export the report with --page raw --csv "
                           "and no --print-summary");
      case NcuPage::kNone:
        break;
    }
  }
  const string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (absl::StartsWith(start, "<") && StrContains(start.substr(0, 4096), "nvidia_smi_log")) {
    return v1::CAPTURE_KIND_NVIDIA_SMI_XML;
  }
  if (IsSmiHeader(absl::StripTrailingAsciiWhitespace(start.substr(0, start.find('\n'))))) {
    return v1::CAPTURE_KIND_NVIDIA_SMI_CSV;
  }
  RETURN_IF_ERROR(NamedText(label, text));
  if (absl::StartsWith(start, "{") || absl::StartsWith(start, "[")) return DetectJson(label, start);
  return v1::CAPTURE_KIND_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<v1::CaptureKind> DetectKind(const std::string& path) {
  const ReaderLimits limits;
  const std::string label = path.substr(path.find_last_of('/') + 1);
  absl::Status end;
  ASSIGN_OR_RETURN(std::string head, ReadHead(path, limits, kHead, &end));
  ASSIGN_OR_RETURN(v1::CaptureKind kind, DetectBinary(path, label, head, limits));
  if (kind != v1::CAPTURE_KIND_UNSPECIFIED) return kind;
  const bool more = head.size() == kHead;
  std::string text = ToUtf8(std::move(head));
  const bool binary = text.substr(0, 4096).find('\0') != std::string::npos;
  absl::StatusOr<v1::CaptureKind> found = DetectText(label, text);
  if (!binary && more && (!found.ok() || *found == v1::CAPTURE_KIND_UNSPECIFIED)) {
    ASSIGN_OR_RETURN(std::string longer, ReadHead(path, limits, kLongHead, &end));
    text = ToUtf8(std::move(longer));
    found = DetectText(label, text);
  }
  if (!found.ok()) return found.status();
  if (*found != v1::CAPTURE_KIND_UNSPECIFIED) return found;
  // A file that broke off before it said what it is.
  if (!end.ok()) return end;
  if (absl::StripAsciiWhitespace(text).empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_EMPTY",
                     absl::StrCat(label, ": nothing but white space"));
  }
  return Unknown(label,
                 binary ? "binary data of no kind known here" : "text of no kind known here");
}

absl::string_view KindName(v1::CaptureKind kind) {
  switch (kind) {
    case v1::CAPTURE_KIND_NCU_REPORT:
      return "ncu report";
    case v1::CAPTURE_KIND_NCU_CSV_RAW:
      return "ncu CSV (raw page)";
    case v1::CAPTURE_KIND_NCU_CSV_DETAILS:
      return "ncu CSV (details page)";
    case v1::CAPTURE_KIND_NSYS_REPORT:
      return "nsys report";
    case v1::CAPTURE_KIND_NSYS_SQLITE:
      return "nsys SQLite export";
    case v1::CAPTURE_KIND_TORCH_TRACE:
      return "torch.profiler trace";
    case v1::CAPTURE_KIND_NVIDIA_SMI_CSV:
      return "nvidia-smi CSV";
    case v1::CAPTURE_KIND_NVIDIA_SMI_XML:
      return "nvidia-smi XML";
    case v1::CAPTURE_KIND_PROGRAM_OUTPUT:
      return "program output";
    case v1::CAPTURE_KIND_SOURCE_PATCH:
      return "source patch";
    default:
      return "unknown";
  }
}

}  // namespace solward::readers
