# SPDX-License-Identifier: Apache-2.0
#
# The one place of each field is its block in schema/*.schema; schema/README.md has the form.
#
#   awk -v make=WHAT -v wanted=NAME -f schema/generate.awk schema/*.schema [PAGE]
#
#   make=server wanted=FILE     the server's tables of the objects in that file
#   make=segment                the tables by which a segment is told of without a daemon
#   make=columns wanted=TABLE   the rows of a `struct column` table
#   make=meanings wanted=TABLE  the explanations of these columns, in their order
#   make=reads                  the structs that programs read rows into
#   make=read_tables            ... and what is read into each
#   make=fields                 <TABLE>_FIELDS: what a table asks the daemon for
#   make=explain                the rows that `ncclinsp explain` knows of fields and columns
#   make=words wanted=OBJECT    the rows of a topic of util/glossary.c whose words are its fields
#   make=metrics                the families of /metrics
#   make=json wanted=PAGE       docs/schema/PAGE.json
#   make=page                   the page behind the schemas (docs/api.md, man/), with its tables
#   make=lists                  the commands and tables that there are

function fail(what)
{
	printf "%s:%d: %s\n", FILENAME, FNR, what >"/dev/stderr"
	failed = 1
	exit 1
}

BEGIN {
	split("u64 u32 i64 i32 bool name text hex rate real time", basic, " ")
	for (i in basic)
		is_basic[basic[i]]
	split("u64 integer u32 integer i64 integer i32 integer bool boolean name string " \
	      "text string word string hex string at string rate number real number", pair, " ")
	for (i = 1; i in pair; i += 2)
		json_type[pair[i]] = pair[i + 1]
	split("u64 uint64_t u32 uint32_t i32 int32_t bool bool name name_t hex uint64_t " \
	      "rate double time uint64_t", pair2, " ")
	for (i = 1; i in pair2; i += 2)
		c_type[pair2[i]] = pair2[i + 1]
	split("u64 json_put_u64 u32 json_put_u64 i32 json_put_i64 i64 json_put_i64 bool json_put_bool " \
	      "name json_put_string text json_put_string hex json_put_hex64 rate json_put_rounded real json_put_double", \
	      pair3, " ")
	for (i = 1; i in pair3; i += 2)
		put_call[pair3[i]] = pair3[i + 1]
	split("bytes u64 micros u64 age u64 since u64 stall u64 integer i64 sum u64 time at number rate " \
	      "percent rate loss rate", pair4, " ")
	for (i = 1; i in pair4; i += 2)
		shown_type[pair4[i]] = pair4[i + 1]
}

/^#/ && FILENAME !~ /\.(md|scd)$/ { next }

# ---- reading ---------------------------------------------------------------------------

# The text between a word and the next one that has a meaning, taken out of `rest`.
function take(word, next_words,    at, value)
{
	if (!match(rest, "(^| )" word " "))
		return ""
	at = RSTART
	value = substr(rest, RSTART + RLENGTH)
	rest = substr(rest, 1, at - 1)
	return value
}

function begin_object(name)
{
	if (name in object_text)
		fail("object " name " stands here a second time")
	object = name
	objects[nobjects++] = name
	object_text[name] = ""
	object_file[name] = FILENAME
	part = ""
	optional = 0
}

FILENAME ~ /\.schema$/ && /^object / {
	line = $0
	sub(/^[^:]*:/, "", line)
	sub(/:$/, "", $2)
	begin_object($2)
	if (match(line, /struct [a-z_0-9]+/))
		c_struct[$2] = substr(line, RSTART, RLENGTH)
	shared[$2] = line ~ /, shared/
	is_words[$2] = line ~ /, words/
	of_segment[$2] = line ~ /, segment/
	if (match(line, /metrics [A-Z]+/))
		metrics_of[$2] = substr(line, RSTART + 8, RLENGTH - 8)
	if (match(line, /\/(v1\/[a-z]+|metrics)/))
		answers_of[FILENAME] = substr(line, RSTART, RLENGTH)
	is_shown[$2] = line ~ / shown/
	place_of[$2] = is_shown[$2] ? "" : answers_of[FILENAME]
	if (match(line, / in the /))
		own_place[$2] = substr(line, RSTART + 4) (place_of[$2] == "" ? "" : ", " place_of[$2])
	mode = "object"
	next
}

# "answer COMMAND:", or "file FORMAT:"
FILENAME ~ /\.schema$/ && /^(answer|file) / {
	sub(/:$/, "", $2)
	begin_object($1 == "file" ? $2 : $2 "_answer")
	page_of[$2] = object
	title_of_page[$2] = $1 == "file" ? "ncclinsp-" $2 : "ncclinsp " $2 " -o json"
	place_of[object] = title_of_page[$2]
	mode = "object"
	next
}

FILENAME ~ /\.schema$/ && /^part / {
	part = $2
	sub(/[,:]$/, "", part)
	optional = $0 ~ /, optional/
	next
}

FILENAME ~ /\.schema$/ && /^all of / && mode == "table" {
	if (!ncolumns[$3])
		fail("there is no table " $3)
	for (i = 0; i < ncolumns[$3]; i++) {
		at = table SUBSEP ncolumns[table]++
		other = $3 SUBSEP i
		head[at] = head[other]
		column[at] = column[other]
		kind[at] = kind[other]
		path[at] = path[other]
		least[at] = least[other]
		most[at] = most[other]
		drop[at] = drop[other]
		flags[at] = flags[other]
		text_of["column" SUBSEP at] = text_of["column" SUBSEP other]
	}
	next
}

FILENAME ~ /\.schema$/ && /^all of / {
	fields_of[object, nfields[object]++] = "*" $3
	loose[object SUBSEP "*" $3] = optional
	next
}

# "read OBJECT: NAME...": the members of it that programs read; NAME=json: as text.
FILENAME ~ /\.schema$/ && /^read / {
	sub(/:$/, "", $2)
	is_read[nread++] = $2
	reads[$2] = ""
	for (i = 3; i <= NF; i++)
		reads[$2] = reads[$2] " " $i
	mode = "read"
	next
}

FILENAME ~ /\.schema$/ && /^\t/ && mode == "read" {
	sub(/^\t+/, "")
	reads[is_read[nread - 1]] = reads[is_read[nread - 1]] " " $0
	next
}

FILENAME ~ /\.schema$/ && /^table / {
	table = $2
	sub(/:$/, "", table)
	tables[ntables++] = table
	if (!match($0, / of /))
		fail("table " table " tells of no object")
	table_of[table] = substr($0, RSTART + 4)
	if (match(table_of[table], / shown by /)) {
		shown_by[table] = substr(table_of[table], RSTART + 10)
		table_of[table] = substr(table_of[table], 1, RSTART - 1)
	}
	mode = "table"
	next
}

# "also FIELD...", "also all of TABLE...": what is needed beside the fields that the columns show.
FILENAME ~ /\.schema$/ && /^also / && mode == "table" {
	if (sub(/^also all of /, ""))
		tables_beside[table] = $0
	else
		fields_beside[table] = substr($0, 6)
	next
}

FILENAME ~ /\.schema$/ && /^[a-z0-9_]+: / && mode == "object" {
	name = substr($1, 1, length($1) - 1)
	key = object SUBSEP name
	if (key in type)
		fail(object " has a second " name)
	rest = $0
	sub(/^[^ ]+ +/, "", rest)
	condition[key] = take("if")
	from[key] = take("from")
	by[key] = take("by")
	like[key] = take("as")
	only_daemon[key] = sub(/ daemon$/, "", rest)
	in_fleet[key] = sub(/ fleet$/, "", rest)
	null[key] = zero[key] = 0
	if (rest ~ /\?0$/)
		zero[key] = null[key] = sub(/\?0$/, "", rest)
	else if (rest ~ /\?$/)
		null[key] = sub(/\?$/, "", rest)
	container[key] = ""
	if (match(rest, /^(list|map|word|rows of|any of) /)) {
		container[key] = substr(rest, 1, RLENGTH - 1)
		rest = substr(rest, RLENGTH + 1)
	}
	if (container[key] == "word") {
		topic[key] = rest
		rest = "word"
		container[key] = ""
	}
	type[key] = rest
	if (rest == "time" && own_place[object] ~ /evidence/)
		fail(object "." name ": evidence has no clock to tell a time by; take u64, ns")
	loose[key] = optional
	part_of[key] = part
	fields_of[object, nfields[object]++] = name
	text_key = key
	text_of[key] = ""
	next
}

FILENAME ~ /\.schema$/ && mode == "table" && /^[^\t]/ {
	at = table SUBSEP ncolumns[table]++
	n = split($0, word, " ")
	head[at] = word[1] == "-" ? "" : word[1]
	column[at] = word[2] == "-" ? "" : word[2]
	kind[at] = word[3]
	path[at] = word[4]
	least[at] = most[at] = drop[at] = 0
	flags[at] = ""
	for (i = 5; i <= n; i++) {
		if (word[i] == "least")
			least[at] = word[++i]
		else if (word[i] == "most")
			most[at] = word[++i]
		else if (word[i] == "drop")
			drop[at] = word[++i]
		else if (word[i] ~ /^(key|if-known|if-unusual|apart|varies)$/)
			flags[at] = flags[at] " " word[i]
		else
			fail("column " $0 ": '" word[i] "' says nothing")
	}
	if (n < 4)
		fail("a column has a header, a name, a kind and a path: " $0)
	text_key = "column" SUBSEP at
	text_of[text_key] = ""
	next
}

FILENAME ~ /\.schema$/ && /^\t/ {
	sub(/^\t+/, "")
	if (mode == "object" && !nfields[object])
		object_text[object] = object_text[object] (object_text[object] == "" ? "" : " ") $0
	else
		text_of[text_key] = text_of[text_key] (text_of[text_key] == "" ? "" : " ") $0
	next
}

FILENAME ~ /\.schema$/ && NF { fail("neither a field nor a text: " $0) }

# The words of a topic, from the tables of util/words.c and util/glossary.c.
function add_word(topic, name)
{
	if (name ~ / /)
		return
	nwords[topic]++
	words_of[topic] = words_of[topic] (words_of[topic] == "" ? "" : ", ") "`" name "`"
}

FILENAME ~ /\.c$/ {
	if (match($0, /struct word [a-z]+\[/))
		array = substr($0, RSTART + 12, RLENGTH - 13)
	else if (match($0, /T\("[a-z_]+", .*, [a-z]+\)/) && split($0, word, /[",() ]+/))
		array_of[word[2]] = array_of[word[2]] " " word[n = split($0, word, /[",() ]+/) - 1]
	else if (match($0, /^\t\{ KIND\("[a-z_]+/))
		add_word("kind", substr($0, RSTART + 9, RLENGTH - 9))
	else if (match($0, /^\tVERDICT\([A-Z_]+/))
		add_word("verdict", substr($0, RSTART + 9, RLENGTH - 9))
	else if (match($0, /(W\(|\.name = )"[^"]*/)) {
		name = substr($0, RSTART, RLENGTH)
		sub(/^[^"]*"/, "", name)
		add_word(array, name)
	}
	next
}

# Few words stand in the page themselves.
function topic_in_words(key,    i, n, array)
{
	if (!(key in topic))
		return ""
	if (!(topic[key] in array_of) && !(topic[key] in words_of))
		fail("no table has the words of topic " topic[key])
	n = split(topic[key] array_of[topic[key]], array, " ")
	for (i = n; i > 1 && !nwords[array[i]]; i--)
		;
	if (n <= 2 && nwords[array[i]] && nwords[array[i]] <= 12)
		return " One of " words_of[array[i]] ": `ncclinsp explain " topic[key] "`."
	return " `ncclinsp explain " topic[key] "` lists the words."
}

# ---- looking up ------------------------------------------------------------------------

# The text of a field: its own, that of the field that it is like, or the common one of its name.
function meaning(key,    word)
{
	if (text_of[key] != "")
		return text_of[key]
	if (like[key] != "") {
		if (split(like[key], word, ".") == 2 && ((word[1], word[2]) in type))
			return meaning(word[1] SUBSEP word[2])
		fail("there is no field " like[key])
	}
	split(key, word, SUBSEP)
	if (("common", word[2]) in type && word[1] != "common")
		return meaning("common" SUBSEP word[2])
	fail("nothing explains " word[1] "." word[2])
}

# The field at a path, from one of the objects of a list: its key, or "".
function find(list, at,    n, i, word, step, name, key)
{
	n = split(list, word, /[ ,]+/)
	step = at
	sub(/\..*/, "", step)
	for (i = 1; i <= n; i++) {
		name = step
		sub(/.*\./, "", word[i])
		if (!((word[i], name) in type))
			sub(/(_at|_mono_ns)$/, "", name)
		key = word[i] SUBSEP name
		if (!(key in type))
			continue
		if (step == at || !(type[key] in object_text))
			return key
		return find(type[key], substr(at, length(step) + 2))
	}
	return ""
}

# The explanation of a column: its own, or that of the field that it shows.
function column_text(table, at,    n, word, i, key)
{
	if (text_of["column" SUBSEP at] != "")
		return text_of["column" SUBSEP at]
	n = split(path[at], word, /[|\/]/)
	for (i = 1; i <= n; i++)
		if ((key = field_at(table, word[i])) != "")
			return meaning(key)
	fail("nothing explains column " head[at] " " column[at] " of table " table)
}

function plain(text)
{
	gsub(/`/, "", text)
	return text
}

function quoted(text)
{
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

function or_null(text)
{
	return text == "" ? "NULL" : quoted(text)
}

function of_time(key)
{
	return type[key] == "time"
}

# The field of a column at one of its paths; "": none.
function field_at(table, at)
{
	return find(table_of[table] " common", at)
}

# ---- what tables ask for ---------------------------------------------------------------

# The field to be asked for, of what stands at a path; "": the command line makes it up.
function field_asked(table, at,    n, i, word, step, field)
{
	n = split(table_of[table], word, " ")
	step = at
	sub(/\..*/, "", step)
	for (i = 1; i <= n; i++) {
		if (word[i] == "common" || find(word[i], at) == "")
			continue
		if (is_shown[word[i]])
			return ""
		if (field == "")
			field = index(word[i], ".") ? substr(word[i], 1, index(word[i], ".")) step : step
	}
	return field
}

# Adds to what a table asks for.
function ask(table, field)
{
	if ((table, field) in is_asked)
		return
	is_asked[table, field]
	asked_by[table] = asked_by[table] (asked_by[table] == "" ? "" : ",") field
}

# Adds what the columns of another one, or the table itself, show.
function ask_for_columns(table, other,    i, k, n, word, field)
{
	if (!ncolumns[other])
		fail("there is no table " other)
	for (i = 0; i < ncolumns[other]; i++) {
		n = split(path[other, i], word, /[|\/]/)
		for (k = 1; k <= n; k++)
			if ((field = field_asked(other, word[k])) != "")
				ask(table, field)
	}
}

function ask_for_table(table,    k, n, word, field)
{
	ask_for_columns(table, table)
	n = split(tables_beside[table], word, " ")
	for (k = 1; k <= n; k++)
		ask_for_columns(table, word[k])
	n = split(fields_beside[table], word, " ")
	for (k = 1; k <= n; k++) {
		if ((field = field_asked(table, word[k])) == "")
			fail("table " table ": there is no field " word[k])
		ask(table, field)
	}
}

# ---- what programs read ----------------------------------------------------------------

# The key of a member of an object, or of those that it takes in; "": it has none of that name.
function member_key(object, name,    i, field, key)
{
	field = name
	if (!((object, field) in type))
		sub(/(_at|_mono_ns)$/, "", field)
	key = object SUBSEP field
	if (key in type && of_time(key) == (field != name))
		return key
	for (i = 0; i < nfields[object]; i++)
		if (fields_of[object, i] ~ /^\*/ &&
		    (key = member_key(substr(fields_of[object, i], 2), name)) != "")
			return key
	return ""
}

# How a member is read: READ_<this>.
function read_kind(key, name,    is)
{
	is = type[key]
	if (container[key] == "list" && is in reads)
		return "LIST"
	if (container[key] == "map" && is == "u64")
		return "MAP"
	if (container[key] != "")
		fail(name ": a " container[key] " of " is " cannot be read")
	if (is in reads)
		return "OBJECT"
	if (of_time(key))
		return name ~ /_at$/ ? "TEXT" : "U64"
	if (is ~ /^(u64|u32|i64|=[0-9]+)$/)
		return "U64"
	if (is ~ /^(i32|bool|hex)$/)
		return toupper(is)
	if (is ~ /^(name|text|word)$/ || is ~ /[|=]/)
		return "TEXT"
	fail(name ": a " is " cannot be read")
}

function read_member(object, word,    name, key, kind, line)
{
	name = word
	if (sub(/=json$/, "", name)) {
		if (member_key(object, name) == "")
			fail("there is no " object "." name " to be read")
		read_struct = "\tstruct scan_text " name "_json;\n" read_struct
		read_rows = read_rows "\t{ " quoted(name) ", " length(name) ", READ_JSON, offsetof(struct " object \
			"_read, " name "_json), NULL },\n"
		return
	}
	if ((key = member_key(object, name)) == "")
		fail("there is no " object "." name " to be read")
	kind = read_kind(key, name)
	line = "\t" (kind == "LIST" ? "LIST(struct " type[key] "_read)" : \
		kind == "OBJECT" ? "struct " type[key] "_read" : kind == "MAP" ? "struct read_numbers" : \
		kind == "TEXT" ? "const char *" : kind == "BOOL" ? "bool" : kind == "I32" ? "int32_t" : "uint64_t") \
		(kind == "TEXT" ? "" : " ") name ";\n"
	# The widest first: rows are many, and holes would be theirs.
	if (kind == "BOOL")
		read_bools = read_bools line
	else if (kind == "I32")
		read_ints = read_ints line
	else
		read_struct = read_struct line
	read_rows = read_rows "\t{ " quoted(name) ", " length(name) ", READ_" kind ", offsetof(struct " object "_read, " name \
		"), " (kind ~ /^(LIST|OBJECT)$/ ? "&" type[key] "_reads" : "NULL") " },\n"
}

# An object's struct or table, behind those of the objects within it.
function read_object(object,    i, n, word, key)
{
	if (object in is_told)
		return
	is_told[object]
	n = split(reads[object], word, " ")
	for (i = 1; i <= n; i++)
		if ((key = member_key(object, word[i])) != "" && type[key] in reads)
			read_object(type[key])
	read_struct = read_ints = read_bools = read_rows = ""
	for (i = 1; i <= n; i++)
		read_member(object, word[i])
	if (make == "reads")
		printf "struct %s_read {\n%s};\n\nextern const struct read_table %s_reads;\n\n",
			object, read_struct read_ints read_bools, object
	else
		printf "const struct read_table %s_reads = { sizeof(struct %s_read), (const struct read_field[]) {\n%s" \
			"\t{ 0 },\n} };\n\n", object, object, read_rows
}

# ---- the server's tables ---------------------------------------------------------------

function is_member(expression)
{
	return expression ~ /^[a-z_][a-z_0-9.]*$/ && expression != "true"
}

# A word is a text that the server has as a name.
function written_as(key)
{
	return type[key] == "word" || type[key] ~ /\||^=/ ? "name" : type[key]
}

# True where only a daemon knows it, and the table is for a program without one.
function is_unknown(key)
{
	return make == "segment" && only_daemon[key]
}

# A field that the tables of kinds do not describe gets a function.
function needs_function(key)
{
	if (is_unknown(key) || (by[key] != "" && from[key] == ""))
		return 0
	return by[key] != "" || condition[key] != "" || type[key] in object_text ||
		(from[key] != "" && !is_member(from[key])) || type[key] ~ /^(i64|real)$/
}

# The same field of the same struct is taken from the same place.
function take_from_like(object, key,    word, other)
{
	split(like[key], word, ".")
	other = word[1] SUBSEP word[2]
	if (like[key] == "" || c_struct[word[1]] != c_struct[object] || by[key] from[key] condition[key] != "")
		return
	by[key] = by[other]
	from[key] = from[other]
	condition[key] = condition[other]
}

function value_of(key, name)
{
	if (from[key] == "")
		return "row->" name
	return is_member(from[key]) ? "row->" from[key] : from[key]
}

function put_function(object, name,    key, tag, value, call)
{
	key = object SUBSEP name
	tag = c_struct[object]
	printf "static %s %s_%s_%s(const struct rows_writer *w, %sconst void *at)\n{\n",
		of_time(key) ? "uint64_t" : "void", object, of_time(key) ? "take" : "put", name,
		of_time(key) ? "" : "struct json *j, "
	if (from[key] ~ /(^|[^a-z_0-9])s(->|,)/)
		print "\tconst struct serve *s = serve_of(w);"
	printf "\tconst %s *row = at;\n\n\t(void)w;\n\t(void)row;\n", tag
	if (of_time(key)) {
		printf "\treturn %s;\n}\n\n", value_of(key, name)
		return
	}
	if (condition[key] != "")
		printf "\tif (!(%s)) {\n\t\tjson_put_null(j);\n\t\treturn;\n\t}\n", condition[key]
	if (type[key] in object_text && container[key] == "list") {
		printf "\tsize_t n;\n\tconst %s *part = %s;\n\n\tjson_begin(j, '[');\n", c_struct[type[key]], from[key]
		printf "\tfor (size_t i = 0; i < n; i++)\n\t\trows_put_object(w, j, %s_fields, &part[i]);\n", type[key]
		print "\tjson_end(j, ']');\n}\n"
		return
	}
	if (type[key] in object_text) {
		value = from[key] != "" ? (is_member(from[key]) ? "&row->" from[key] : from[key]) : \
			c_struct[type[key]] == tag ? "row" : "&row->" name
		printf "\tconst %s *part = %s;\n\n", c_struct[type[key]], value
		printf "\trows_put_object(w, j, %s_fields, part);\n}\n\n", type[key]
		return
	}
	value = value_of(key, name)
	call = by[key] != "" ? by[key] : put_call[written_as(key)]
	if (by[key] == "" && null[key] && type[key] ~ /^(u64|i32|rate)$/)
		call = "rows_put_" type[key]
	if (call == "")
		fail(object "." name ": a " type[key] " cannot be written so")
	printf "\t%s(j, %s);\n}\n\n", call, value
}

function table_row(object, name,    key, kind, member)
{
	key = object SUBSEP name
	if (is_unknown(key)) {
		if (!null[key] || of_time(key))
			fail(object "." name " cannot be null")
		printf "\t{ %s, FIELD_NULL, 0, NULL, NULL },\n", quoted(name)
		return
	}
	if (by[key] != "" || (needs_function(key) && !of_time(key))) {
		printf "\t{ %s, FIELD_PUT, 0, %s, NULL },\n", quoted(name),
			needs_function(key) ? object "_put_" name : by[key]
		return
	}
	if (of_time(key) && needs_function(key)) {
		printf "\t{ %s, FIELD_TIME, 0, NULL, %s_take_%s },\n", quoted(name), object, name
		return
	}
	kind = "FIELD_" toupper(written_as(key)) (zero[key] && type[key] != "text" ? "_0" : "")
	member = from[key] != "" ? from[key] : name (of_time(key) ? "_ns" : "")
	printf "\t{ %s, %s, %s, NULL, NULL },\n", quoted(name), kind, type[key] == "text" ? \
		"offsetof(" c_struct[object] ", " member ")" : \
		"FIELD_AT(" c_struct[object] ", " member ", " c_type[written_as(key)] ")"
}

# The tables of a program that has no others are its own.
function storage(object)
{
	return shared[object] && make == "server" ? "" : "static "
}

function server_tables(object,    i, k, name, key, part, open, other, parts, nparts)
{
	for (i = 0; i < nfields[object]; i++) {
		name = fields_of[object, i]
		if (name ~ /^\*/)
			continue
		take_from_like(object, object SUBSEP name)
		if (needs_function(object SUBSEP name))
			put_function(object, name)
	}
	for (i = 0; i < nfields[object]; i++) {
		name = fields_of[object, i]
		key = object SUBSEP name
		if (!open || (name !~ /^\*/ && part_of[key] != part)) {
			if (open)
				print "\t{ 0 },\n};\n"
			part = part_of[key]
			open = 1
			nparts++
			parts = parts "\t{ NULL, " object (part == "" ? "" : "_" part) "_fields },\n"
			printf "%sconst struct field %s%s_fields[] = {\n", storage(object),
				object, part == "" ? "" : "_" part
		}
		if (name ~ /^\*/) {
			other = substr(name, 2)
			for (k = 0; k < nfields[other]; k++)
				table_row(other, fields_of[other, k])
			continue
		}
		table_row(object, name)
	}
	print "\t{ 0 },\n};\n"
	if (nparts > 1)
		printf "%sconst struct field_table %s_tables[] = {\n%s\t{ NULL, NULL },\n};\n\n",
			make == "server" ? "" : "static ", object, parts
}

# The tables of an object, behind those of the objects within it.
function segment_tables(object,    i, key)
{
	if (object in is_told)
		return
	is_told[object]
	for (i = 0; i < nfields[object]; i++) {
		key = object SUBSEP fields_of[object, i]
		if (type[key] in c_struct && !is_unknown(key))
			segment_tables(type[key])
	}
	server_tables(object)
}

# ---- docs/schema -----------------------------------------------------------------------

function any_or_null(json, null)
{
	return null ? "{\"anyOf\": [" json ", {\"type\": \"null\"}]}" : json
}

# The fields that the rows of a table have for programs, as an object.
function row_of(table,    i, k, n, at, key, field, word, row)
{
	row = table "_row"
	if (row in object_text)
		return row
	if (!ncolumns[table])
		fail("there is no table " table)
	object_text[row] = "A row of what the command shows."
	for (i = 0; i < ncolumns[table]; i++) {
		at = table SUBSEP i
		if (column[at] == "")
			continue
		fields_of[row, nfields[row]++] = column[at]
		key = row SUBSEP column[at]
		text_of[key] = column_text(table, at)
		type[key] = kind[at] in shown_type ? shown_type[kind[at]] : "text"
		null[key] = 1
		n = split(path[at], word, /[|\/]/)
		for (k = n; k; k--) {
			if ((field = field_at(table, word[k])) == "")
				continue
			null[key] = null[key] && (null[field] || word[k] ~ /\./)
			if (kind[at] ~ /^(since|sum)$/ || path[at] ~ /\//)
				continue
			type[key] = !of_time(field) ? type[field] : word[k] ~ /_mono_ns$/ ? "u64" : "at"
			container[key] = container[field]
		}
	}
	return row
}

function json_of(type, container, null, said,    n, word, i, list, body)
{
	if (container == "rows of")
		return json_of(row_of(type), "list", null, said)
	if (container == "any of") {
		for (i = 0; i < nobjects; i++)
			if (objects[i] ~ "_" type "$")
				list = list (list == "" ? "" : ", ") json_of(objects[i], "", 0, "")
		return "{" said "\"anyOf\": [" list (null ? ", {\"type\": \"null\"}" : "") "]}"
	}
	if (container == "list")
		return any_or_null("{\"type\": \"array\", " said "\"items\": " \
			json_of(type, "", type == "rate", "") "}", null)
	if (container == "map")
		return any_or_null("{\"type\": \"object\", " said "\"additionalProperties\": " \
			json_of(type, "", 0, "") "}", null)
	if (type in object_text) {
		needed(type)
		body = "{\"$ref\": \"#/$defs/" type "\"}"
		return said == "" ? any_or_null(body, null) : \
			"{" said (null ? "\"anyOf\": [" body ", {\"type\": \"null\"}]" : substr(body, 2))  (null ? "}" : "")
	}
	if (type == "object")
		return "{" said "\"type\": " (null ? "[\"object\", \"null\"]" : "\"object\"") "}"
	if (type ~ /\|/ || type ~ /^=/) {
		sub(/^=/, "", type)
		n = split(type, word, "|")
		for (i = 1; i <= n; i++)
			list = list (i > 1 ? ", " : "") (word[i] ~ /^[0-9]+$/ ? word[i] : quoted(word[i]))
		return "{" said "\"enum\": [" list (null ? ", null" : "") "]}"
	}
	if (!(type in json_type))
		fail("there is no type " type)
	return "{" said "\"type\": " (null ? "[\"" json_type[type] "\", \"null\"]" : \
		"\"" json_type[type] "\"") \
		(type ~ /^u(32|64)$/ ? ", \"minimum\": 0" : "") \
		(type == "hex" ? ", \"pattern\": \"^0x[0-9a-f]{16}$\"" : "") \
		(type == "at" ? ", \"pattern\": \"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\\\.[0-9]{9}Z$\"" : "") "}"
}

function needed(object)
{
	if (!(object in is_needed)) {
		is_needed[object]
		needs[nneeds++] = object
	}
}

function json_member(name, json)
{
	members = members (members == "" ? "" : ",\n") indent "\t" quoted(name) ": " json
}

function json_requires(name)
{
	required = required (required == "" ? "" : ", ") quoted(name)
}

function json_fields(object, optional,    i, name, key, said)
{
	for (i = 0; i < nfields[object]; i++) {
		name = fields_of[object, i]
		if (name ~ /^\*/) {
			json_fields(substr(name, 2), optional || loose[object SUBSEP name])
			continue
		}
		key = object SUBSEP name
		said = "\"description\": " quoted(plain(meaning(key))) ", "
		if (of_time(key)) {
			json_member(name "_at", json_of("at", "", null[key], said))
			json_member(name "_mono_ns", json_of("u64", "", null[key],
				"\"description\": \"The same moment on the node's CLOCK_MONOTONIC.\", "))
			if (!loose[key] && !optional) {
				json_requires(name "_at")
				json_requires(name "_mono_ns")
			}
			continue
		}
		json_member(name, json_of(type[key], container[key], null[key], said))
		if (!loose[key] && !optional)
			json_requires(name)
	}
}

# "required" and "properties" of an object, with those that are there already.
function json_object(object, in_front)
{
	members = in_front == "" ? "" : indent "\t\"schema\": {\"const\": 1}"
	required = in_front
	json_fields(object)
	printf "%s\"required\": [%s],\n%s\"properties\": {\n%s\n%s}", indent, required, indent,
		members, indent
}

function json_page(name,    i, front)
{
	front = title_of_page[name] ~ / / ? "\"schema\"" : ""
	print "{\n\t\"$schema\": \"https://json-schema.org/draft/2020-12/schema\","
	printf "\t\"title\": %s,\n", quoted(title_of_page[name])
	printf "\t\"description\": %s,\n\t\"type\": \"object\",\n",
		quoted(plain(object_text[page_of[name]] " Fields may be added."))
	indent = "\t"
	json_object(page_of[name], front)
	indent = "\t\t\t"
	for (i = 0; i < nneeds; i++) {
		printf "%s\t\t%s: {\n\t\t\t\"description\": %s,\n\t\t\t\"type\": \"object\",\n",
			i ? ",\n" : ",\n\t\"$defs\": {\n", quoted(needs[i]), quoted(plain(object_text[needs[i]]))
		json_object(needs[i], "")
		printf "\n\t\t}"
	}
	print (nneeds ? "\n\t}" : "") "\n}"
}

# ---- pages -----------------------------------------------------------------------

function type_in_words(key,    is)
{
	is = type[key]
	if (is in object_text || container[key] ~ / of$/)
		is = "object"
	else if (is == "hex")
		is = "id"
	else if (is == "time" || is == "word" || is == "object")
		is = is
	else if (is in json_type)
		is = json_type[is]
	else if (is ~ /^=[0-9]+$/)
		is = "integer"
	else
		is = "word"
	if (container[key] ~ /^(list|rows of)$/)
		is = "list of " is "s"
	else if (container[key] == "map")
		is = "object of " is "s"
	return is (null[key] ? " or null" : "")
}

function api_rows(object, inside, also,    i, name, key, shown, kinds, n)
{
	for (i = 0; i < nfields[object]; i++) {
		name = fields_of[object, i]
		if (name ~ /^\*/) {
			api_rows(substr(name, 2), inside, also)
			continue
		}
		key = object SUBSEP name
		shown = "`" inside name "`"
		if (of_time(key))
			shown = "`" inside name "_at`, `" inside name "_mono_ns`"
		kinds = type[key]
		n = kinds
		gsub(/\|/, "`, `", n)
		printf "| %s | %s | %s%s%s |\n", shown, type_in_words(key), meaning(key),
			topic_in_words(key), kinds ~ /\|/ ? " One of `" n "`." : \
			kinds ~ /^=/ ? " It is `" substr(n, 2) "`." : ""
		if (kinds in object_text && index(also " ", " " kinds " "))
			api_rows(kinds, inside name ".", also)
	}
}

# A text as scdoc(5) wants it.
function in_scdoc(text)
{
	gsub(/\*/, "\\*", text)
	gsub(/`/, "_", text)
	return text
}

# The headers of a table, but for those that mean the same in one before it on the page.
function page_columns(table,    i, at, title, says, field)
{
	if (!ncolumns[table])
		fail("there is no table " table)
	for (i = 0; i < ncolumns[table]; i++) {
		at = table SUBSEP i
		title = head[at]
		if (title == "")
			continue
		says = column_text(table, at)
		if (page_says[title] == says)
			continue
		field = field_at(table, path[at])
		printf "%s_%s_%s\n\t%s%s%s\n", ntitles++ ? "\n" : "", title,
			title in page_titles ? " (*" shown_by[table] "*)" : "", in_scdoc(says),
			field in topic ? in_scdoc(topic_in_words(field)) : "",
			flags[at] ~ /if-/ ? " It is shown where a row " \
			(flags[at] ~ /if-known/ ? "has it." : "says anything but the usual.") : ""
		page_titles[title]
		page_says[title] = says
	}
}

FILENAME ~ /\.scd$/ && /^@columns / {
	for (i = 2; i <= NF; i++)
		page_columns($i)
	next
}

FILENAME ~ /\.scd$/ && /^@metrics / {
	if (!($2 in metrics_of))
		fail("there are no metrics " $2)
	for (i = 0; i < nfields[$2]; i++)
		printf "%s*%s*%s\n\t%s\n", i ? "\n" : "", fields_of[$2, i],
			in_fleet[$2 SUBSEP fields_of[$2, i]] ? ", also in the fleet profile" : "",
			in_scdoc(meaning($2 SUBSEP fields_of[$2, i]))
	next
}

FILENAME ~ /\.scd$/ { print }

FILENAME ~ /\.md$/ {
	if (/^<!-- end -->$/)
		inside = 0
	if (!inside)
		print
	if (/^<!-- fields of /) {
		if (!($4 in object_text))
			fail("there is no object " $4)
		also = prefix = ""
		for (i = 5; i < NF; i++)
			if ($i == "inside")
				prefix = $++i "."
			else
				also = also " " $i
		print "| field | type | meaning |\n| --- | --- | --- |"
		api_rows($4, prefix, also)
		inside = 1
	}
}

# ---- the command line's columns, and its words -----------------------------------------

function c_column(at,    rank, n, word, i)
{
	rank = drop[at] ? drop[at] : ""
	n = split(flags[at], word, " ")
	for (i = 1; i <= n; i++) {
		gsub(/-/, "_", word[i])
		rank = rank (rank == "" ? "" : " | ") "REPORT_" toupper(word[i])
	}
	printf "\t{ %s, %s, COL_%s, %s, %d, %d, %s },\n", column[at] == "" ? "NULL" : quoted(column[at]),
		head[at] == "" ? "NULL" : quoted(head[at]), toupper(kind[at]), quoted(path[at]),
		least[at], most[at], rank == "" ? "0" : rank
}

# A word and what it means, with the places where it means this as a field and as a header.
function explain(list, word, place, says,    key)
{
	key = tolower(word) SUBSEP says
	if (!(key in shown_as)) {
		shown_as[key] = word
		order[norder++] = key
		in_fields[key] = in_columns[key] = ""
	}
	if (list == "column") {
		shown_as[key] = word
		if (!index(", " in_columns[key] ",", ", " place ","))
			in_columns[key] = in_columns[key] (in_columns[key] == "" ? "" : ", ") place
	}
	if (list == "field" && place != "" && !index(", " in_fields[key] ",", ", " place ","))
		in_fields[key] = in_fields[key] (in_fields[key] == "" ? "" : ", ") place
}

# A column's explanation, where people see a dash instead of null.
function shown_meaning(table, at,    text)
{
	text = plain(column_text(table, at))
	gsub(/Null where/, "A dash where", text)
	gsub(/null where/, "a dash where", text)
	return text
}

# "WAIT" of "WAIT(%)".
function title_of(head)
{
	sub(/\(.*/, "", head)
	return head
}

# The answer that an object is of, and within it the field that holds it.
function place(object,    i, k, key)
{
	if (object in own_place)
		return own_place[object]
	for (i = 0; i < nobjects; i++)
		for (k = 0; k < nfields[objects[i]]; k++) {
			key = objects[i] SUBSEP fields_of[objects[i], k]
			if (type[key] == object && place_of[objects[i]] !~ /^ncclinsp/)
				return fields_of[objects[i], k] " of " place_of[object]
		}
	return place_of[object]
}

function explain_object(object,    i, name, key, says, in_answer)
{
	in_answer = place(object)
	for (i = 0; i < nfields[object]; i++) {
		name = fields_of[object, i]
		key = object SUBSEP name
		if (name ~ /^\*/)
			continue
		says = plain(meaning(key))
		if (of_time(key)) {
			explain("field", name "_at", in_answer, says)
			explain("field", name "_mono_ns", in_answer, says)
		} else {
			explain("field", name, in_answer, says)
		}
	}
}

function explain_table(table,    i, at, says, meant)
{
	for (i = 0; i < ncolumns[table]; i++) {
		at = table SUBSEP i
		says = plain(column_text(table, at))
		if (column[at] != "")
			explain("field", column[at], shown_by[table], says)
		if (head[at] == "")
			continue
		if (head[at] in meant && meant[head[at]] != says)
			fail("table " table ": " head[at] " means two things")
		meant[head[at]] = says
		explain("column", title_of(head[at]), shown_by[table], says)
		if (column[at] != "" && column[at] != tolower(title_of(head[at])))
			field_behind[tolower(title_of(head[at])) SUBSEP says] = column[at]
	}
}

END {
	if (failed)
		exit 1
	if (make == "server") {
		print "/* Made by schema/generate.awk. */"
		for (i = nobjects - 1; i >= 0; i--)
			if (objects[i] in c_struct && object_file[objects[i]] == wanted)
				server_tables(objects[i])
	} else if (make == "segment") {
		print "/* Made by schema/generate.awk. */"
		for (i = 0; i < nobjects; i++)
			if (of_segment[objects[i]])
				segment_tables(objects[i])
	} else if (make ~ /^read/) {
		print "/* Made by schema/generate.awk. */"
		for (i = 0; i < nread; i++)
			read_object(is_read[i])
	} else if (make == "columns") {
		for (i = 0; i < ntables; i++)
			if (tables[i] == wanted)
				for (k = 0; k < ncolumns[wanted]; k++)
					c_column(wanted SUBSEP k)
	} else if (make == "meanings") {
		for (i = 0; i < ntables; i++)
			if (tables[i] == wanted)
				for (k = 0; k < ncolumns[wanted]; k++)
					print "\t" quoted(shown_meaning(wanted, wanted SUBSEP k)) ","
	} else if (make == "fields") {
		for (i = 0; i < ntables; i++) {
			if (shown_by[tables[i]] == "")
				continue
			ask_for_table(tables[i])
			printf "#define %s_FIELDS %s\n", toupper(tables[i]), quoted(asked_by[tables[i]])
		}
	} else if (make == "explain") {
		for (i = 0; i < nobjects; i++)
			if ((place_of[objects[i]] != "" || objects[i] in own_place) && !is_words[objects[i]])
				explain_object(objects[i])
		for (i = 0; i < ntables; i++)
			if (shown_by[tables[i]] != "")
				explain_table(tables[i])
		for (i = 0; i < norder; i++) {
			split(order[i], word, SUBSEP)
			printf "\t{ %s,\n\t  %s, %s,\n\t  %s,\n\t  %s },\n", quoted(shown_as[order[i]]),
				or_null(in_columns[order[i]]), or_null(field_behind[order[i]]),
				or_null(in_fields[order[i]]), quoted(word[2])
		}
	} else if (make == "words") {
		for (i = 0; i < nfields[wanted]; i++)
			printf "\tW(%s, %s),\n", quoted(fields_of[wanted, i]),
				quoted(plain(meaning(wanted SUBSEP fields_of[wanted, i])))
	} else if (make == "metrics") {
		print "/* Made by schema/generate.awk. */"
		for (i = 0; i < nobjects; i++)
			for (k = 0; k < nfields[objects[i]] && objects[i] in metrics_of; k++) {
				key = objects[i] SUBSEP fields_of[objects[i], k]
				printf "\t{ METRICS_%s, EXPOSITION_%s, %s, %s,\n\t  %s,\n\t  %s },\n",
					metrics_of[objects[i]], toupper(type[key]),
					in_fleet[key] ? "true" : "false",
					quoted(fields_of[objects[i], k]), quoted(plain(meaning(key))), from[key]
			}
	} else if (make == "json") {
		json_page(wanted)
	} else if (make == "lists") {
		for (page in page_of)
			print "json", page
		for (i = 0; i < ntables; i++)
			if (shown_by[tables[i]] != "")
				print "columns", tables[i]
		for (i = 0; i < nobjects; i++)
			if (is_words[objects[i]])
				print "words", objects[i]
	}
}
