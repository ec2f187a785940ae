#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is made of schema/*.schema: `headers DIR` for the build; `pages DIR` writes
# DIR/schema/*.json and DIR/api.md, which are kept in docs/.  An unchanged file stays untouched.
set -e
cd "$(dirname "$0")/.."
out=$2
mkdir -p "$out/schema"

# make WHAT WANTED FILE: FILE of that folder.
make() {
	awk -v make="$1" -v wanted="$2" -f schema/generate.awk schema/*.schema $4 >"$out/$3.tmp"
	if cmp -s "$out/$3.tmp" "$out/$3"; then rm "$out/$3.tmp"; else mv "$out/$3.tmp" "$out/$3"; fi
}

there_are() { awk -v make=lists -f schema/generate.awk schema/*.schema | sed -n "s/^$1 //p"; }

case $1 in
headers)
	for file in schema/*.schema; do
		name=${file#schema/}
		make server "$file" "schema/${name%.schema}.h"
	done
	for table in $(there_are columns); do
		make columns "$table" "schema/${table}_columns.h"
		make meanings "$table" "schema/${table}_meanings.h"
	done
	for object in $(there_are words); do
		make words "$object" "schema/${object}_words.h"
	done
	make fields "" schema/fields.h
	make reads "" schema/reads.h
	make read_tables "" schema/read_tables.h
	make segment "" schema/segment.h
	make metrics "" schema/families.h
	make explain "" schema/explain.h
	;;
pages)
	for page in $(there_are json); do
		make json "$page" "schema/$page.json"
	done
	make page "" api.md "util/words.c util/glossary.c docs/api.md"
	;;
esac
