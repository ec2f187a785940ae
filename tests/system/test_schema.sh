#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What each command prints for programs is what docs/schema/ says, and CSV is CSV for others.
# The pages that are made of schema/ are those that are checked in.
. "$(dirname "$0")/lib.sh"

[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"
command -v jsonschema >/dev/null || skip_all "no validator: python3-jsonschema is not installed"

I=$B/ncclinsp
SCHEMA=$TOP/docs/schema

# generate [option...] FILE...
generate() { "${AWK:-awk}" -f "$TOP/schema/generate.awk" "$@"; }

# Users are told that fields may be added.  Here nothing may be there that schema/ does not name.
mkdir "$T/strict"
generated=$(generate -v make=lists "$TOP"/schema/*.schema | sed -n 's/^json //p')
for command in $generated; do
	jq 'walk(if type == "object" and (.properties | type) == "object"
		then .additionalProperties = false else . end)' "$SCHEMA/$command.json" >"$T/strict/$command.json"
done

# One validator for all: to start one takes longer than what it does.  A schema's path in, a line out.
coproc VALIDATOR { PYTHONWARNINGS=ignore python3 -u -c '
import json, sys, jsonschema
validators = {}
for path in map(str.strip, sys.stdin):
    try:
        if path not in validators:
            schema = json.load(open(path))
            kind = jsonschema.validators.validator_for(schema)
            kind.check_schema(schema)
            validators[path] = kind(schema)
        print(" ".join(str(e).replace("\n", " ")[:500] for e in validators[path].iter_errors(json.load(open(sys.argv[1])))))
    except Exception as e:
        print(repr(e)[:2000])
' "$T/out"; }
started+=("$VALIDATOR_PID")
exec {to_validator}>&"${VALIDATOR[1]}" {of_validator}<&"${VALIDATOR[0]}"

# fits COMMAND: what is in $T/out fits the command's schema.
fits() {
	local schema=$T/strict/$1.json why
	[ -f "$schema" ] || schema=$SCHEMA/$1.json
	echo "$schema" >&"$to_validator" && read -r -t 60 why <&"$of_validator" && [ -z "$why" ] ||
		{ echo "${why:-the validator ended}"; return 1; }
}

# prints COMMAND [option...]: as JSON, into $T/out; tail: the first of its lines.
prints() {
	local command=$1
	shift
	case $command in
	dmon) set -- -n 1 "$@" ;;
	esac
	"$I" "$command" -o json "$@" >"$T/out" 2>"$T/err"
	[ -s "$T/out" ] || { cat "$T/err"; return 1; }
}

# with JQ COMMAND [option...]: it prints something of which JQ holds, and that fits.
with() {
	local filter=$1
	shift
	prints "$@" && fits "$1" && jq -e "$filter" "$T/out" >/dev/null || { head -c 1000 "$T/out"; return 1; }
}

commands() {
	local c
	for c in $("$I" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
		"$I" "$c" --help | grep -q -- '--output FORMAT' && echo "$c"
	done
}
check "each command that prints JSON has a schema, and each schema a command" \
	diff <(commands | sort) <(cd "$SCHEMA" && ls | sed 's/\.json$//' | grep -vxE 'snapshot|inspector' | sort)

made_anew() {
	local command
	"$TOP/schema/generate.sh" pages "$T/pages" || return
	for command in $generated; do
		diff "$SCHEMA/$command.json" "$T/pages/schema/$command.json" || return
	done
	[ -n "$command" ] && diff "$TOP/docs/api.md" "$T/pages/api.md"
}
check "the pages made of schema/ are those that it makes (make schema)" made_anew

# refused PATTERN SED FILE: with FILE of schema/ changed so, nothing is made, for that reason.
refused() {
	cp -r "$TOP/schema" "$T/changed"
	sed -i "$2" "$T/changed/$3"
	! cmp -s "$T/changed/$3" "$TOP/schema/$3" &&
		exits 1 "$1" generate -v make=explain "$T"/changed/*.schema
	set -- $?
	rm -r "$T/changed"
	return $1
}
check "one header of a table has one meaning" refused 'SHARE.* means two things' \
	's/^WAITED(%) wait_fraction/SHARE(%) wait_fraction/' summary.schema
check "evidence has no times" refused 'evidence has no clock' \
	's/^window_ns: u64 .*/window_ns: time/' proxy_starved_evidence.schema
check "each field is explained" refused 'nothing explains op.count' \
	'/^count:/{n;d}' op.schema
check "each column is explained" refused 'nothing explains column SHARE' \
	's/^SHARE(%) share percent share/SHARE(%) share percent unheard/' summary.schema
# asks TABLE_FIELDS FIELD: with a column "UNHEARD(us) - micros PATH" for it, the table asks for it.
asks() {
	local asked
	asked=$(sed "s|^table $1 .*|&\nUNHEARD(us) - micros $2|" "$TOP"/schema/*.schema >"$T/with.schema" &&
		generate -v make=fields "$T/with.schema" | sed -n "s/^#define ${1^^}_FIELDS //p" | tr -d '"')
	case ,$asked, in *,"$3",*) return ;; esac
	echo "$asked"
	return 1
}
check "a new column is asked for" asks ops queue.mean_ns queue
check "one of what lies deeper as well" asks comms quiet_limit_ns local_ranks.quiet_limit_ns
check "one that the command line makes up is not" eval '! asks rank here here >/dev/null'
# Of the tables that are made of schema/: their headers without the unit, and all fields.
made_names() { sed -nE 's/^\t\{ (NULL|"[^"]*"), (NULL|"[^"(]*)(\(.*)?"?, COL_.*/\1\n\2/p' "$B"/schema/*_columns.h |
	tr -d '"' | grep -vx NULL | sort -u; }
explained() {
	local name missing=0
	for name in $( (made_names; jq -r '[.. | .properties? | objects | keys[]] | unique[]' \
			$(printf "$SCHEMA/%s.json\n" $generated)) | sort -u | grep -vx schema); do
		"$I" explain "$name" | grep -q "^meaning\|^  " || { echo "$name"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
check "explain knows each field and each header" explained
check "it tells where one name means two things" eval \
	'"$I" explain late_ns | grep -c "^meaning" | grep -qx "[2-9]"'
check "a header and a field that mean one thing have one explanation" eval \
	'"$I" explain seq | grep -A1 "^column of .*ncclinsp tail" | grep -q "^field of"'
other_awk() { cmp <(generate -v make=explain "$TOP"/schema/*.schema) \
	<(AWK=$1 generate -v make=explain "$TOP"/schema/*.schema); }
for awk in mawk gawk; do
	command -v $awk >/dev/null && check "$awk makes the same" other_awk $awk ||
		skip "$awk makes the same" "it is not installed"
done

start_daemon
for c in $(commands); do
	case $c in
	attach | overlap | tail | doctor | report | replay | diff) ;;	# two are tested elsewhere, one ends with what it shows, ...
	*) check "$c: with nothing to show" with . "$c" ;;
	esac
done

cat >"$T/job.scn" <<-SCN
nodes 2
comm dp ranks 0,1 channels 2
link net latency 10us rate 20GB/s
late rank 1 by 2ms every 3
loop forever
	compute 5ms
	AllReduce dp 1Mi float32
	Send dp 1Mi float16 from 0 to 1
end
SCN
"$I" tail -n 40 -o json >"$T/tail.json" 2>"$T/tail.err" &
TAIL=$!
SLURM_JOB_ID=4711 SLURM_PROCID=0 sim "$T/job.scn" >"$T/sim.log" 2>&1 &
SIM_PID=$!
started+=("$TAIL" "$SIM_PID")
finished() { api_is 'peers' '.peers | length > 0' && api_is comms '.comms[0].local_ranks | length == 2'; }
check "a job runs" wait_until 60 finished

check "status of a node at work" with '.ingest.records > 0' status
check "ps" with '.processes[0].job.id == "4711"' ps
check "comms" with '.comms[0].local_ranks | length > 0' comms
check "level" with '.processes | length > 0' level
check "mark" with '.processes[0].phase == null' mark
check "config" with '(.settings | length > 10) and has("file") and has("file_newer") and (has("pid") | not)' config
check "config of a process" with '(.settings | length > 5) and has("pid") and (has("file") | not)' config -p "$(pgrep -P "$SIM_PID" | head -1)"
check "overhead" with '.processes | length > 0' overhead
check "ranks" with '.ranks | length > 0' ranks
check "ops" with '.rows[0].exec.p50_ns > 0' ops
check "ops by rank" with '.rows[0].rank != null' ops --by-rank
check "peers" with '.peers | length > 0' peers
check "dmon" with '.gpus | length > 0' dmon
open_ops() { with '.inflight | length > 0' inflight; }
check "inflight" wait_until 30 open_ops
wished() { "$I" level net >/dev/null && with ".wishes | length == 1" level; }
check "level with a wish" wished
check "a filter keeps the form" with '.comms | length == 1' comms -f rank=0
# What is asked for beside JSON is only what the table needs: nothing of it must be missing.
known() { jq -s -c 'map(map_values(. != null)) | unique'; }
same_known() {
	local all
	all=$("$I" "$1" --fields help --no-header | sed 's/ .*//' | grep -x '[a-z][a-z0-9_]*' | tr '\n' ,) &&
		diff <("$I" "$1" -o json --fields "${all%,}" | jq -c '.[] | arrays[]' | known) \
			<("$I" "$1" -o jsonl --fields "${all%,}" | known)
}
for c in ps comms ops peers mark inflight; do
	check "$c: a table has all that JSON has" wait_until 30 same_known "$c"
done
# The JSON of ranks is the rows of its table: they are compared with the daemon's.  Its "state" is
# that of a process that ended.
rank_columns_known() {
	local all
	all=$("$I" ranks --fields help --no-header | sed 's/ .*//' | grep -x '[a-z][a-z0-9_]*' | tr '\n' ,)
	api 'ranks?window=10s' >"$T/ranks.api" && "$I" ranks -o jsonl --fields "${all%,}" >"$T/ranks.jsonl" &&
		jq -n -e --slurpfile api "$T/ranks.api" --slurpfile rows "$T/ranks.jsonl" '
			def known: map(to_entries[] | select(.value != null).key) | unique;
			($rows | map(keys[]) | unique) as $columns | ($api[0].ranks | known) - ["host", "state"]
				| map(select(IN($columns[]))) as $told
				| ($told | IN(.[]; "world_rank")) and ($told - ($rows | known) == [])'
}
check "ranks: each column has what the daemon tells" wait_until 30 rank_columns_known
lines() { [ "$(grep -c '"kind":"collective"' "$T/tail.json")" -ge 40 ]; }
check "tail" eval 'wait_until 30 lines; grep "\"kind\":\"collective\"" "$T/tail.json" | head -1 >"$T/out"; fits tail'

kill_one() { kill -KILL "$(api processes | jq '[.processes[] | select(.state == "live").pid][0]')"; }
check "a process is killed" kill_one
found() { with '.findings | length > 0' diagnose; }
check "diagnose" wait_until 30 found
found
cp "$T/out" "$T/good"
check "a validator that never fails would prove nothing" \
	eval 'jq "del(.findings[0].text)" "$T/good" >"$T/out" && ! fits diagnose'
check "nor one that lets any member pass" \
	eval 'jq ".findings[0].unheard = 1" "$T/good" >"$T/out" && ! fits diagnose'

SNAP=$("$I" snapshot)
snapshot_fits() { cp "$SNAP" "$T/out" && fits snapshot && jq -e '.reason == "request" and (.kept | length > 0)' "$T/out"; }
now_fits() { curl -sf --unix-socket "$SOCK" http://ncclinspd/v1/snapshot >"$T/out" && fits snapshot && jq -e '.reason == "request"' "$T/out"; }
check "... an answer with the same tables" now_fits
check "a snapshot" eval 'wait_until 20 test -s "$SNAP" && snapshot_fits >/dev/null'
check "report" eval 'wait_until 20 test -s "$SNAP" && with ".nodes == 1" report "$SNAP"'
other_run() {
	jq '.processes[].nccl_variables.NCCL_ALGO = "Tree"' "$SNAP" >"$T/other.json" &&
		with '.differences | any(.what == "setting" and .name == "NCCL_ALGO")' diff "$SNAP" "$T/other.json"
}
check "diff" other_run
check "replay" with '.moments[0].nodes == 1' replay "$SNAP"

# ---- CSV ---------------------------------------------------------------------------

# parses COMMAND: as many fields in each row as in the header, whose names differ.
parses() {
	local command=$1
	shift
	[ "$command" = dmon ] && set -- -n 1
	case $command in report | replay) set -- "$SNAP" ;; diff) set -- "$SNAP" "$SNAP" ;; esac
	[ "$command" = diagnose ] && set -- --all
	"$I" "$command" -o csv "$@" 2>/dev/null | python3 -c '
import csv, sys
rows = list(csv.reader(sys.stdin, strict=True))
assert rows, "no header"
assert len(set(rows[0])) == len(rows[0]), rows[0]
bad = [row for row in rows if len(row) != len(rows[0])]
assert not bad, bad[0]
assert len(rows) > 1 or sys.argv[1] in ("exemplars", "overhead", "level", "report", "diff"), "no row"
' "$command"
}
for c in $(commands); do
	case $c in tail | attach | overlap) continue ;; esac
	check "$c: CSV is read by a CSV reader" parses "$c"
done
check "doctor" with '.checks | length > 5' doctor
done_testing
