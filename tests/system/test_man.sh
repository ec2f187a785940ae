#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every manual page is one that mandoc understands and prints whole.
. "$(dirname "$0")/lib.sh"

# scdoc begins each section with a paragraph, which mandoc then has no use for.
lint() { ! mandoc -T lint -W warning "$1" | grep -v "skipping paragraph macro"; }
fits() { ! mandoc -T ascii -O width=80 "$1" | sed 's/.\x08//g' | grep -E '^.{81}'; }
prints() { [ "$(mandoc -T utf8 "$1" | wc -l)" -gt 20 ]; }

for page in "$B"/man/*; do
	[ -e "$page" ] || skip_all "no manual page was built"
	check "${page##*/} has no error" lint "$page"
	check "${page##*/} prints" prints "$page"
	case $page in *.1) check "${page##*/} fits into 80 columns, with its examples" fits "$page" ;; esac
done

# Each command names a page, which has it; what options it takes stands there or among the
# common ones.
text_of() { mandoc -T ascii -O width=500 "$B/man/$1" | sed 's/.\x08//g'; }	# no word is broken
general=$(text_of ncclinsp.1)
# page_of COMMAND: its text.
page_of() {
	local name
	name=$("$B/ncclinsp" help "$1" | sed -n 's/.*More: man //p')
	[ -n "$name" ] && text_of "$name.1"
}
has_command() { page_of "$1" | grep -Eq "(^|[ ,])$1([ ,]|\$)"; }
has_options() {
	local option page missing=0
	page=$(page_of "$1")
	for option in $("$B/ncclinsp" "$1" --help | grep -o -- ' --[a-z-]*'); do
		grep -Eq -- "$option([^a-z-]|\$)" <<<"$page $general" || { echo "$option"; missing=1; }
	done
	return $missing
}
checks_told() {
	local name missing=0
	for name in $(grep -ohE 'doctor_say\(doctor, "[a-z_]+"' "$TOP"/cli/doctor/doctor_*.c | grep -oE '[a-z_]+"' | tr -d '"' | sort -u); do
		grep -qE "^\*$name\*|, \*$name\*" "$TOP/man/ncclinsp-doctor.1.scd" || { echo "$name"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
check "ncclinsp-doctor(1) has each thing that is looked at" checks_told
"$B/ncclinsp" help --no-header >"$T/commands"
check "there are commands" [ "$(wc -l <"$T/commands")" -gt 20 ]
while read -r command; do
	check "the page that $command names has it" has_command "$command"
	check "ncclinsp(1) has it, too" grep -Eq "^ .*(^|[ ,])$command([ ,]|\$)" <<<"$general"
	check "and the manual has its options" has_options "$command"
done <"$T/commands"
pages_seen() {
	local page missing=0
	for page in "$B"/man/*; do
		page=${page##*/}
		grep -qF "${page%.*}(${page##*.})" <<<"$general" || [ "$page" = libnccl-profiler-record.7 ] ||
			[ "$page" = ncclinspd.conf.5 ] || { echo "$page"; missing=1; }
	done
	return $missing
}
check "ncclinsp(1) leads to all other pages" pages_seen
# Each name(N) in a page is a page of ours, or of the system.
refers() {
	local name missing=0
	for name in $(text_of "${1##*/}" | grep -oE '(lib)?nccl?[a-z.-]*\([1-8]\)' | sort -u); do
		name=${name%)}
		[ -e "$B/man/${name%(*}.${name#*(}" ] || { echo "$name"; missing=1; }
	done
	return $missing
}
for page in "$B"/man/*; do
	check "what ${page##*/} refers to is there" refers "$page"
done

# One set of tables is behind what the daemon says, explain and the page.
page=$(mandoc -T ascii "$B/man/ncclinsp-findings.7" | sed 's/.\x08//g' | tr -s ' \n' ' ')
all_told() {
	local word meaning missing=0
	while IFS=$'\t' read -r word meaning; do
		case $page in *" $word $meaning"*) ;; *) echo "$word: $meaning"; missing=1 ;; esac
	done <"$T/words"
	return $missing
}
"$B/ncclinsp" explain | sed -nE 's/^  (.*[^ ])  +([^ ].*)$/\1\t\2/p' >"$T/words"
check "there are words to explain" [ "$(wc -l <"$T/words")" -gt 100 ]
check "ncclinsp-findings(7) tells what each of them means" all_told

# Each variable that the plugin copies is told of.
variables_told() {
	local name missing=0
	for name in $(sed -n '/^#define/d; s/X(\([A-Z0-9_]*\))/\1 /gp' "$TOP/include/nci/variables.h" | tr -d '\\'); do
		grep -qF "*$name*" "$TOP/man/libnccl-profiler-insp.7.scd" || { echo "$name"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
check "libnccl-profiler-insp(7) has each variable that is copied" variables_told

# Fields of the API; what is a sentence, or NCCL's own name, stands there only in part.
in_api() {
	local field word missing=0
	for field in kind verdict severity limit_reason aspect scope level sampling lost \
			timing_source arrival_source stamps_why bound method; do
		while read -r word; do
			grep -qF -e "\`$word\`" -e ".$word\`" "$TOP/docs/api.md" || { echo "$field: $word"; missing=1; }
		done < <("$B/ncclinsp" explain $field | sed -nE 's/^  (.*[^ ])  +[^ ].*$/\1/p')
	done
	return $missing
}
check "docs/api.md has the words of each of its fields" in_api
# Each header that a table or a screen can print is one of schema/ (page/ makes pages for browsers).
headers_explained() {
	local header missing=0 n=0
	while read -r header; do
		n=$((n + 1))
		"$B/ncclinsp" explain "$header" | grep -q "^column of" || { echo "$header"; missing=1; }
	done < <(sed -nE 's/^\t\{ [^,]+, "([^"]+)", COL_.*/\1/p' "$B"/schema/*_columns.h | sort -u)
	[ "$n" -gt 100 ] && return $missing
}
check "explain knows each header, as it stands above its column" headers_explained
check "and no table has another one" eval '! grep -rnE "\"[^\"]+\", COL_" "$TOP/cli" --exclude-dir=page --include="*.[ch]"'
check "a field's name gives all of its words" eval '"$B/ncclinsp" explain bound | grep -q "^  peer "'
check "a word that is wider than its column is told from its meaning" eval \
	'"$B/ncclinsp" explain level_reason | grep -q "leaves it as it is: NCCL"'
check "what another tool calls it is explained" eval \
	'"$B/ncclinsp" explain collective_state_mismatch | grep -cE "^[A-Z_]+$" | grep -qx 5'
check "a word of two topics is explained twice" eval \
	'"$B/ncclinsp" explain unknown | grep -c "^meaning" | grep -qx 2'
done_testing
