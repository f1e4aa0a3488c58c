#!/usr/bin/env bash
# Rule 5 in the contract itself: no field of a delegation is for a tool flag, a
# step, a fallback, an example command or an output path.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
hits=$(grep -nE '^\s+(repeated )?[a-zA-Z0-9_.<>, ]+ [a-z0-9_]*(flag|option|tool_arg|extra_arg|fallback|output_path|output_file|output_dir|example)[a-z0-9_]* = [0-9]+;' proto/solward/v1/*.proto)
if [ -n "$hits" ]; then echo "fields that prescribe a method:"; echo "$hits"; exit 1; fi
echo "contract: outcome only"
