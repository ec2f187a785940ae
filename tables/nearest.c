/* SPDX-License-Identifier: Apache-2.0 */
/* A heap with the farthest row on top: a row that is no nearer costs one comparison. */
#include "tables/nearest.h"

#include <errno.h>
#include <stdlib.h>

int nearest_init(struct nearest *l, uint32_t room, size_t row_bytes)
{
	*l = (struct nearest){
		.rows = malloc(room * row_bytes),
		.row_bytes = row_bytes,
	};
	if (l->rows && list_init(l, room) == 0)
		return 0;
	nearest_deinit(l);
	return -ENOMEM;
}

void nearest_deinit(struct nearest *l)
{
	free(l->rows);
	list_deinit(l);
	*l = (struct nearest){ .rows = NULL };
}

static void nearest_swap(struct nearest *l, uint32_t a, uint32_t b)
{
	struct nearest_place place = l->at[a];

	l->at[a] = l->at[b];
	l->at[b] = place;
}

static void nearest_sift_up(struct nearest *l, uint32_t i)
{
	for (; i && l->at[(i - 1) / 2].apart < l->at[i].apart; i = (i - 1) / 2)
		nearest_swap(l, i, (i - 1) / 2);
}

static void nearest_sift_down(struct nearest *l, uint32_t i)
{
	for (;;) {
		uint32_t far = 2 * i + 1;

		if (far + 1 < l->n && l->at[far + 1].apart > l->at[far].apart)
			far++;
		if (far >= l->n || l->at[far].apart <= l->at[i].apart)
			return;
		nearest_swap(l, i, far);
		i = far;
	}
}

void *nearest_offer(struct nearest *l, uint64_t apart)
{
	struct nearest_place *place = list_add(l);
	uint32_t row;

	if (place) {
		row = l->n - 1;
		*place = (struct nearest_place){ apart, row };
		nearest_sift_up(l, row);
		return nearest_row(l, row);
	}
	l->left_out++;
	if (apart >= l->at[0].apart)
		return NULL;
	l->at[0].apart = apart;
	row = l->at[0].row;
	nearest_sift_down(l, 0);
	return nearest_row(l, row);
}
