#include "common/outcome_lint_rules.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace solward::internal {
namespace {

// Word tables. Later ones may use earlier ones. English and French, lower
// case, without accents; French verbs as infinitive and imperative only: a
// third person ("le script enregistre") speaks of the workload.
struct Words {
  const char* name;
  const char* pattern;
};

constexpr Words kWords[] = {
    // Programs and libraries that measure.
    {"{TOOL}",
     R"(\b(?:ncu|nsys|nvprof|nv-nsight-cu-cli|nvidia[- ]smi|dcgmi|nsight(?: (?:compute|systems))?)"
     R"(|torch[. ]profiler|pytorch profiler|compute-sanitizer|cprofile|py-spy|vtune|perfetto)"
     R"(|tensorboard|rocprof)\b)"},
    {"{TOOLBIN}",
     R"(\b(?:ncu|nsys|nvprof|nv-nsight-cu-cli|nvidia-smi|dcgmi|compute-sanitizer|py-spy|rocprof))"},
    {"{TOOLISH}",
     R"((?:{TOOL}|\b(?:the |le |du )?(?:profiler|profileur|profiling tool|outil de profilage)\b))"},
    // Any reference to the means of measuring.
    {"{MEANS}",
     R"((?:{TOOLISH}|--?[a-z][\w-]*=?|\b(?:profiling|profilage|the (?:tool|counters?|measurement|capture|trace|collection)|counters?|outil|compteurs?|la (?:mesure|collecte|capture)|first (?:tool|choice|attempt|try)|premiere? (?:outil|choix|tentative|essai)|(?:a|one|any|some|either|that|this) (?:of the )?tools?|outils?)\b))"},
    {"{FLAG}", R"((?:--[a-z][\w-]*|-[a-z]\b))"},
    {"{FILE}", R"((?:[\x02\x03\x04]+))"},

    // Where an instruction can begin: verbs elsewhere have a subject.
    {"{IMPER}",
     R"((?:^[\s\W]*(?:\d+[.)]\s*)?|[,:(]\s*|\b(?:and|then|to|please|also|finally|afterwards|next|first|must|should|can|et|puis|ensuite|enfin|aussi|d'abord|de|pour|faut|veuillez|merci de|or|ou)\s+(?:les? |la |l')?))"},
    {"{POLITE}",
     R"((?:(?:you|we|please|should|must|can|have to|need to|simply|il|on|faut|faudra|doit|de|d')\s+){0,4})"},

    // Verbs that operate a tool.
    {"{OPERATE}",
     R"(\b(?:(?:re-?)?(?:run|running|launch|launching|start|starting|execute|executing|invoke|invoking|call|stop|stopping|attach|detach|export|exporting|convert|converting|import|importing|open|opening|parse|parsing|query|load)|(?:re)?(?:lance|execute|demarre|arrete|appele|exporte|importe|charge|parse|interroge|attache|stoppe)[rz]|relance[rz]|converti(?:r|ssez)|ouvr(?:ir|ez)|faire tourner|faites tourner)\b)"},
    {"{EMPLOY}",
     R"(\b(?:use|using|profile|profiling|collect|collecting|record|recording|measure|measuring|trace|take|try|utilise[rz]|profile[rz]|collecte[rz]|enregistre[rz]|mesure[rz]|prendre|prenez|passe[rz]|essaye[rz])\b)"},
    {"{DO}", R"((?:{OPERATE}|{EMPLOY}))"},

    // Order of doing.
    {"{ORDER}",
     R"(\b(?:first|firstly|second|secondly|third|then|next|afterwards?|after that|finally|lastly|subsequently|start by|begin by|start with|begin with|d'abord|en premier(?: lieu)?|premierement|deuxiemement|puis|ensuite|enfin|apres cela|pour finir|commence[rz] par)\b)"},
    {"{THEN}",
     R"(\b(?:then|followed by|afterwards?|after that|next|finally|puis|ensuite|enfin|suivi de|apres cela)\b)"},
    {"{NUMBERED}",
     R"((?:\b(?:step|phase|stage|etape)\s*(?:\d+|one|two|three|un|deux|trois)\s*[:.)-]|^\s*(?:\d{1,2}|[a-h])\s*[.)]\s|\(\d{1,2}\)\s))"},

    // What a tool writes.
    {"{OUTPUT}",
     R"((?:\b(?:csv|sqlite|json|xml|raw|text|console)\s+(?:outputs?|dumps?|exports?|pages?|tables?|logs?|lines|columns?|rows?|files?|reports?)\b)"
     R"(|{TOOL}(?:'s)?\s+(?:\w+ )?(?:outputs?|csv|exports?|logs?|database|json|sqlite|files?)\b)"
     R"(|\b(?:outputs?|stdout|csv|log) (?:of|from) (?:the )?(?:{TOOLISH}|tool\b)|\b(?:profiler|tool)(?:'s)? (?:raw )?(?:output|log)\b)"
     R"(|\bstdout\b|\bsorties? (?:csv|json|sqlite|xml|brutes?|texte|standard|{TOOL}|(?:de |du |d')(?:{TOOLISH}|l'outil\b))|\bsortie de (?:la )?commande\b)"
     R"(|\b(?:csv|json|export|fichiers?|journal) (?:csv |json |sqlite |brut )?(?:de |du |d')(?:{TOOLISH}|l'outil\b)|\bcupti_\w+))"},
    {"{REPORT}",
     R"((?:{OUTPUT}|\b(?:reports?|captures?|traces?|rapports?|timeline|chronologie|tables?)\b|[\x02]+))"},

    // Failure.
    {"{COND}",
     R"(\b(?:if|when(?:ever)?|should|in case(?: of| that)?|in the event(?: of| that)?|where|unless|on|upon|provided|si|s'il|s'ils|quand|lorsque|lorsqu|au cas ou|en cas (?:de |d')|des que|dans le cas ou|a moins que|faute de)\b)"},
    {"{FAIL}", R"((?:\b(?:fails?|failed|failing|failures?|crash(?:es|ed)?|errors?(?: out)?|errored|hangs?|times? out|timeouts?|refuses?|breaks?|aborts?|(?:is|are)(?: not|n't) (?:available|installed|supported|permitted|allowed|possible|found|usable|accessible|there|present|working|enough|readable)|(?:is|are) (?:unavailable|unsupported|unusable|missing|absent|denied|blocked|forbidden|disabled|inaccessible|too slow)|unavailable|(?:is|are|comes (?:out|back)|stays) empty|can ?not|can't|could(?: not|n't)|unable|(?:does|do|did)(?: not|n't) (?:work|run|start|exist|help|succeed|give|collect|produce|print|support|have|return|show)|not (?:available|installed|permitted|possible|supported|allowed|work)|no permissions?|permissions?|err_\w+|(?:returns?|gives?|prints?|finds?) (?:nothing|no\b|an error))\b)"
               R"(|\b(?:echou(?:e|ent|ait|er)|rate|ratent|plante(?:nt)?|crashe(?:nt)?|erreurs?|refuse(?:nt)?|bloque(?:nt)?|n'(?:est|etait|a|ont|aboutit|existe|arrive|affiche) (?:pas|plus|rien)|ne sont (?:pas|plus)|(?:est|sont) (?:in(?:disponible|utilisable|accessible)|absent|manquant|impossible|interdit|refuse|trop lent)e?s?|indisponibles?|ne (?:marche|fonctionne|tourne|repond|demarre|peut|peuvent|donne|permet|reussit|parvient|trouve|renvoie|sort)(?:nt)? (?:pas|rien|plus)|manque(?:nt)?|impossible|(?:est|sont|reste(?:nt)?) vides?|echecs?|pannes?|problemes?|indisponibilite)\b))"},
    {"{ALT}",
     R"(\b(?:try|use|retry|re-?try|re-?run|run|switch|fall ?back|go|revert|resort|take|rely|default|drop|skip|repeat|continue|proceed|redo|lower|reduce|replace|move|choose|pick|collect|profile|measure|do|restart|settle|essaye[rz]|essaie[rz]?|utilise[rz]|reessaye[rz]|relance[rz]|recommence[rz]|passe[rz]|bascule[rz]|se rabattre|rabattre|rabattez|prendre|prenez|recouri(?:r|ssez)|employ(?:er|ez)|revenir|revenez|faire|faites|continue[rz]|ignore[rz]|saute[rz]|lance[rz]|execute[rz]|tente[rz]|reprendre|reprenez|remplace[rz]|mesure[rz]|profile[rz]|collecte[rz]|se contenter|reduire|diminue[rz])\b)"},

    // Places.
    {"{PLACE}",
     R"((?:(?:the |a |an |your |my |our |this |le |la |les |l'|un |une |mon |son |votre |ce |cette )?["'`]?(?:[\x02\x03\x04]+|[\w.-]+/[\w./*-]+|(?:[\w'.-]+ ){0,3}(?:folder|directory|dir|dossier|repertoire|bucket|workspace|scratch|espace de travail|home)\b)))"},
    {"{INTO}",
     R"(\b(?:in|into|to|under|as|at|on|inside|within|below|beneath|beside|next to|dans|sous|vers|en|a|sur|comme)\b)"},
    {"{ARTIFACT}",
     R"(\b(?:(?:raw |profiling |profiler )data|reports?|outputs?|results?|traces?|captures?|artifacts?|artefacts?|profiles?|csv|json|sqlite|logs?|timelines?|measurements?|(?:ncu|nsys)-rep|findings?|metrics|numbers|tables?|plots?|charts?|everything|it|them|all|summary|dumps?|rapports?|sorties?|resultats?|profils?|journa(?:l|ux)|mesures?|metriques?|tableaux?|tout|synthese)\b)"},
    {"{SAVE}",
     R"(\b(?:save|write|store|put|dump|export|copy|upload|place|keep|leave|log|redirect|archive|send|deposit|move|drop|output|emit|print|deliver|pipe|sync|stash|produce|generate|create|saving|writing|storing|putting|(?:enregistre|sauvegarde|sauve|stocke|place|copie|depose|exporte|envoye|range|garde|conserve|televerse|archive|redirige|pose|laisse|deplace|consigne|genere|imprime)[rz]|ecri(?:re|vez)|mettre|mettez|produire|produisez|transmettre)\b)"},
    {"{SAVED}",
     R"((?:saved|written|stored|put|dumped|exported|copied|uploaded|placed|kept|left|logged|sent|archived|collected|delivered|(?:sauvegarde|enregistre|ecrit|stocke|mis|place|copie|depose|exporte|envoye|range|garde|conserve|televerse|archive)e?s?))"},

    // Options that are a profiler's own, whatever the sentence speaks of.
    {"{TOOLOPTION}",
     R"((?:set|sections?|section-folder\S*|list-(?:sets|sections|metrics|rules)|query-metrics\S*|metrics|print-metric\S*|apply-rules|launch-(?:skip|count)\S*|kernel-(?:id|name|name-base|regex)|filter-mode|range-filter|replay-mode|app-replay\S*|range-replay\S*|graph-profiling|profile-from-start|target-processes\S*|nvtx-(?:include|exclude|capture|domain\S*|push\S*)|nvtx|cache-control|clock-control|pm-sampling\S*|warp-sampling\S*|sampling-(?:interval|period|max\S*|buffer\S*)|disable-extra-suffixes|print-(?:details|summary|units|fp|kernel-base|source|nvtx-rename|limit|gpu-trace|gpu-summary)|details-all|import-source|source-folders|force-overwrite|log-file|capture-range\S*|cuda-(?:graph-trace|memory-usage|um-\S*|flush-interval|event-trace|trace-scope|trace-all-apis)|cudabacktrace|cpuctxsw|gpuctxsw|gpu-metrics\S*|samples-per-backtrace|backtrace|flush-on-cudaprofilerstop|osrt-threshold|process-scope|python-(?:backtrace|sampling)\S*|resolve-symbols|stop-on-(?:exit|range-end)|trace-fork-before-exec|session-new|start-later|trace|stats|query-gpu|query-compute-apps|query-accounted-apps|loop-ms|analysis-metrics|unified-memory-profiling|track-allocations))"},
    {"{OPTIONVALUE}",
     R"((?:\s*=\s*[^\s,;)`"']+|\s+(?:full|detailed|basic|roofline|source|all|none|off|on|no|yes|true|false|default|application|kernel|range|node|graph|raw|details|regex:\S+|\d[\w:.,]*|[a-z_]\w*(?:[.,:][\w:.,]*\w)|speedoflight\w*|\w+(?:workloadanalysis|stats|counters|distribution)\w*|occupancy|pmsampling\w*|nvlink\w*|cuda\w*))?)"},

    // Programs that start other programs.
    {"{WRAP}",
     R"((?:\b(?:srun|sbatch|mpirun|mpiexec|sudo|ssh|env|numactl|time|docker|singularity|apptainer|kubectl)(?:\s+[^\s;,]+){0,8}?\s+))"},
    {"{PROGRAM}",
     R"((?:\b(?:python3?|torchrun|bash|mpirun|srun|accelerate|deepspeed|julia)\b|[\x03]+))"},
};

struct Row {
  OffenceKind kind;
  const char* pattern;
  const char* unless_before = nullptr;
  const char* unless = nullptr;
};

constexpr OffenceKind kFlags = OffenceKind::kToolFlags;
constexpr OffenceKind kSteps = OffenceKind::kToolSteps;
constexpr OffenceKind kBackup = OffenceKind::kFallback;
constexpr OffenceKind kCommand = OffenceKind::kExampleCommand;
constexpr OffenceKind kPlace = OffenceKind::kOutputPath;

// "the nsys profile shows": a noun.
constexpr char kArticle[] =
    R"(\b(?:the|a|an|this|that|our|each|le|la|les|un|une|ce|cette|du|des)\s*$)";
// "with NCU --set full": options named in a sentence, no command.
constexpr char kWithBefore[] =
    R"(\b(?:with|using|under|via|in|by|through|of|to|and|or|avec|sous|par|dans|via|de|et|ou|a)\s*$)";

// "we ran nsys first": history.
constexpr char kPastBefore[] =
    R"(\b(?:ran|used|tried|recorded|profiled|took|had|was|were|avons|ont|a ete|ai)\b[^,;]{0,40}$)";

constexpr Row kCommandRows[] = {
    // A tool, options, and a program to run under it.
    {kCommand,
     R"({WRAP}?{TOOLBIN}(?:\s+[a-z]+)?(?:\s+--?[a-z][^\s;]*(?:\s+[^\s;-][^\s;]*)??){1,16}\s+{PROGRAM}(?:\s+[^\s;,.)`"]+){0,6})"},
    {kCommand,
     R"({WRAP}?{TOOLBIN}\s+(?:(?:profile|launch|start|stats|export|analyze)\s+)?(?:python3?|torchrun|[\x03]+|srun|mpirun)(?:\s+[^\s;,)`"]+)?)",
     kWithBefore},
    // A sub-command with what it works on.
    {kCommand,
     R"({WRAP}?\bnsys\s+(?:profile|stats|export|analyze|launch|start|stop|recipe|sessions|status|shutdown|cancel)\s+(?:--?[a-z]|[\x02-\x04]|python)\S*(?:\s+[^\s;`"]+){0,8})",
     kArticle},
    {kCommand, R"(["`$]\s*{TOOLBIN}\s+(?:--?[a-z]|[a-z]+\s+--?[a-z]|[\x02-\x04])[^`";]*)"},
    {kCommand,
     R"({WRAP}?\b(?:nvidia-smi|dcgmi)\s+(?:--?[a-z]|dmon\b|pmon\b|topo\b)[^\s;]*(?:\s+--?[a-z][^\s;]*(?:\s+\d+)?){0,8})"},
    // A tool with options where a command is announced or a line begins.
    {kCommand,
     R"((?:^\s*(?:\d+[.)]\s*)?|(?:\b(?:e\.g\.|for example|for instance|example|command(?: line)?|like(?: this)?|such as|par exemple|exemple|p\. ?ex\.|commande|suivante?|comme|type|run|invoke|execute[rz]?|lance[rz])\s*[:,]?\s*))({WRAP}?{TOOLBIN}\s+--?[a-z][^\s;]*(?:\s+[^\s;]+){0,8}))"},
    {kCommand, R"({WRAP}{TOOLBIN}\s+(?:--?[a-z]|profile\b|stats\b)[^\s;]*(?:\s+[^\s;`"]+){0,8})"},
    {kCommand, R"((?:\bsudo\s+)?\$\(which\s+{TOOLBIN}\)[^;]{0,120})"},
    // Other programs that work on a tool's files, and a profiler's own API.
    {kCommand,
     R"(\b(?:sqlite3|jq|awk|grep|sed|cut)\s+(?:-\w+\s+)?(?:["'][^"']{1,120}["']\s+)?\S*[\x02\x04]+[^;]{0,80})"},
    {kCommand, R"(\b(?:grep|awk|sed|jq)\s+(?:-\w+\s+)?["'][^"']{1,120}["'])"},
    {kCommand, R"(\btorch\.profiler\.(?:profile|schedule|tensorboard_trace_handler)\([^;]{0,120})"},
    {kCommand,
     R"(\bpython3?\s+-m\s+(?:cprofile|torch\.utils\.bottleneck|torch\.profiler|pyinstrument)\b[^;,]{0,80})"},
};

constexpr Row
    kRows
        [] =
            {
                // --- tool_flags: options that only a profiler has. The rest is decided by
                // what the sentence speaks of (outcome_lint.cc).
                {kFlags, R"((?:^|[\s(\["'`,;:=/])(--?{TOOLOPTION}\b{OPTIONVALUE}))"},
                {kFlags,
                 R"(\bset\s*=\s*(?:full|detailed|basic|roofline|source|pmsampling|nvlink|default)\b)"},
                {kFlags,
                 R"(\b(?:en|with|avec|using|option|mode|use|utilise[rz])\s+(set\s+(?:full|detailed|basic))\b)"},
                {kFlags,
                 R"(\bsections?\s*[= ]\s*(?:speedoflight\w*|(?:compute|memory)workloadanalysis\w*|(?:launch|warpstate|scheduler|instruction)stats|sourcecounters|workloaddistribution|pmsampling\w*)\b)"},
                {kFlags,
                 R"(\b(?:launch-(?:skip|count)|kernel-name|kernel-regex|replay-mode|profile-from-start|target-processes|capture-range(?:-end)?|cuda-graph-trace|cuda-memory-usage|cache-control|clock-control|gpu-metrics-devices?|nvtx-include|query-gpu|graph-profiling)(?:\s*=\s*\S+|\s+(?:off|on|no|yes|all|none|node|graph|application|cudaprofilerapi)\b))"},
                {kFlags,
                 R"(\b(?:record_shapes|with_stack|with_flops|with_modules|profile_memory)\s*=\s*\w+)"},
                {kFlags,
                 R"({TOOL}[^;]{0,60}?\b((?:full|detailed|basic|roofline) (?:section |metric )?set)\b)"},
                {kFlags,
                 R"(\b((?:full|detailed|basic|roofline) (?:section |metric )?set)\b[^;]{0,30}?{TOOL})"},

                // --- tool_steps
                // First run nsys, then run ncu.
                {kSteps, R"({ORDER}[\s,:]*{POLITE}{OPERATE}\s[^;]{0,60}?{TOOLISH})", kArticle},
                {kSteps, R"(^\W*{THEN}[\s,:]*{POLITE}{DO}\s[^;]{0,60}?{TOOL})"},
                {kSteps, R"({OPERATE}\s[^;,]{0,40}?{ORDER}\s[^;,]{0,30}?{TOOL})"},
                {kSteps, R"({ORDER}\s[^;]{0,60}?{TOOL}[^;]{0,80}?{THEN}[^;]{0,60}?{TOOL})",
                 kArticle},
                {kSteps, R"({IMPER}({DO}\s[^;]{0,60}?{TOOL}[^;]{0,80}?{THEN}[^;]{0,60}?{TOOL}))"},
                {kSteps,
                 R"({TOOL}\s+(?:first|d'abord|en premier)\b[^;]{0,60}?\b(?:then|and|puis|ensuite|et)\b[^;]{0,30}?{TOOL})",
                 kPastBefore},
                // Launch nsys, wait, then stop it.
                {kSteps, R"({IMPER}({OPERATE}\s[^;]{0,40}?{TOOL}[^;]{0,80}?{THEN}\s+{DO}))"},
                {kSteps,
                 R"({IMPER}({DO}\s[^;]{0,60}?{TOOL}[^;]{0,60}?,\s*(?:(?:and|then|et|puis)\s+)*(?:wait|export|convert|stop|parse|open|sum|divide|average|attend(?:re|ez)|exporte[rz]|arrete[rz]|converti(?:r|ssez)|somme[rz]|divise[rz]|ouvr(?:ir|ez)|li(?:re|sez))\b))"},
                // Run ncu after nsys; once it has finished, run ncu.
                {kSteps,
                 R"({IMPER}({DO}\s[^;]{0,40}?{TOOL}[^;]{0,60}?\b(?:after|before|once|apres|avant|une fois)\b[^;]{0,40}?{TOOL}))"},
                {kSteps,
                 R"(\b(?:after|once|when|before|as soon as|apres|une fois|lorsque|quand|avant|des que)\b[^;]{0,80}?,\s*(?:then |please |puis |ensuite )?{DO}\s[^;]{0,40}?{TOOL}[^;]{0,60}?\bon\b)",
                 nullptr, R"(\b(?:warm-?up|echauffement)\b)"},
                {kSteps,
                 R"(\b(?:after|once|when|before|as soon as|apres|une fois|lorsque|quand|avant|des que)\b[^;]{0,80}?,\s*(?:then |please |puis |ensuite )?{OPERATE}\s[^;]{0,40}?{TOOLISH})"},
                {kSteps,
                 R"(\b(?:after|before) (?:running|launching|starting|having run) {TOOL}|\b(?:apres avoir|avant de) (?:lance|execute|demarre)r?\s[^;]{0,20}?{TOOL})"},
                {kSteps,
                 R"({IMPER}((?:stop|start|attach|detach|kill|arrete[rz]|demarre[rz]|attache[rz]|stoppe[rz])\s+{TOOLISH}))"},
                // 1. Start nsys. Step 2: export.
                {kSteps, R"({NUMBERED}\s*{DO}\s[^;]{0,60}?(?:{TOOLISH}|{OUTPUT}))"},
                // Work on what a tool wrote.
                {kSteps,
                 R"({IMPER}((?:parse|scrape|grep|post-?process|filter|query|parsing|scraping|parse[rz]|filtre[rz]|depouille[rz]|interroge[rz])\s[^;]{0,60}?(?:{REPORT}|\b(?:sqlite|csv)\b|\b(?:the|its|la|sa) (?:raw |whole )?(?:outputs?|sortie)(?:\s+(?:for|of|and|to|pour|et|afin)\b|\s*[.,:]|\s*$))))"},
                {kSteps,
                 R"({IMPER}((?:read|analy[sz]e|inspect|extract|take|get|sum|sort|li(?:re|sez)|analyse[rz]|inspecte[rz]|extrai(?:re|yez)|recupere[rz]|traite[rz]|trie[rz]|somme[rz])\s[^;]{0,60}?{OUTPUT}))"},
                {kSteps,
                 R"({IMPER}((?:export|convert|import|dump|exporte[rz]|importe[rz]|converti(?:r|ssez))\s[^;]{0,50}?{REPORT}\s[^;]{0,30}?\b(?:to|into|as|in|en|vers|au format|dans)\s+(?:an? |un |une )?(?:sqlite|csv|json|text|xml|html|texte)\b))"},
                {kSteps,
                 R"({IMPER}((?:read|inspect|li(?:re|sez))\s+(?:its|their|sa|leur)\s+(?:raw )?(?:outputs?|sorties?)\b))"},
                {kSteps,
                 R"({IMPER}((?:use|using|utilise[rz])\s[^;]{0,20}?(?:sqlite|csv|json) (?:exports?|outputs?|dumps?)\b))"},
                // A graphical interface.
                {kSteps, R"({IMPER}((?:open|ouvr(?:ir|ez))\s+chrome://\S+))"},
                {kSteps,
                 R"({IMPER}((?:open|load|view|import|drag|importe[rz]|ouvr(?:ir|ez)|charge[rz]|affiche[rz])\s[^;]{0,60}?\b(?:in|into|with|dans|avec)\b[^;]{0,30}?(?:{TOOL}|\bgui\b|\bui\b|\binterface\b|\bviewer\b|\bbrowser\b|\bnavigateur\b|chrome://)))"},
                {kSteps,
                 R"({IMPER}((?:click|double-?click|right-?click|clique[rz]|double-?clique[rz])\s+(?:on|the|sur)\b[^;]{0,40}))"},

                // --- fallback
                // If ncu fails, use nsys.
                {kBackup,
                 R"({COND}[^;]{0,60}?{MEANS}[^;]{0,60}?{FAIL}[^;]{0,60}?(?:{ALT}|{TOOL}|{FLAG})[^;,]{0,40})"},
                {kBackup,
                 R"({COND}[^;]{0,60}?{FAIL}[^;,]{0,60}?(?:,\s*|\s)(?:then |please |you (?:can|may|should) |plutot |alors |with |avec )?(?:{ALT}[^;]{0,60}?)?(?:{TOOLISH}|{FLAG}|\b(?:sudo|root)\b))",
                 nullptr,
                 R"(\bfails? to\b|\b(?:kernel|noyau|model|modele|workload|compilation)\b[^,;]{0,40}\b(?:can ?not|can't|ne peut))"},
                {kBackup,
                 R"(\b(?:if|when|should|si|quand|lorsque)\s+(?:it|that|this|they|not|cela|ca|il|elle)\s[^;,]{0,20}?{FAIL}[^;,]{0,20},\s*(?:then |please |alors )?{ALT}[^;,]{0,60})"},
                {kBackup,
                 R"(\b(?:en cas (?:de |d')|on (?:an? )?|upon (?:an? )?|in case of (?:an? )?){FAIL}[^;]{0,40}?,\s*(?:then |please )?(?:{ALT}[^;]{0,60}?(?:{TOOLISH}|{FLAG}|\b(?:outil|tool|profil\w+)\b)|{TOOL}))"},
                {kBackup,
                 R"(\b(?:without|sans|no|faute de)\s+(?:root|sudo|permissions?|privileges?|droits?|counters?|compteurs?|acces)[^;,]{0,40},\s*{ALT}[^;,]{0,60})"},
                // Use nsys if ncu fails.
                {kBackup,
                 R"({ALT}\s[^;]{0,80}?{COND}[^;]{0,30}?{TOOLISH}[^;]{0,40}?{FAIL}[^;,]{0,20})"},
                {kBackup,
                 R"({ALT}\s[^;]{0,50}?{TOOL}[^;]{0,40}?\b(?:if|when|unless|si|quand|lorsque)\s+(?:(?:it|that|this|they|cela|ca|il|elle|possible)\s)?[^;,\s]{0,12}\s?{FAIL})"},
                {kBackup,
                 R"(\b(?:faute de|a defaut de|for lack of|in the absence of|en l'absence de)\s+{TOOLISH}[^;,]{0,30},\s*(?:{ALT}|{TOOL})[^;,]{0,40})"},
                {kBackup,
                 R"({TOOL}\s+(?:is|est|serves as|sert de|sera)\s+(?:the |a |an |our |le |la |un |une )?(?:fallback|backup|plan b|last resort|alternative|secours|repli|solution de (?:repli|secours)|dernier recours)\b)"},
                // Otherwise; fall back.
                {kBackup,
                 R"((?:{IMPER}(?:try|use|take|prefer|essaye[rz]|utilise[rz]|prendre|prefere[rz])\s[^;]{0,60}?)?\b(?:otherwise|or else|failing that|if not|alternatively|as an alternative|sinon|a defaut|autrement|ou alors|alternativement)\b(?:\s+de\s[^;,]{0,30})?\s*[,:]?\s+[^;,]{0,40}?(?:{TOOLISH}|{FLAG}))"},
                {kBackup,
                 R"({IMPER}((?:try|essaye[rz])\s[^;]{0,60}?(?:{TOOL}|{FLAG})[^;]{0,40}?\b(?:then|or|and then|before|puis|ou|avant)\b[^;]{0,30}?(?:{TOOL}|{FLAG})))"},
                {kBackup,
                 R"({TOOL}[^;]{0,20}?\b(?:or|ou)\b[^;]{0,20}?{TOOL}[^;]{0,20}?\b(?:if|when|si|quand)\b[^;]{0,30}?{FAIL})"},
                {kBackup,
                 R"(\bfall(?:ing)?[ -]?back\s+(?:to|on|onto)\b[^;]{0,40}?(?:{TOOLISH}|{FLAG})[^;,]{0,40})"},
                {kBackup,
                 R"((?:{TOOL}|{FLAG})[^;]{0,40}?\b(?:as (?:a |the |an )?(?:fallback|backup|plan b|last resort|second choice|replacement|alternative)|en (?:secours|dernier recours|repli|solution de repli|remplacement)|comme (?:solution de )?(?:secours|repli|alternative))\b)"},
                {kBackup,
                 R"(\b(?:fallback|backup|plan b|last resort|solution de (?:secours|repli)|en (?:secours|dernier recours|repli)|outil de secours)\b(?:\s+(?:tool|plan|strategy|option))?\s*(?:is|:|est|=|,|->)?\s*[^;]{0,30}?(?:{TOOL}|{FLAG}))"},
                {kBackup,
                 R"(\b(?:se )?(?:rabattre|rabattez|replier|rabattra)(?:-vous)?\s+sur\b[^;]{0,40}?(?:{TOOLISH}|{FLAG})[^;,]{0,40})"},
                {kBackup,
                 R"({IMPER}((?:retry|try again|re-?run|reessaye[rz]|relance[rz]|recommence[rz])\b[^;]{0,40}?\b(?:with|using|under|as|avec|sous|sans|without|en)\b[^;]{0,30}?(?:{TOOLISH}|{FLAG}|\b(?:sudo|root|fewer|less|smaller|moins|another tool|un autre outil)\b)))"},

                // --- output_path
                {kPlace,
                 R"({IMPER}({SAVE}\s[^,;]{0,60}?{ARTIFACT}[^,;]{0,40}?\s{INTO}\s+{PLACE}))"},
                {kPlace,
                 R"({IMPER}({SAVE}\s+(?:directly |directement )?(?:in|into|to|under|dans|sous|vers)\s+{PLACE}))"},
                {kPlace,
                 R"({ARTIFACT}[^,;]{0,40}?\s(?:should|shall|must|has to|have to|is to|are to|needs? to|will|ought to)\s+(?:all )?(?:be|go|land|end up)\s+(?:{SAVED}\s+)?(?:{INTO}\s+){1,2}{PLACE})"},
                {kPlace,
                 R"({ARTIFACT}[^,;]{0,40}?\s(?:doit|doivent|devra|devront|devrait|sera|seront|est a|sont a|ira|iront|va|vont)\s+(?:etre\s+|aller\s+)?(?:{SAVED}\s+)?[^,;]{0,20}?{INTO}\s+{PLACE})"},
                {kPlace,
                 R"({ARTIFACT}[^,;]{0,20}?\sa\s+(?:enregistrer|sauvegarder|ecrire|stocker|deposer|placer|mettre)\s+{INTO}\s+{PLACE})"},
                {kPlace,
                 R"(\b(?:outputs?|artifacts?|artefacts?|results?|reports?|traces?|logs?|captures?|save)[ _-]?(?:directory|dir|folder|path|file|file ?name|location|place|destination|prefix)\s*(?:[:=]|->|(?:is|should be|must be)\s+{PLACE})\s*\S*)"},
                {kPlace,
                 R"(\b(?:repertoire|dossier|chemin|fichier|emplacement|destination)s?\s+(?:de |des |d'|du )?(?:la |les )?(?:sorties?|resultats?|rapports?|artefacts?|traces?|captures?)\s*(?:[:=]|->|(?:est|sera|doit etre)\s+{PLACE})\s*\S*)"},
                {kPlace,
                 R"((?:^\s*|[,.:(]\s*|\b(?:and|with|et|avec)\s+)((?:all |the |les? |la |l')*(?:raw )?{ARTIFACT}(?:\s+\w+)?\s*(?:->|=>|\bto\b|\binto\b|\bvers\b)\s*[\x02\x04]+))",
                 R"(\b(?:compare\w*|from|de)\b[^,;]{0,60}$)"},
                {kPlace,
                 R"(\b(?:artifacts?|artefacts?|outputs?|results|resultats)\s+(?:in|under|below|dans|sous)\s+[\x04]+)"},
                {kPlace,
                 R"({IMPER}((?:name|call|nomme[rz]|appele[rz])\s+(?:the |le |la |it )?[^,;]{0,30}?{ARTIFACT}[^,;]{0,20}?[\x02\x04]+))"},
                {kPlace,
                 R"(\b(?:artifacts?|artefacts?|outputs?|results|sorties?|resultats)\s*[:=]\s*[\x02\x04]+)"},
                {kPlace,
                 R"(\b(?:file|output|report|trace|capture|fichier|rapport|sortie)s?\b[^,;]{0,30}?\s(?:should|must|doit|devra|devrait|will)\s+(?:be (?:called|named)|s'appeler|se nommer|etre (?:nomme|appele)e?|porter le nom)\s[^,;]{0,20}?[\x02\x04]+)"},
                {kPlace,
                 R"({IMPER}({SAVE}\s[^,;]{0,60}?(?:{ARTIFACT}|[\x02]+)[^,;]{0,30}?\b(?:next to|beside|alongside|a cote d[eu])\b[^,;]{0,30}))"},
                {kPlace,
                 R"([\x02\x04]+\s+(?:as|for|comme)\s+(?:the |an? |le |la |un )?(?:outputs?|artifacts?|results?|reports?|repertoire|dossier|sorties?|fichier de sortie|destination)\b)"},
                {kPlace, R"((?:^|\s)>>?\s*[\x02\x04]+)"},
};

std::unique_ptr<RE2> Compile(const char* pattern) {
  if (pattern == nullptr) return nullptr;
  RE2::Options options;
  options.set_max_mem(64 << 20);
  options.set_dot_nl(true);
  return std::make_unique<RE2>(ExpandWords(pattern), options);
}

template <size_t N>
std::vector<LintRule> CompileAll(const Row (&rows)[N]) {
  std::vector<LintRule> rules;
  for (const Row& row : rows) {
    rules.push_back(
        LintRule{row.kind, Compile(row.pattern), Compile(row.unless_before), Compile(row.unless)});
  }
  return rules;
}

}  // namespace

std::string ExpandWords(absl::string_view pattern) {
  std::string out(pattern);
  // Later tables use earlier ones, so expand from the last to the first.
  for (size_t i = std::size(kWords); i > 0; --i) {
    out = absl::StrReplaceAll(out, {{kWords[i - 1].name, kWords[i - 1].pattern}});
  }
  return out;
}

LintRules::LintRules()
    : commands(CompileAll(kCommandRows)),
      others(CompileAll(kRows)),
      tool(ExpandWords("{TOOLISH}")),
      flag_name(
          R"((?:^|[\s(\["'`,;:=/])(--?([a-z][\w-]*)(?:=[^\s,;)`"']+|\s+[a-z_]*[:.,/\d][^\s;)`"']*|\s+(?:none|all|on|off|true|false)\b)?))"),
      workload_context(
          R"(\b(?:workload|script|programs?|job|model|training|train|trained|launched|started|application|app|command|python|server|benchmark|charge de travail|programme|modele|entrainement|commande|application|lance|lancee|tourne|runs|argument|arguments|build|builds|built|compiler|compiled|nvcc)\b|[\x03\x05])"),
      workload_subject(
          R"(^\W*(?:(?:before|after|during|in|at|when|while|once|avant|apres|pendant|quand|dans|a)\s+[\w' ]{0,40},?\s*)?(?:the|this|these|each|every|our|its|both|all|le|la|les|l'|chaque|ce|cet|cette|ces|un|une|an?)\s*(?:[\w-]+\s+){0,2}(?:workload|script|program(?:me)?|model(?:e)?|loader|loop|training|application|app|job|service|server|process|processus|worker|charge de travail|chargeur|entrainement|boucle|pas|step|kernel|noyau|optimizer|optimiseur|rank|rang|simulation|code|pipeline)s?\b)") {
}

const LintRules& Rules() {
  static const LintRules rules;
  return rules;
}

}  // namespace solward::internal
