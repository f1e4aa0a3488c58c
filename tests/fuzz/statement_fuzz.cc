// Understand answers any statement with readings, questions or a refusal.
#include "common/classification_parameters.h"
#include "coordinator/workflow/understand.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const solward::workflow::Knowledge knowledge{solward::BuiltInCatalogue(),
                                                      solward::BuiltInGpuPeaks(),
                                                      solward::BuiltInClassificationParameters()};
  solward::v1::AnalysisRequest request;
  request.mutable_workload()->mutable_captures()->add_captures()->set_id("a");
  request.set_statement(std::string(reinterpret_cast<const char*>(data), size));
  (void)solward::workflow::Understand(request, {}, knowledge);
  return 0;
}
