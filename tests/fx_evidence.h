/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_EVIDENCE_H
#define TESTS_FX_EVIDENCE_H

/* The evidence of a finding has the members in schema/<kind>_evidence.schema, and no other. */

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "tests/fixture.h"

/* The object that a member is, or a list of; NULL: it is neither. */
static inline const char *fx_object_of(const json_t *member)
{
	const json_t *items = json_object_get(member, "items");
	const json_t *first = json_array_get(json_object_get(member, "anyOf"), 0);
	const char *ref = json_string_value(json_object_get(items ?: first ?: member, "$ref"));

	return ref ? strrchr(ref, '/') + 1 : NULL;
}

static inline bool fx_has_members(const json_t *defs, const char *name, const json_t *value)
{
	json_t *members = json_object_get(json_object_get(defs, name), "properties"), *member;
	const char *key;

	if (json_is_null(value))
		return true;
	if (json_object_size(members) != json_object_size(value))
		return false;
	json_object_foreach(members, key, member) {
		const json_t *inner = json_object_get(value, key);
		const char *object = fx_object_of(member);
		size_t n = json_is_array(inner) ? json_array_size(inner) : 1;

		if (!inner)
			return false;
		for (size_t i = 0; object && i < n; i++)
			if (!fx_has_members(defs, object, json_array_get(inner, i) ?: inner))
				return false;
	}
	return true;
}

static inline void fx_evidence_is_explained(const json_t *evidence)
{
	json_t *page = json_load_file("docs/schema/diagnose.json", 0, NULL), *defs, *def;
	bool fits = false;
	const char *name;

	ck_assert_msg(page, "tests are to be run in the sources' root");
	defs = json_object_get(page, "$defs");
	json_object_foreach(defs, name, def)
		if (strstr(name, "_evidence"))
			fits = fits || fx_has_members(defs, name, evidence);
	ck_assert_msg(fits, "not as in schema/<kind>_evidence.schema: %s", json_dumps(evidence, 0));
	json_decref(page);
}

#endif
