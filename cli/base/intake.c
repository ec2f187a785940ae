/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON holds any number of 64 bits, any double and any character.  Columns add, subtract,
 * convert and print what they are given; here it is made sure, once, that they may.
 */
#include "cli/base/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/must.h"
#include "util/utf8.h"

int intake_open(int dir, const char *path, size_t *bytes, const char **why)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	*why = strerror(errno);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		*why = "not a regular file";
		close(fd);
		fd = -1;
	}
	if (fd >= 0 && bytes)
		*bytes = (size_t)st.st_size;
	return fd;
}

static void intake_bound_number(json_t *value)
{
	const double most = (double)INTAKE_MOST;

	if (json_is_integer(value)) {
		json_int_t n = json_integer_value(value);

		if (n > INTAKE_MOST || n < -INTAKE_MOST)
			json_integer_set(value, n < 0 ? -INTAKE_MOST : INTAKE_MOST);
	} else if (json_is_real(value)) {
		double n = json_real_value(value);

		if (n > most || n < -most)
			json_real_set(value, n < 0 ? -most : most);
	}
}

static bool text_is_plain(const char *text)
{
	while (*text >= ' ' && *text < 0x7f)
		text++;
	return !*text;
}

/* A copy that is safe, or NULL: it is already. */
static char *text_make_safe(const char *text)
{
	size_t bytes = strlen(text);
	char *safe;

	if (text_is_plain(text))
		return NULL;
	safe = must(strdup(text));
	utf8_clean(safe, bytes);
	if (memcmp(safe, text, bytes))
		return safe;
	free(safe);
	return NULL;
}

static void intake_clean_string(json_t *value)
{
	char *safe = text_make_safe(json_string_value(value));

	if (safe)
		json_string_set(value, safe);
	free(safe);
}

static void intake_clean_key(json_t *object, const char *key, json_t *member)
{
	char *safe = text_make_safe(key);

	if (safe) {
		json_object_set(object, safe, member);
		json_object_del(object, key);
	}
	free(safe);
}

static void intake_clean_value(json_t *value)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;

	intake_bound_number(value);
	if (json_is_string(value))
		intake_clean_string(value);
	json_object_foreach_safe(value, next, key, member) {
		intake_clean_value(member);
		intake_clean_key(value, key, member);
	}
	json_array_foreach(value, i, member)
		intake_clean_value(member);
}

#define PLAIN_DIGITS	17	/* digits of a number: all of these are below INTAKE_MOST */

/*
 * Is there nothing to clean, as in nearly all answers?  Then all characters are plain, none is
 * escaped, and outside of strings no number is long or has an exponent.
 */
static bool intake_is_plain(const char *text, size_t bytes)
{
	bool inside = false;
	size_t digits = 0;

	for (size_t i = 0; i < bytes; i++) {
		char c = text[i];

		if ((c < ' ' && c != '\n') || c >= 0x7f || c == '\\')
			return false;
		if (c == '"')
			inside = !inside;
		digits = !inside && c >= '0' && c <= '9' ? digits + 1 : 0;
		if (digits > PLAIN_DIGITS)
			return false;
		if (!inside && (c == 'E' || (c == 'e' && i && text[i - 1] <= '9')))
			return false;
	}
	return true;
}

json_t *intake_read(const char *text, size_t bytes, json_error_t *error)
{
	json_t *root = json_loadb(text, bytes, 0, error);

	if (root && !intake_is_plain(text, bytes))
		intake_clean_value(root);
	return root;
}

static bool key_is_mono(const char *key)
{
	static const char end[] = "_mono_ns";
	size_t n = strlen(key);

	return n >= sizeof(end) && !strcmp(key + n - (sizeof(end) - 1), end);
}

void intake_move_times(json_t *value, int64_t by_ns)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;

	if (!by_ns)
		return;
	json_array_foreach(value, i, member)
		intake_move_times(member, by_ns);
	json_object_foreach_safe(value, next, key, member) {
		json_int_t at_ns;
		bool is_told = !__builtin_add_overflow(json_integer_value(member), by_ns, &at_ns) &&
			       at_ns > 0;

		if (json_is_integer(member) && key_is_mono(key))
			json_object_set_new(value, key,
					    is_told ? json_integer(at_ns) : json_null());
		else
			intake_move_times(member, by_ns);
	}
}
