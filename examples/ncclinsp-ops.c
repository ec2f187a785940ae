/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the operations of one NCCL process as they finish, and at its end what it left
 * unfinished: libncclinsp in 60 lines.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <ncclinsp/ncclinsp.h>

static const char *text(const char *name)
{
	return name ? name : "-";
}

static void print_operation(const struct ncclinsp_operation *op, void *arg)
{
	(void)arg;
	printf("%s rank %d/%d %s", text(op->comm_name), op->rank, op->nranks, text(op->func));
	if (op->seq != NCCLINSP_UNKNOWN)
		printf(" #%" PRIu64, op->seq);
	if (op->bytes != NCCLINSP_UNKNOWN)
		printf(" %" PRIu64 " bytes", op->bytes);
	if (op->exec_ns != NCCLINSP_UNKNOWN)
		printf(" %.1f us by %s", (double)op->exec_ns * 1e-3, text(op->timing_source));
	puts(op->complete ? "" : " unfinished");
}

static void print_inflight(const struct ncclinsp_inflight *row, void *arg)
{
	(void)arg;
	printf("in flight: %s rank %d %s %s %s\n", text(row->comm_name), row->rank,
	       row->event_type, text(row->func), text(row->state));
}

int main(int argc, char **argv)
{
	struct ncclinsp *reader;
	int r;

	if (argc != 2)
		errx(2, "usage: ncclinsp-ops SEGMENT");
	r = ncclinsp_open(&reader, argv[1]);
	if (r < 0)
		errx(1, "%s: %s", argv[1], ncclinsp_reason(r));
	ncclinsp_on_operation(reader, print_operation, NULL);
	while ((r = ncclinsp_poll(reader)) > 0) {
		fflush(stdout);
		nanosleep(&(struct timespec){ .tv_nsec = (long)ncclinsp_wait_ns(reader) }, NULL);
	}
	if (r < 0)
		errx(1, "%s: %s", argv[1], ncclinsp_reason(r));
	ncclinsp_inflight(reader, print_inflight, NULL);
	printf("pid %d %s\n", ncclinsp_process(reader)->pid, ncclinsp_process(reader)->state_text);
	ncclinsp_close(reader);
	return 0;
}
