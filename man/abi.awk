# SPDX-License-Identifier: Apache-2.0
#
# Tables of nci-abi(7), taken from the headers, so that there is one place to write them:
#
#   awk -f man/abi.awk HEADERS man/nci-abi.7.scd    the page, with its tables
#   awk -f man/abi.awk HEADERS                      what these say, for test_abi.c
#
# Lines of the page that are asked for here:
#
#   @struct NAME     offset, size, name and meaning of every field
#   @values PREFIX   the constants whose names begin so
#   @events          the rows of NCI_EVENTS

BEGIN {
	split("uint8_t 1 int8_t 1 char 1 uint16_t 2 int16_t 2 uint32_t 4 int32_t 4 " \
	      "uint64_t 8 int64_t 8", word, " ")
	for (i = 1; i in word; i += 2)
		bytes[word[i]] = word[i + 1]
}

function fold(prefix, text, at, width,    n, word, i, line)
{
	n = split(text, word, " ")
	line = prefix
	for (i = 1; i <= n; i++) {
		if (length(line) > at && length(line) + length(word[i]) >= width) {
			print line
			line = ""
		}
		line = sprintf("%-" (length(line) > at ? length(line) + 1 : at) "s%s", line, word[i])
	}
	print line
}

# What a comment says, read on to its end.
function comment(    text)
{
	if (!index($0, "/*"))
		return ""
	text = substr($0, index($0, "/*") + 2)
	while (!index(text, "*/") && (getline) > 0)
		text = text " " $0
	sub(/ *\*\/.*/, "", text)
	gsub(/[ \t]+/, " ", text)
	gsub(/\\/, "&&", text)
	return substr(text, 2)
}

# Of a constant, or as it stands there.
function number(text)
{
	gsub(/UINT(32|64)_C\(|\)|u$/, "", text)
	return text in value ? value[text] : text
}

FILENAME ~ /\.scd$/ {
	if ($1 == "@struct") {
		asked[$2]
		print "struct " $2
		print "offset size  field                meaning"
		for (i = 0; i < fields[$2]; i++)
			if (name[$2, i] != "head")
				fold(sprintf("%6d %4d  %s", offset[$2, i], size[$2, i], name[$2, i]),
				     meaning[$2, i], 34, 72)
	} else if ($1 == "@values") {
		for (i = 0; i < constants; i++)
			if (index(constant[i], $2) == 1)
				fold(sprintf("    %-22s %s", constant[i], value[constant[i]]),
				     says[constant[i]], 38, 72)
	} else if ($1 == "@events") {
		for (i = 0; i < events; i++)
			print event[i]
	} else {
		print
	}
	next
}

function define(key, is)
{
	if (key in value || key ~ /\(/)
		return
	constant[constants++] = key
	value[key] = is
	says[key] = comment()
}

/^#define NCI_[A-Z0-9_]+[ \t]+[^ \t\\]/ {
	define($2, number($3))
	next
}

# NCCL's states, which are numbers in its headers.
/^\tNCCL_[A-Z_]+[ \t]*= [0-9]+,/ {
	split($0, word, "[ \t]*[=,][ \t]*")
	sub(/^\t/, "", word[1])
	define(word[1], word[2])
	next
}

/^\tX\( *[0-9]+,/ {
	gsub(/X\(|[(),]/, " ")
	event[events++] = sprintf("    %4d  %-14s %5s  nci_ev_%s", $1, $2,
				  $4 == $5 ? $4 : $4 "-" $5, $3)
	next
}

/^struct nci_[a-z0-9_]+ \{/ {
	owner = $2
	at = 0
	next
}

/^};/ && owner != "" {
	bytes[owner] = at
	owner = ""
}

owner != "" && /^\t(NCI_|u?int|char|struct)/ {
	sub(/^\tNCI_ALIGNED\(NCI_LINE_BYTES\)/, "")
	if (!match($0, /[A-Za-z]/))
		next
	i = fields[owner]++
	line = $0
	sub(/;.*/, "", line)
	gsub(/NCI_ATOMIC\(|\)|struct |\t/, "", line)
	count = 1
	if (match(line, /\[[A-Z0-9_a-z]+\]/)) {
		count = number(substr(line, RSTART + 1, RLENGTH - 2))
		line = substr(line, 1, RSTART - 1)
	}
	if (line == "NCI_HEAD")
		line = "head head"
	split(line, word, " ")
	name[owner, i] = word[2]
	size[owner, i] = word[1] == "head" ? 40 : bytes[word[1]] * count
	offset[owner, i] = at
	at += size[owner, i]
	meaning[owner, i] = comment()
	list[all++] = owner SUBSEP i
}

END {
	for (i = 0; i < all; i++) {
		split(list[i], word, SUBSEP)
		is_last = !((word[1], word[2] + 1) in name)
		if (FILENAME ~ /\.scd$/) {
			if (is_last && word[2] > 0 && !(word[1] in asked)) {
				print "the page does not tell struct " word[1] >"/dev/stderr"
				exit 1
			}
			continue
		}
		printf "FIELD(%s, %s, %d, %d)\n", word[1],
			name[list[i]] == "head" ? "type" : name[list[i]], offset[list[i]], size[list[i]]
		if (is_last)
			printf "WHOLE(%s, %d)\n", word[1], bytes[word[1]]
	}
	for (i = 0; i < events && FILENAME !~ /\.scd$/; i++) {
		split(event[i], word)
		printf "EVENT(%d, %s, %d, %s)\n", word[1], word[2], substr(word[3], length(word[3])),
			word[4]
	}
}
