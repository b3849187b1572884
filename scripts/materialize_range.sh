#!/usr/bin/env bash
# Materialize a range of one model through Dagster, after checking within a second what Dagster
# would start for: the model, both keys, and their order.
set -euo pipefail

die() { printf '%s\n' "$@" >&2; exit 1; }

[[ $# -eq 3 ]] || die "Usage: scripts/materialize_range.sh MODEL START END" \
  "START and END are partition keys, both included: marketing.campaign_performance 2024-01-01 2024-01-31"
model=$1 start=$2 end=$3

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${BACKFILL_BIN:-$root/.venv/bin}
# Models of your own: name their catalog in BACKFILL_CATALOG, and the module with `defs` here.
definitions=${BACKFILL_DEFINITIONS:-backfill_assets.orchestration.definitions}
export DAGSTER_HOME=${DAGSTER_HOME:-$root}
cd "$root"
[[ -x $bin/dagster ]] || die "Found no dagster in $bin; run \`make env\` first."

shape_of() {
  "$bin/python" - "$1" <<'PYTHON'
import sys
from datetime import datetime

for shape in ("%Y-%m-%d", "%Y-%m-%d-%H:%M"):
    try:
        same = datetime.strptime(sys.argv[1], shape).strftime(shape) == sys.argv[1]
    except ValueError:
        continue
    if same:
        sys.exit(print(shape))
sys.exit(1)
PYTHON
}

expected="expected a partition key like 2024-01-31, or 2024-01-31-13:00 for hours."
start_shape=$(shape_of "$start") || die "START is '$start'; $expected"
end_shape=$(shape_of "$end") || die "END is '$end'; $expected"
[[ $start_shape == "$end_shape" ]] \
  || die "START '$start' and END '$end' are keys of different cadences; expected two of the model's."
[[ ! $start > $end ]] \
  || die "Reversed range: START '$start' is after END '$end'; expected START <= END. Nothing was run."

"$bin/backfill" status --select "$model" --json >/dev/null || {
  # 3: a source has commits that only Spark can judge; the run starts it, and looks.
  [[ $? -eq 3 ]] || die "Model '$model' can't be filled (see above). Nothing was run."
}

exec "$bin/dagster" asset materialize -m "$definitions" \
  --select "${model//.//}" --partition-range "$start...$end"
