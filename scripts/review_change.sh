#!/usr/bin/env bash
# Reviews the search index of a site for the GitHub Action in action.yml.
#
# Environment: SITE, DOCS_PLUGIN, BUILT_SITE and GOLDEN_SET are the inputs of the action; all but SITE may be
# empty. Their paths begin in the folder CHECKOUT. RUN_CONFIG is true if the configuration of the site may be
# run. PYTHON is the interpreter that has rag-pipeline. STATE is a folder that is kept between runs. It contains the index and, in review.json, the figures
# of the base branch. IS_PULL_REQUEST is true if the figures are compared and not kept.
# Writes the paths of its results to GITHUB_OUTPUT, and the table to GITHUB_STEP_SUMMARY.
set -euo pipefail

# A path of the checkout; absolute paths and addresses stay as they are.
place() {
    case $1 in
        /* | *://*) printf '%s' "$1" ;;
        *) printf '%s/%s' "$CHECKOUT" "$1" ;;
    esac
}

mkdir -p "$STATE"
cd "$(mktemp -d)" # the checkout may contain a .env
kept="$STATE/review.json"
review="$STATE/review-now.json"
text="$STATE/review.md"
rm -f "$review" "$text"

arguments=(--site "$(place "$SITE")" --write "$review")
[[ -z "$DOCS_PLUGIN" ]] || arguments+=(--docs-plugin "$DOCS_PLUGIN")
[[ -z "$BUILT_SITE" ]] || arguments+=(--built-site "$(place "$BUILT_SITE")")
[[ -z "$GOLDEN_SET" ]] || arguments+=(--test-set "$(place "$GOLDEN_SET")")
[[ "$RUN_CONFIG" != true ]] || arguments+=(--run-config)
[[ ! -f "$kept" ]] || arguments+=(--before "$kept")

code=0
DATA_DIR="$STATE/data" "$PYTHON" -I "${PYTHON%python}rag-pipeline" review "${arguments[@]}" >"$text" || code=$?
if [[ -s "$text" ]]; then
    cat "$text" >>"$GITHUB_STEP_SUMMARY"
    echo "text=$text" >>"$GITHUB_OUTPUT"
fi
if [[ -f "$review" ]]; then
    [[ "$IS_PULL_REQUEST" == true ]] || cp "$review" "$kept"
    echo "review=$review" >>"$GITHUB_OUTPUT"
fi
exit "$code"
