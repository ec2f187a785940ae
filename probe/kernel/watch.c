/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0) */
/*
 * The part of the probe that runs in the kernel.  It watches few threads among all that are
 * scheduled, so that the way of those that are not watched is short: three loads from one page
 * (hot), and no call but for the number of the CPU.
 *
 * A thread waits from its wake-up, or from when it was pushed from its CPU, until it runs.  The
 * CPU on whose queue it stands has it in its line meanwhile; at each switch there, the task that
 * ran until then is charged with the time.  Lines are written under the lock of that CPU's queue,
 * but for a thread that is moved: an entry may be lost then, and that wait is charged to nobody.
 *
 * Kernels are built in many ways: the structs here name what is read of them, and the loader
 * finds out where that is (CO-RE).
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include "probe/resent.h"
#include "probe/wire.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define FILTER		16384	/* bits */
#define CPUS		1024	/* waits on CPUs beyond are charged to nobody */
#define LINE		4	/* threads that wait for one CPU; more are charged to nobody */
#define MEMORY_MOST	32	/* more controllers than any kernel has */
#define IPV4		2	/* AF_INET */

#define KERNEL __attribute__((preserve_access_index))

struct thread_info {
	uint32_t cpu;
} KERNEL;

typedef struct {
	uint32_t val;
} kuid_t;

struct cred {
	kuid_t uid;
} KERNEL;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	uint32_t cpu;		/* before 5.16, on some machines */
	int32_t pid, tgid;
	char comm[16];
	const struct cred *cred;
	struct css_set *cgroups;
} KERNEL;

/* Linux before 5.14. */
struct task_struct___old {
	long state;
} KERNEL;

struct kernel_siginfo {
	int si_code;
} KERNEL;

struct kernfs_node {
	const char *name;
} KERNEL;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} KERNEL;

struct css_set {
	struct cgroup_subsys_state *subsys[1];
} KERNEL;

enum cgroup_subsys_id {
	memory_cgrp_id = 1,
};

struct file {
	const struct cred *f_cred;
} KERNEL;

struct socket {
	struct file *file;
} KERNEL;

struct in6_addr {
	uint32_t word[4];
} KERNEL;

struct sock_common {
	uint32_t skc_daddr;
	uint16_t skc_family;
	struct in6_addr skc_v6_daddr;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
} KERNEL;

struct sk_buff {
	char cb[1];
} KERNEL;

struct tcp_skb_cb {
	uint16_t tcp_gso_segs;
} KERNEL;

/* ---- what is shared with the program outside ------------------------------------- */

/* Each switch looks at this: on one page, as a miss of the TLB costs more than all else. */
struct {
	/* A bit is set where a thread or process with such a number, modulo FILTER, is watched. */
	unsigned long long filter[FILTER / 64];
	unsigned char waiting[CPUS];	/* entries in use in the line of that CPU */
} hot __attribute__((aligned(4096)));

unsigned long long lost;
unsigned int turn;	/* the half in which segments are counted now: 0 or 1 */

struct watched_thread {
	const struct cred *cred;	/* the one in `owners`; 0: none yet */
	uint64_t since_ns;	/* 0: it does not wait */
	uint64_t charged_ns;	/* the time until then has been charged */
	uint32_t cpu;
	struct probe_taker taker[PROBE_TAKERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROBE_THREADS);
	__type(key, int32_t);
	__type(value, struct watched_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROBE_PROCESSES);
	__type(key, int32_t);
	__type(value, uint32_t);
} processes SEC(".maps");

/* A process, by the credentials that all of its threads share, and no other process. */
struct cred_owner {
	int32_t pid;
	uint32_t uid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * PROBE_PROCESSES);
	__type(key, uint64_t);
	__type(value, struct cred_owner);
} owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RESENT_SUMS);
	__type(key, struct resent_key);
	__type(value, uint64_t);
} resent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

/* ---- threads that wait ------------------------------------------------------------ */

struct wait_line {
	int32_t tid[LINE];	/* 0: none */
};

static struct wait_line lines[CPUS] __attribute__((aligned(64)));

static inline __attribute__((always_inline)) bool filtered(int32_t number)
{
	uint32_t bit = (uint32_t)number % FILTER;

	return hot.filter[bit / 64] >> bit % 64 & 1;
}

static void line_add(uint32_t cpu, int32_t tid)
{
	struct wait_line *line;
	int free = -1;

	if (cpu >= CPUS)
		return;
	line = &lines[cpu];
	for (int i = 0; i < LINE; i++) {
		if (line->tid[i] == tid) {
			/* A charge at the time of its move did not count it. */
			if (!hot.waiting[cpu])
				hot.waiting[cpu] = 1;
			return;
		}
		if (!line->tid[i])
			free = i;
	}
	if (free < 0 || free >= LINE)
		return;
	line->tid[free] = tid;
	hot.waiting[cpu]++;
}

/*
 * A full table has all lose as much as the least has (Misra and Gries): times are told too
 * short rather than too long, and one that had more than a quarter of the wait is never lost.
 */
static void thread_charge(struct watched_thread *t, struct task_struct *ran, uint64_t now_ns)
{
	uint64_t ns = now_ns - t->charged_ns, least = ~0ull;
	int32_t pid = ran->tgid;
	int at = 0;

	t->charged_ns = now_ns;
	if (!pid)
		return;		/* idle: it waited for something else than this CPU */
	for (int i = 0; i < PROBE_TAKERS; i++) {
		if (t->taker[i].ns && t->taker[i].pid == pid) {
			t->taker[i].ns += ns;
			return;
		}
		if (t->taker[i].ns < least) {
			least = t->taker[i].ns;
			at = i;
		}
	}
	if (least > ns)
		least = ns;
	for (int i = 0; i < PROBE_TAKERS; i++)
		t->taker[i].ns -= least;
	if (ns == least || at >= PROBE_TAKERS)
		return;
	t->taker[at].ns = ns - least;
	t->taker[at].pid = pid;
	bpf_probe_read_kernel(t->taker[at].command, sizeof(t->taker[at].command), ran->comm);
}

/* Entries of threads that do not wait here any more go by the way. */
static void line_charge(uint32_t cpu, struct task_struct *ran, uint64_t now_ns)
{
	struct wait_line *line = &lines[cpu % CPUS];
	uint32_t n = 0;

	for (int i = 0; i < LINE; i++) {
		struct watched_thread *t;
		int32_t tid = line->tid[i];

		if (!tid)
			continue;
		t = bpf_map_lookup_elem(&threads, &tid);
		if (!t || !t->since_ns || t->cpu != cpu) {
			line->tid[i] = 0;
			continue;
		}
		n++;
		thread_charge(t, ran, now_ns);
	}
	hot.waiting[cpu % CPUS] = n;
}

static void thread_begin(struct watched_thread *t, int32_t tid, uint32_t cpu, uint64_t now_ns)
{
	for (int i = 0; i < PROBE_TAKERS; i++)
		t->taker[i].ns = 0;
	t->cpu = cpu;
	t->since_ns = t->charged_ns = now_ns;
	line_add(cpu, tid);
}

static struct probe_event *event_begin(uint32_t kind, int32_t number, uint64_t now_ns)
{
	struct probe_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->at_ns = now_ns;
	e->kind = kind;
	e->number = number;
	return e;
}

static void thread_tell(const struct watched_thread *t, int32_t tid, uint64_t now_ns)
{
	struct probe_event *e = event_begin(PROBE_WAIT, tid, now_ns);

	if (!e)
		return;
	e->wait_ns = now_ns - t->since_ns;
	for (int i = 0; i < PROBE_TAKERS; i++)
		if (t->taker[i].ns)
			e->taker[i] = t->taker[i];
	bpf_ringbuf_submit(e, 0);
}

static uint32_t task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (uint32_t)BPF_CORE_READ((struct task_struct___old *)task, state);
}

static uint32_t task_cpu(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return BPF_CORE_READ(task, thread_info.cpu);
	return BPF_CORE_READ(task, cpu);
}

/* Once for each thread, and again where its process becomes another user's. */
static void owner_learn(struct watched_thread *t, struct task_struct *task)
{
	uint64_t key = (uint64_t)task->cred;
	struct cred_owner owner = { .pid = task->tgid };

	t->cred = task->cred;
	owner.uid = BPF_CORE_READ(task, cred, uid.val);
	bpf_map_update_elem(&owners, &key, &owner, BPF_ANY);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	int32_t from = prev->pid, to = next->pid;
	bool waiting = cpu < CPUS && hot.waiting[cpu];
	struct watched_thread *t;
	uint64_t now_ns;

	if (!waiting && !filtered(from) && !filtered(to))
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (waiting)
		line_charge(cpu, prev, now_ns);
	t = filtered(to) ? bpf_map_lookup_elem(&threads, &to) : 0;
	if (t && t->since_ns) {
		if (now_ns - t->since_ns >= PROBE_WAIT_NS)
			thread_tell(t, to, now_ns);
		t->since_ns = 0;
	}
	t = filtered(from) ? bpf_map_lookup_elem(&threads, &from) : 0;
	if (t) {
		if (t->cred != prev->cred)
			owner_learn(t, prev);
		t->since_ns = 0;
		if (preempt || !task_state(prev))
			thread_begin(t, from, cpu, now_ns);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	int32_t tid = task->pid;
	struct watched_thread *t = filtered(tid) ? bpf_map_lookup_elem(&threads, &tid) : 0;

	if (t && !t->since_ns)
		thread_begin(t, tid, task_cpu(task), bpf_ktime_get_ns());
	return 0;
}

/* Time between the last switch and the move is charged to nobody. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_move, struct task_struct *task, int cpu)
{
	int32_t tid = task->pid;
	struct watched_thread *t = filtered(tid) ? bpf_map_lookup_elem(&threads, &tid) : 0;

	if (t && t->since_ns) {
		t->cpu = cpu;
		t->charged_ns = bpf_ktime_get_ns();
		line_add(cpu, tid);
	}
	return 0;
}

/* ---- processes that end ------------------------------------------------------------- */

#define BIT(n)		(1ull << (n))
#define SENT		0	/* SEND_SIG_NOINFO: by kill(2) of the task that runs */
#define DELIVERED	0	/* TRACE_SIGNAL_DELIVERED */
#define USER_CODES	0	/* si_code up to it: a process sent it */

/* Signals that end no process, or come by the hundred: ALRM, CHLD to TTOU, URG, VTALRM, ... */
#define QUIET (BIT(14) | BIT(17) | BIT(18) | BIT(19) | BIT(20) | BIT(21) | BIT(22) | BIT(23) | \
	       BIT(26) | BIT(27) | BIT(28) | BIT(29))

static int process_is_watched(int32_t pid)
{
	return filtered(pid) && bpf_map_lookup_elem(&processes, &pid);
}

SEC("raw_tp/signal_generate")
int on_signal(struct bpf_raw_tracepoint_args *ctx)
{
	uint64_t signal = ctx->args[0], info = ctx->args[1];
	struct task_struct *task = (void *)ctx->args[2];
	struct probe_event *e;
	int32_t pid;
	int code;

	if (signal > 31 || QUIET & BIT(signal) || ctx->args[4] != DELIVERED)
		return 0;
	pid = BPF_CORE_READ(task, tgid);
	e = process_is_watched(pid) ? event_begin(PROBE_SIGNAL, pid, bpf_ktime_get_ns()) : 0;
	if (!e)
		return 0;
	e->signal = (int32_t)signal;
	code = info > 1 ? BPF_CORE_READ((struct kernel_siginfo *)info, si_code) : info ? 1 : 0;
	if (info == SENT || code <= USER_CODES) {
		e->taker[0].pid = (int32_t)(bpf_get_current_pid_tgid() >> 32);
		bpf_get_current_comm(e->taker[0].command, sizeof(e->taker[0].command));
	}
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* The last part of the path of the group that its memory counts in. */
static void task_read_group(struct task_struct *task, char *to, uint32_t size)
{
	uint64_t id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	struct css_set *groups = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *state = 0;

	if (id >= MEMORY_MOST)
		return;
	bpf_probe_read_kernel(&state, sizeof(state), (char *)groups +
			      bpf_core_field_offset(struct css_set, subsys) + id * sizeof(state));
	bpf_probe_read_kernel_str(to, size, BPF_CORE_READ(state, cgroup, kn, name));
}

/* Its argument is the task; before Linux 6.9 it was its number, which no address is like. */
SEC("raw_tp/mark_victim")
int on_victim(struct bpf_raw_tracepoint_args *ctx)
{
	uint64_t victim = ctx->args[0];
	struct task_struct *task = victim >> 32 ? (void *)victim : 0;
	int32_t pid = task ? BPF_CORE_READ(task, tgid) : (int32_t)victim;
	struct probe_event *e;

	e = process_is_watched(pid) ? event_begin(PROBE_OOM, pid, bpf_ktime_get_ns()) : 0;
	if (!e)
		return 0;
	if (task)
		task_read_group(task, e->cgroup, sizeof(e->cgroup));
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* ---- segments that are sent again --------------------------------------------------- */

/*
 * A timer or an acknowledgement has them sent again, when any task runs.  The process that has
 * opened or accepted the socket is known by its file, which keeps the credentials of that time:
 * fork(2) makes new ones, threads share them.  Memory that was freed and is now another process's
 * credentials would mislead; it counts for nothing at least where that is another user's.
 */
static int32_t socket_owner(struct sock *sk)
{
	const struct cred *cred = BPF_CORE_READ(sk, sk_socket, file, f_cred);
	uint64_t key = (uint64_t)cred;
	struct cred_owner *owner = cred ? bpf_map_lookup_elem(&owners, &key) : 0;

	if (!owner || owner->uid != BPF_CORE_READ(cred, uid.val) || !process_is_watched(owner->pid))
		return 0;
	return owner->pid;
}

static void resent_key_set_address(struct resent_key *key, struct sock *sk)
{
	uint32_t v4 = BPF_CORE_READ(sk, __sk_common.skc_daddr);

	if (BPF_CORE_READ(sk, __sk_common.skc_family) == IPV4) {
		key->address[10] = key->address[11] = 0xff;
		__builtin_memcpy(&key->address[12], &v4, sizeof(v4));
	} else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		bpf_core_read(key->address, sizeof(key->address), &sk->__sk_common.skc_v6_daddr);
	}
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_resent, struct sock *sk, struct sk_buff *skb)
{
	struct resent_key key = { .pid = socket_owner(sk), .turn = turn };
	uint64_t none = 0, *sum;
	uint16_t segments = 0;

	if (!key.pid)
		return 0;
	resent_key_set_address(&key, sk);
	bpf_probe_read_kernel(&segments, sizeof(segments), (char *)skb +
			      bpf_core_field_offset(struct sk_buff, cb) +
			      bpf_core_field_offset(struct tcp_skb_cb, tcp_gso_segs));
	sum = bpf_map_lookup_elem(&resent, &key);
	if (!sum) {
		bpf_map_update_elem(&resent, &key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&resent, &key);
	}
	if (sum)
		__sync_fetch_and_add(sum, segments ? segments : 1);
	else
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

/* Helpers of tracing are for licences that the kernel takes for its own. */
char watch_license[] SEC("license") = "Dual BSD/GPL";
