/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture_daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/clock.h"
#include "tests/fixture.h"
#include "util/log.h"

/* Not check's: the benchmarks stand on this too. */
static void must_be(bool true_here, const char *what)
{
	if (true_here)
		return;
	fprintf(stderr, "fixture: %s\n", what);
	abort();
}

#define must(condition) must_be(condition, #condition)

/* ---- the daemon ------------------------------------------------------------ */

static void on_event(void *arg, struct process *p, const struct event *event, uint64_t now_ns)
{
	struct fx_seen *seen = &((struct fx_daemon *)arg)->seen;
	uint64_t n = event->rec->parent, *next = &seen->next[nci_token_lane(event->rec->token)];

	(void)p;
	(void)now_ns;
	seen->events++;
	seen->disorder += n < *next;
	*next = n + 1;
	seen->last_parent = n;
}

static void on_appeared(void *arg, struct process *p, uint64_t now_ns)
{
	(void)p;
	(void)now_ns;
	((struct fx_daemon *)arg)->seen.appeared++;
}

static void on_ended(void *arg, struct process *p, uint64_t now_ns)
{
	struct fx_seen *seen = &((struct fx_daemon *)arg)->seen;

	(void)now_ns;
	seen->ended++;
	seen->last_state = p->state;
	seen->last_in_flight = p->nlast_slots;
	seen->events_at_end = seen->events;
}

static void on_forgotten(void *arg, struct process *p)
{
	(void)p;
	((struct fx_daemon *)arg)->seen.forgotten++;
}

void fx_daemon_open_with(struct fx_daemon *fx, struct discover_config config)
{
	const struct discover_hooks hooks = { on_appeared, on_ended, on_forgotten, fx };
	struct ticks_pair pair;

	memset(fx, 0, sizeof(*fx));
	log_set_level(LOG_ERROR);
	snprintf(fx->dir, sizeof(fx->dir), "%s/shm", fx_tmpdir());
	mkdir(fx->dir, 0755);
	must(loop_new(&fx->loop) == 0);
	ticks_init(&fx->ticks, ticks_hardware());
	for (int i = 0; i < 2; i++) {
		ticks_read(fx->ticks.clock.kind, &pair);
		ticks_observe(&fx->ticks, &pair);
	}
	must(names_new(&fx->names, NAMES_DEFAULT) == 0);
	must(drain_new(&fx->drain, &fx->ticks.clock, on_event, fx) == 0);
	fx->now_ns = loop_clock_ns();
	config.dir = fx->dir;
	must(discover_new(&fx->discover, fx->loop, fx->drain, fx->names, &config, &hooks,
			  fx->now_ns) == 0);
}

void fx_daemon_open(struct fx_daemon *fx)
{
	fx_daemon_open_with(fx, (struct discover_config){
		.everybody = true,
		.max_segments = 16,
		.max_ended = 4,
		.keep_ns = UINT64_C(60000000000),
	});
}

void fx_daemon_open_job(struct fx_daemon *fx, struct fx_job *job)
{
	fx_daemon_open(fx);
	fx_job_open(&job->ring, fx->dir, job->name);
	job->lane = shmring_lane_new(&job->ring, gettid());
	fx_daemon_step(fx, 3000);
	must(fx->seen.appeared == 1);
}

void fx_daemon_close(struct fx_daemon *fx)
{
	discover_free(fx->discover);
	drain_free(fx->drain);
	names_free(fx->names);
	loop_free(fx->loop);
}

const char *fx_shm_path(const struct fx_daemon *fx, const char *name, char path[FX_PATH])
{
	snprintf(path, FX_PATH, "%s/%s", fx->dir, name);
	return path;
}

void fx_daemon_step(struct fx_daemon *fx, uint64_t ms)
{
	fx->now_ns += ms * 1000000;
	discover_look(fx->discover, fx->now_ns);
	drain_poll(fx->drain, fx->now_ns);
}

struct process *fx_process(const struct fx_daemon *fx, size_t i)
{
	struct process *const *list;

	return i < discover_processes(fx->discover, &list) ? list[i] : NULL;
}

/* ---- jobs ------------------------------------------------------------------ */

static unsigned long long start_time(pid_t pid)
{
	unsigned long long start = 0;
	char path[64], text[1024];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	must(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	must(sscanf(strrchr(text, ')') + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		    " %*s %*s %*s %*s %*s %*s %*s %llu", &start) == 1);
	return start;
}

static void job_name(char name[80], uid_t uid, pid_t pid)
{
	snprintf(name, 80, NCI_FILE_PREFIX "%u.%d.%llu", (unsigned)uid, (int)pid,
		 start_time(pid));
}

void fx_job_name(char name[80], pid_t pid)
{
	job_name(name, geteuid(), pid);
}

void fx_job_open(struct shmring *ring, const char *dir, char name[80])
{
	struct nci_header *h;

	fx_job_name(name, getpid());
	must(shmring_create(ring, dir, name) == 0);
	h = ring->header;
	h->pid = (uint32_t)getpid();
	h->uid = geteuid();
	h->start_time = start_time(getpid());
	h->nonce = 1 + (uint32_t)getpid();
	h->instance = (uint64_t)getpid() << 32 | 7;
	h->clock = ticks_hardware();
	clock_anchor(h->clock, &h->anchor);
	strcpy(h->command, "job");
	strcpy(h->plugin_version, "0.0");
	atomic_store_explicit(&ring->live->api_version, 5, memory_order_relaxed);
	atomic_store_explicit(&ring->live->level, NCI_LEVEL_TRACE, memory_order_relaxed);
	shmring_ready(ring);
}

static void fill(struct nci_record *rec, uint8_t type, uint8_t lines, uint64_t n)
{
	memset(rec, 0, (size_t)lines * NCI_LINE_BYTES);
	rec->type = type;
	rec->form = lines;
	rec->comm = NCI_COMM_NONE;
	rec->parent = n;
	rec->start = clock_ticks(ticks_hardware());
	if (lines == 2)
		((struct nci_line *)rec)[1].word[0] = NCI_LINE_CONT;
}

static void publish(struct shmring_lane *lane, uint8_t type, uint8_t lines, uint64_t n)
{
	struct nci_slot slot;
	struct nci_record *rec = (struct nci_record *)&slot;

	fill(rec, type, lines, n);
	rec->token = nci_token(lane->index, 0, n + 1);
	shmring_publish(lane, rec, rec->start + 1);
}

void fx_job_publish(struct shmring_lane *lane, uint64_t n)
{
	publish(lane, NCI_EV_PROXY_STEP, 1, n);
}

void fx_job_publish_range(struct shmring_lane *lane, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++)
		fx_job_publish(lane, n);
}

void fx_job_publish_some(struct shmring *ring, struct shmring_lane *lane)
{
	(void)ring;
	fx_job_publish_range(lane, 0, FX_SOME);
}

void fx_job_publish_coll(struct shmring_lane *lane, uint64_t n)
{
	publish(lane, NCI_EV_COLL, 2, n);
}

uint64_t fx_job_start(struct shmring_lane *lane, uint64_t n)
{
	uint64_t token;
	struct nci_record *rec = shmring_take(lane, &token);

	must(rec);
	fill((struct nci_record *)rec, NCI_EV_PROXY_STEP, 1, n);
	shmring_open(rec, token);
	return token;
}

pid_t fx_job_fork_as(uid_t uid, const char *dir, fx_work *work, char name[80])
{
	pid_t pid;
	int status;

	if (uid != geteuid())
		must(chmod(fx_tmpdir(), 0711) == 0 && chmod(dir, 01777) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		static struct shmring ring;
		struct shmring_lane *lane;

		must(setresuid(uid, uid, uid) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);	/* stopped, it would stay for ever */
		fx_job_open(&ring, dir, name);
		lane = shmring_lane_new(&ring, gettid());
		work(&ring, lane);
		raise(SIGSTOP);
		_exit(0);
	}
	must(waitpid(pid, &status, WUNTRACED) == pid);
	must(WIFSTOPPED(status));
	job_name(name, uid, pid);
	return pid;
}

pid_t fx_job_fork(const char *dir, fx_work *work, char name[80])
{
	return fx_job_fork_as(geteuid(), dir, work, name);
}

void fx_job_kill(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	must(waitpid(pid, &status, 0) == pid);
}
