// Words for UCUM annotation units ("{kernel}"), shared by reading and printing.
#ifndef SOLWARD_COMMON_UNIT_WORDS_H_
#define SOLWARD_COMMON_UNIT_WORDS_H_

#include "absl/strings/string_view.h"

namespace solward::internal {

struct UnitWord {
  absl::string_view annotation;  // between the braces
  absl::string_view en, en_plural, fr, fr_plural;
};

inline constexpr UnitWord kUnitWords[] = {
    {"kernel", "kernel", "kernels", "noyau", "noyaux"},
    {"step", "step", "steps", "pas", "pas"},
    {"call", "call", "calls", "appel", "appels"},
    {"copy", "copy", "copies", "copie", "copies"},
    {"operation", "operation", "operations", "opération", "opérations"},
    {"sample", "sample", "samples", "échantillon", "échantillons"},
    {"token", "token", "tokens", "token", "tokens"},
    {"parameter", "parameter", "parameters", "paramètre", "paramètres"},
    {"register", "register", "registers", "registre", "registres"},
    {"cycle", "cycle", "cycles", "cycle", "cycles"},
    {"event", "event", "events", "événement", "événements"},
    {"row", "row", "rows", "ligne", "lignes"},
};

}  // namespace solward::internal

#endif  // SOLWARD_COMMON_UNIT_WORDS_H_
