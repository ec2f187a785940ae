#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the documents name is there: files, scenarios, manual pages, make's targets.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

# named_files DOCUMENT: each file that it names in backticks, but for patterns.
named_files() {
	grep -o '`[A-Za-z0-9_./-]*\.\(c\|h\|md\|sh\|map\|yaml\)`' "$1" | tr -d '`' | sort -u
}

all_there() {
	local file= missing=0
	for file in $(named_files "$1"); do
		[ -n "$(git ls-files "$file" "*/$file" 2>/dev/null || find . -path "*/$file")" ] ||
			{ echo "$1: $file"; missing=1; }
	done
	[ -n "$file" ] && return $missing
}

pages_there() {
	local page missing=0
	for page in $(grep -oh '`[a-z.-]*([1-8])`' README.md docs/*.md docs/lab/*.md NEWS.md | tr -d '`)' | tr '(' . | sort -u); do
		[ -f "man/$page.scd" ] || { echo "no man/$page.scd"; missing=1; }
	done
	for page in man/*.scd; do
		page=${page#man/} page=${page%.scd}
		grep -qF "${page%.*}(${page##*.})" README.md || { echo "README: $page"; missing=1; }
	done
	return $missing
}

# README.md leads to each page, in a line of its own.
pages_listed() {
	local page missing=0
	for page in docs/*.md docs/lab/*.md; do
		grep -qF "| \`$page\` |" README.md || { echo "README.md: $page"; missing=1; }
	done
	return $missing
}

targets_there() {
	local target missing=0
	for target in $(grep -oh '`make [a-z-]*`' README.md docs/*.md docs/lab/*.md NEWS.md tests/*/README.md |
			tr -d '`' | cut -d ' ' -f 2 | sort -u); do
		grep -qhE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile *.mk */*.mk || { echo "make $target"; missing=1; }
	done
	return $missing
}

# docs/SECURITY.md names a test for each threat, docs/losses.md for each loss: the last column.
proofs_there() {
	local file name sentence missing=0
	while read -r name; do
		grep -rqE "^TEST(_LOOP)?[(]$name[,)]" tests || { echo "no test $name"; missing=1; }
	done < <(grep -o '`[a-z0-9_]*_[a-z0-9_]*`' docs/SECURITY.md | tr -d '`'
		sed -n 's/.*| \(.*\) |$/\1/p' docs/losses.md | grep -o '`[a-z0-9_]*_[a-z0-9_]*`' | tr -d '`')
	while IFS= read -r sentence; do
		grep -rqF "check \"$sentence\"" tests/*/*.sh ||
			{ echo "nothing checks: $sentence"; missing=1; }
	done < <(tr '\n' ' ' <docs/SECURITY.md | grep -o '"[^"]*"' | tr -d '"')
	return $missing
}

# Each figure that `ncclinsp status` calls skipped, by the last part of its path.
bounds_there() {
	local path missing=0
	for path in $(sed -nE 's/^\t\{ "([a-z_.]+)",?.*/\1/p' cli/left_out.c); do
		grep -qE "\`([a-z]+\.)?(${path#*.}|${path%%.*})\`" docs/losses.md || { echo "no $path"; missing=1; }
	done
	[ -n "$path" ] && return $missing
}

# Who is called at night finds each kind of finding in docs/operations.md.
kinds_there() {
	local kind= missing=0
	for kind in $("$B/ncclinsp" explain kind | sed -nE 's/^  ([a-z_]+)  +[^ ].*$/\1/p'); do
		grep -qF "| \`$kind\` |" docs/operations.md || { echo "no $kind"; missing=1; }
	done
	[ -n "$kind" ] && return $missing
}
rooms_there() {
	local room missing=0
	for room in */; do
		git ls-files --error-unmatch "$room" >/dev/null 2>&1 || continue
		grep -qF "\`$room" docs/ARCHITECTURE.md || { echo "no $room"; missing=1; }
	done
	return $missing
}
functions_there() {
	local name= missing=0
	for name in $(grep -oE '`[a-z_]+\(\)`' docs/ARCHITECTURE.md | tr -d '`()' | sort -u); do
		grep -rqw --include='*.[ch]' --exclude-dir='build*' "$name" . || { echo "no $name()"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
# Rules and alerts that the READMEs of deploy/ name.
rules_there() {
	local name= missing=0
	for name in $(grep -ohE '[a-z]+:ncclinsp_[a-z_]+:[a-z0-9_]+|`Nccl[A-Z][A-Za-z]+`' deploy/*/README.md | tr -d '`' | sort -u); do
		grep -qE "(record|alert): $name\$" deploy/prometheus/ncclinsp.rules.yml ||
			{ echo "no $name"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
check "docs/ARCHITECTURE.md describes each room" rooms_there
check "rules and alerts that deploy/ describes are there" rules_there
check "docs/ARCHITECTURE.md names functions that there are" functions_there
check "docs/operations.md has each kind of finding" kinds_there
for document in README.md docs/[!k]*.md docs/lab/campaign.md deploy/{slurm,kubernetes,container,on-finding,duckdb,prometheus,victoriametrics}/README.md examples/README.md tests/{nccl,gpu}/README.md; do
	check "$document: the files that it names are there" all_there $document
done
check "manual pages that are named are there, and all are named" pages_there
check "README.md leads to each page of docs/" pages_listed
check "docs/SECURITY.md and docs/losses.md name tests that there are" proofs_there
check "each bound that status tells of is in docs/losses.md" bounds_there
check "targets of make that are named are there" targets_there
check "make without a target builds everything" eval 'make -np 2>/dev/null </dev/null | grep -qx ".DEFAULT_GOAL := all"'
done_testing
