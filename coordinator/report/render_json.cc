#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/report/render.h"

namespace solward::report {

absl::StatusOr<std::string> RenderJson(const v1::Report& report) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(report, &json, options);
  if (!status.ok()) {
    return MakeError(absl::StatusCode::kInternal, "REPORT_NOT_JSON",
                     absl::StrCat("report: expected a message that has a JSON form: ",
                                  std::string(status.message())));
  }
  return json;
}

}  // namespace solward::report
