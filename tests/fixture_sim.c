/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture_sim.h"

#include <check.h>

#include "tests/sim/player.h"
#include "tests/sim/probe.h"

struct scenario *fx_scenario(const char *text)
{
	struct scenario *scn;
	char err[256];

	ck_assert_msg(!scenario_parse(&scn, "test", text, err, sizeof(err)), "%s", err);
	return scn;
}

int fx_play_version(const char *text, int version)
{
	struct scenario *scn = fx_scenario(text);
	struct player_plugin plugin = { probe_table(version), version };
	struct pace pace = { .factor = scn->pace > 1 ? scn->pace : 0, .base_ns = pace_now() };
	int r;

	scn->hold_ns = 0;
	r = player_run(scn, 0, &plugin, &pace, &PLAYER_ALONE);
	scenario_free(scn);
	return r;
}

void fx_play(const char *text, int mask)
{
	probe_reset(mask, 0);
	ck_assert_int_eq(fx_play_version(text, 6), 0);
}
