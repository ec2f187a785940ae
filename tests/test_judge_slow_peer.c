/* SPDX-License-Identifier: Apache-2.0 */
/* Links that are slower than others, in rows that are made up. */
#include <string.h>

#include "judge/slow_peer.h"
#include "tests/fixture.h"

#define MS	UINT64_C(1000000)
#define WINDOW	(1000 * MS)
#define RANKS	4

static struct slow_links links, none;
static struct slow_peer slow[SLOW_PEERS];
static char text[1024];
static char host[RANKS][8] = { "node0", "node1", "node2", "node3" };

static void add(uint64_t comm, int32_t from, int32_t to, uint64_t bytes, uint64_t busy_ns)
{
	struct slow_link *l = list_append(&links);

	ck_assert_ptr_nonnull(l);
	*l = (struct slow_link){
		.link = links.n, .comm = comm, .row = from, .column = to, .user = 7,
		.process = (uint64_t)from, .job = 1, .has_comm_id = true, .comm_id = comm,
		.comm_name = "dp", .nranks = RANKS, .rank = from, .peer = to,
		.host = host[from],
		.bytes = bytes, .steps = 100, .busy_ns = busy_ns,
	};
}

static struct whom whom_of(int32_t rank)
{
	return (struct whom){ .rank = rank, .world_rank = 4 + rank, .pid = 100 + rank,
			      .host = host[rank], .pci_bus_id = "0000:3b:00.0",
			      .gpu_index = rank == 3 ? UNKNOWN_I32 : rank };
}

/* A ring over four nodes, one link of each, whose link from rank 2 takes so many times. */
static void setup(void)
{
	for (int32_t r = 0; r < RANKS; r++)
		add(9, r, (r + 1) % RANKS, 100 << 20, r == 2 ? 300 * MS : 100 * MS);
}

static void teardown(void)
{
	list_deinit(&links);
}

static int find(enum slow_peer_aspect aspect)
{
	struct slow_links since;
	int n;

	slow_links_since(&links, &none, &since);
	ck_assert_uint_eq(slow_links_group_end(&since, 0), since.n);
	n = slow_peer_find(since.at, since.n, aspect, false, WINDOW, slow);
	for (int i = 0; i < n; i++) {	/* the rows go */
		slow[i].worst = &links.at[slow[i].worst->link - 1];
		slow[i].from = whom_of(slow[i].from.rank);
		slow[i].to = whom_of(slow[i].to.rank);
	}
	list_deinit(&since);
	return n;
}

TEST(slow_link_of_a_ring_is_named_with_its_ends_and_their_nodes)
{
	ck_assert_int_eq(find(SLOW_PEER_WIRE), 1);
	ck_assert_int_eq(slow[0].verdict, VERDICT_LINK);
	ck_assert(slow[0].begins);
	ck_assert_double_eq_tol(slow[0].share, 0.2, 1e-9);
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_str_eq(text, "the link from rank 2 of dp (global rank 6, pid 102, node2, GPU "
			 "2) to rank 3 of dp (global rank 7, pid 103, node3, GPU "
			 "0000:3b:00.0) is slow: a byte takes 3.0 times as long as on the other "
			 "links of dp seen here (0.35 against 1.05 GB/s), which takes 20 % of the "
			 "time. Neither has another link here to compare with: the cause may be "
			 "the path, the sender's side or the receiver's side. Check that path: "
			 "port counters, cable, switch, congestion.");
	slow[0].nic = (struct nic_cause){ .nic = { .name = "mlx5_0 port 1" }, .fault = NIC_DOWN,
					  .since = "12:03:10" };
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, ". On this node, mlx5_0 port 1 is down since 12:03:10. "
				     "Check that path"));
}

TEST(queue_pair_whose_path_is_bad_is_named_instead_of_the_ends)
{
	const char *told = "20 % of the time. Its queue pair 279 (channel 2, NIC 1) takes 7.9 "
			   "times as long as the median of all 16 to that rank. Check the "
			   "path that the network chose for it (ECMP), and the NIC of its channel";

	ck_assert_int_eq(find(SLOW_PEER_WIRE), 1);
	slow[0].queue = (struct slow_peer_queue){ .load = { .others = 15, .ratio = 7.9 },
						  .number = 279, .channel = 2, .nic = 1 };
	slow[0].away = 0.1;	/* of a thread, which serves them all */
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, told));
	ck_assert_ptr_null(strstr(text, "CPU"));
	ck_assert_ptr_null(strstr(text, "that path"));
	slow[0].queue.is_socket = true;
	slow[0].queue.nic = UNKNOWN_I32;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "Its socket 279 (channel 2) takes"));
}

TEST(segments_that_tcp_sent_again_are_told_where_they_are_many)
{
	const char *again = "TCP segments from the sending process to 10.0.0.2 were sent again in "
			    "the last 20 s. Check that path";

	ck_assert_int_eq(find(SLOW_PEER_WIRE), 1);
	ck_assert_uint_eq(slow[0].resent.segments, UNKNOWN_U64);
	slow[0].resent = (struct slow_peer_resent){ .segments = 412, .window_ns = 20 * WINDOW,
						    .to = "10.0.0.2" };
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, ". 412 TCP segments from "));
	ck_assert_ptr_nonnull(strstr(text, again));
	slow[0].resent.segments = 140;		/* of 1.45 million */
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "TCP"));
	links.at[2].bytes = 1;
	slow[0].resent.segments = 9;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "TCP"));
	slow[0].resent.segments = 10;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, again));
	slow[0].aspect = SLOW_PEER_ROOM;	/* the receiver's, not the network's */
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "TCP"));
}

TEST(end_whose_links_are_all_slow_is_named_instead_of_them)
{
	for (int32_t r = 0; r < RANKS; r++)
		add(9, r, (r + 2) % RANKS, 100 << 20, r == 2 ? 300 * MS : 100 * MS);
	ck_assert_int_eq(find(SLOW_PEER_WIRE), 1);
	ck_assert_int_eq(slow[0].verdict, VERDICT_SEND_SIDE);
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_eq(strstr(text, "all that rank 2 of dp (global rank 6, pid 102, node2, GPU "
				"2) sends is slow"), text);
	slow[0].hot.where = DELAY_RECEIVE_SIDE;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "all that is sent to rank "));
	slow[0].hot.where = DELAY_CHANNEL;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_eq(strstr(text, "channel 0 from rank 2 of dp (global rank 6, "), text);
}

TEST(link_may_go_on_with_less_than_it_begins_with)
{
	links.at[2].busy_ns = 140 * MS;		/* 1.4 times */
	ck_assert_int_eq(find(SLOW_PEER_WIRE), 1);
	ck_assert(!slow[0].begins);
	ck_assert(slow_peer_is_explained(&slow[0], slow[0].share / 2.5, 0));
	ck_assert(!slow_peer_is_explained(&slow[0], slow[0].share / 4, 0));
	links.at[2].busy_ns = 120 * MS;
	ck_assert_int_eq(find(SLOW_PEER_WIRE), 0);
}

TEST(no_cable_is_blamed_where_a_cpu_is_short)
{
	double shares[] = { 0.12, 0, 0.12, 0 }, all[] = { 0.12, 0.1, 0.11, 0.14 };

	ck_assert_int_eq(find(SLOW_PEER_WIRE), 1);
	ck_assert(slow_peer_is_explained(&slow[0], 0.12, slow_links_usual_away(shares, RANKS)));
	ck_assert(!slow_peer_is_explained(&slow[0], 0.14, slow_links_usual_away(all, RANKS)));
	slow[0].away = 0.14;
	slow[0].away_rank = 3;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, ". The progress thread of rank 3 got no CPU for 14 % of "
				     "the time, which makes transfers look slow: give it a CPU, "
				     "then look again"));
	ck_assert_ptr_null(strstr(text, "cable"));
	slow[0].away = 0.005;
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "cable"));
}

TEST(waiting_for_room_is_the_receivers)
{
	links.at[2].busy_ns = 100 * MS;
	links.at[2].held_ns = 200 * MS;
	ck_assert_int_eq(find(SLOW_PEER_WIRE), 0);
	ck_assert_int_eq(find(SLOW_PEER_ROOM), 1);
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "GPU 0000:3b:00.0) waits for room at the receiver"));
}

TEST(only_like_is_compared_with_like)
{
	struct slow_links since, siblings;

	links.at[0].steps = 19;			/* too few */
	links.at[2].bytes = 30 << 20;		/* another size of transfers */
	slow_links_since(&links, &none, &since);
	ck_assert_uint_eq(since.n, 3);
	ck_assert_uint_eq(slow_links_group_end(&since, 0) == 2 ? 3 :
			  slow_links_group_end(&since, 1), 3);
	slow_links_siblings(&since, &siblings);
	ck_assert_uint_eq(siblings.n, 0);	/* nobody is of another communicator */
	list_deinit(&siblings);
	list_deinit(&since);
}

TEST(links_that_are_alone_are_compared_with_those_of_the_same_job)
{
	struct slow_links since, siblings;

	links.n = 0;
	for (uint64_t comm = 1; comm <= 4; comm++)
		add(comm, 0, 1, 100 << 20, comm == 2 ? 300 * MS : 100 * MS);
	links.at[3].job = 2;
	slow_links_since(&links, &none, &since);
	slow_links_siblings(&since, &siblings);
	ck_assert_uint_eq(siblings.n, 3);
	ck_assert_uint_eq(slow_links_group_end(&siblings, 0), 3);
	ck_assert_int_eq(slow_peer_find(siblings.at, 3, SLOW_PEER_WIRE, true, WINDOW, slow), 1);
	ck_assert_uint_eq(slow[0].worst->comm, 2);
	ck_assert_int_eq(slow[0].verdict, VERDICT_LINK);
	slow_peer_say(&slow[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "the links of other communicators like dp seen here"));
	list_deinit(&siblings);
	list_deinit(&since);
}

TEST(work_is_what_was_done_since)
{
	struct slow_links before, since;

	ck_assert_int_eq(list_init(&before, RANKS), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		*list_must_add(&before) = links.at[i];
	links.at[2].busy_ns += 50 * MS;
	links.at[2].bytes += 1 << 20;
	links.at[2].steps += 20;
	links.at[3].steps = 99;			/* less than before: it has begun anew */
	slow_links_since(&links, &before, &since);
	ck_assert_uint_eq(since.n, 2);
	for (uint32_t i = 0; i < since.n; i++)
		ck_assert_uint_eq(since.at[i].steps, since.at[i].rank == 2 ? 20 : 99);
	list_deinit(&before);
	list_deinit(&since);
}

int main(void)
{
	return fx_run(setup, teardown);
}
