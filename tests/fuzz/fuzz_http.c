/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends, to the whole server: heads, queries, bodies, one request behind the
 * other, in pieces of any size.  The server comes to rest, what it refuses it refuses in the
 * documented form, and when the client is gone nothing of it is left.
 *
 * Input: a byte of bits (another user; pieces; time between them), then what is sent.
 */
#include "tests/fuzz/unchecked.h"

#include "tests/fixture_serve.h"
#include "util/log.h"

#define OTHER_UID	54321
#define RUNS		1024	/* of one server */

enum { AS_OTHER = 1, IN_PIECES = 2, SLOWLY = 4 };

/* ---- what it knows ----------------------------------------------------------------- */

static void add_operation(const struct process *p, uint64_t seq)
{
	const struct nci_ev_proxy_op moved = { .rank = p->comms[0].rank, .peer = 1, .bytes = 4096 };
	const struct transfers t = { .issuer = (struct process *)(uintptr_t)p,
				     .executor = (struct process *)(uintptr_t)p, .op = &moved };
	struct op op = {
		.process_id = p->id, .pid = p->pid, .uid = p->uid, .rank = p->comms[0].rank,
		.func = FX_FUNC, .seq = seq, .bytes = 8 << seq % 8, .exec_ns = 1000 + seq,
		.sampled = true, .source = TIMING_KERNEL_GPU, .has_comm_id = true,
		.comm_id = FX_COMM_ID, .nranks = 8,
	};

	oplog_add(fx.oplog, &op);
	aggregate_add(fx.aggregate, &op, fx.now_ns);
	links_add(fx.links, &t, fx.now_ns);
}

static void open_server(void)
{
	log_set_level(LOG_ERROR);
	fx_has_snapshots = true;
	fx_serve_open(&(struct serve_config){ .group = "tty" });
	for (int i = 0; i < 3; i++) {
		struct process *p = fx_process(100 + i, i < 2 ? 0 : OTHER_UID, i);

		for (uint64_t seq = 0; seq < 4; seq++)
			add_operation(p, seq);
	}
	fx_post(fx.processes[0], 41, 0x5001, 1000);
}

static void renew_server(void)
{
	static unsigned runs;

	if (runs++ % RUNS)
		return;
	if (runs > 1)
		fx_serve_close();
	else
		atexit(fx_serve_close);	/* what is left is found there, not called lost */
	open_server();
}

/* ---- the client -------------------------------------------------------------------- */

static void check_answer(const char *answer, bool may_have_no_body)
{
	int status = fx_status(answer);

	for (const char *at = answer; *at; at++)
		demand((unsigned char)*at >= ' ' || strchr("\r\n\t", *at));
	if (!*answer || !strncmp(answer, "HTTP/1.1 100 ", 13))
		return;
	demand(status == 200 || (status >= 400 && status < 600));
	demand(strstr(answer, "\r\nContent-Type: ") && strstr(answer, "\r\n\r\n"));
	if (status >= 400 && !may_have_no_body)
		demand(strstr(answer, "\r\n\r\n{\"error\":{\"code\":\""));
}

static void send_all(int fd, const char *bytes, size_t size, uint8_t how)
{
	size_t piece = how & IN_PIECES ? 1u + how / 8 % 32 : size;

	while (size) {
		size_t n = size < piece ? size : piece;

		fx_send(fd, bytes, n);
		bytes += n;
		size -= n;
		if (how & SLOWLY)
			fx_pass(FX_SECOND / 64);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data + 1;
	bool other = size && data[0] & AS_OTHER && geteuid() == 0;
	char *answer;
	int fd;

	if (!size)
		return 0;
	renew_server();
	fx.snapshot = size % 2 ? 0 : -ENOSPC;
	fd = other ? fx_connect_as(OTHER_UID, OTHER_UID) : fx_connect();
	send_all(fd, bytes, size - 1, data[0]);
	fx_pass(FX_SECOND / 10);	/* it may wait for a snapshot */
	answer = fx_receive(fd, NULL);
	check_answer(answer, memmem(bytes, size - 1, "HEAD", 4));
	free(answer);
	close(fd);
	fx_pass(2 * FX_SECOND);
	demand(serve_timeout_ns(fx.serve, fx.now_ns) == UINT64_MAX);
	return 0;
}
