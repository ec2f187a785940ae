/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers say, over a state made by hand. */
#include <check.h>

#include "tests/fixture_serve.h"

static void set_env(struct process *p, const char *pairs, size_t bytes)
{
	memcpy(p->env, pairs, bytes);
	p->env_bytes = (uint32_t)bytes;
}

static void setup(void)
{
	fx_serve_open(NULL);
}

TEST(status_tells_who_answers_and_since_when)
{
	json_t *a;

	fx.ingest = (struct serve_ingest){
		.records = 12, .bytes = 768, .lost = 2, .before = 5, .rejected = 1, .segments = 3,
		.poll_interval_ns = 100000000,
	};
	fx_pass(3 * FX_SECOND);
	a = fx_get("/v1/status", 200);
	ck_assert_str_eq(fx_text(a, "version"), NCCLINSP_VERSION);
	ck_assert_str_eq(fx_text(a, "host"), "node \"7\"");
	ck_assert_str_eq(fx_text(a, "boot_id"), "4c1b3c9a-0000-4000-8000-000000000001");
	ck_assert_str_eq(fx_text(a, "loop"), "epoll");
	ck_assert_uint_eq(fx_number(a, "uptime_ns"), 3 * FX_SECOND);
	ck_assert_str_eq(fx_text(a, "started_at"), "2023-11-14T22:13:20.000000000Z");
	ck_assert_uint_eq(fx_number(a, "started_mono_ns"), FX_START_NS);
	ck_assert_uint_eq(fx_number(a, "ingest.records"), 12);
	ck_assert_uint_eq(fx_number(a, "ingest.bytes"), 768);
	ck_assert_uint_eq(fx_number(a, "ingest.lost"), 2);
	ck_assert_uint_eq(fx_number(a, "ingest.before"), 5);
	ck_assert_uint_eq(fx_number(a, "ingest.rejected"), 1);
	ck_assert_uint_eq(fx_number(a, "ingest.segments"), 3);
	ck_assert_uint_eq(fx_number(a, "ingest.poll_interval_ns"), 100000000);
	ck_assert_uint_gt(fx_number(a, "rss_bytes"), 0);
	ck_assert_uint_gt(fx_number(a, "cpu_ns"), 0);
	ck_assert(json_is_null(fx_at(a, "level")));
	ck_assert(json_is_null(fx_at(a, "sampling")));
	ck_assert_uint_eq(json_array_size(fx_at(a, "exporters")), 0);
	json_decref(a);
}

TEST(status_tells_the_level_that_all_live_processes_agree_on)
{
	struct process *ended = fx_process(1, 0, 0), *silent = fx_process(2, 0, 0);
	struct process *other;
	json_t *a;

	ended->state = PROCESS_EXITED;
	ended->level = NCI_LEVEL_OPS;
	silent->api_version = 0;
	fx_process(3, 0, 0);
	other = fx_process(4, 0, 0);
	a = fx_get("/v1/status", 200);
	ck_assert_str_eq(fx_text(a, "level"), "net");
	ck_assert_str_eq(fx_text(a, "sampling"), "all");
	json_decref(a);
	other->level = NCI_LEVEL_OPS;
	other->mask = 0;
	a = fx_get("/v1/status", 200);
	ck_assert(json_is_null(fx_at(a, "level")));
	ck_assert(json_is_null(fx_at(a, "sampling")));
	json_decref(a);
}

TEST(processes_show_every_promised_field)
{
	struct process *p = fx_process(4711, 0, 0);
	json_t *a;

	p->last_record_ns = FX_START_NS + 1;
	a = fx_get("/v1/processes", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "processes")), 1);
	ck_assert_uint_eq(fx_number(a, "processes.0.pid"), 4711);
	ck_assert_uint_eq(fx_number(a, "processes.0.uid"), 0);
	ck_assert_str_eq(fx_text(a, "processes.0.user"), "root");
	ck_assert_str_eq(fx_text(a, "processes.0.command"), "train\xef\xbf\xbd.py");
	ck_assert_str_eq(fx_text(a, "processes.0.state"), "live");
	ck_assert_str_eq(fx_text(a, "processes.0.segment"), "ncclinsp.0.4711.77");
	ck_assert_uint_eq(fx_number(a, "processes.0.api_version"), 6);
	ck_assert_str_eq(fx_text(a, "processes.0.plugin_version"), "0.1.0");
	ck_assert_str_eq(fx_text(a, "processes.0.level"), "net");
	ck_assert(json_is_null(fx_at(a, "processes.0.level_reason")));
	ck_assert_str_eq(fx_text(a, "processes.0.sampling"), "all");
	ck_assert_uint_eq(fx_number(a, "processes.0.records"), UINT64_C(1) << 60 | 1);
	ck_assert_uint_eq(fx_number(a, "processes.0.lost.overrun"), 3);
	ck_assert_uint_eq(fx_number(a, "processes.0.lost.pool"), 4);
	ck_assert_uint_eq(fx_number(a, "processes.0.lost.lane"), 0);
	ck_assert_uint_eq(fx_number(a, "processes.0.lost.string"), 0);
	ck_assert_uint_eq(fx_number(a, "processes.0.comms"), 1);
	ck_assert_str_eq(fx_text(a, "processes.0.first_seen_at"), "2023-11-14T22:13:20.000000000Z");
	ck_assert_str_eq(fx_text(a, "processes.0.last_record_at"),
			 "2023-11-14T22:13:20.000000001Z");
	ck_assert(json_is_null(fx_at(a, "processes.0.ended_at")));
	json_decref(a);
}

TEST(what_a_process_has_not_said_is_null)
{
	struct process *p = fx_process(1, 54321, 0);
	json_t *a;

	p->api_version = 0;
	p->plugin_version[0] = '\0';
	p->mask = 0;
	p->seen = UINT32_C(1) << 31;
	a = fx_get("/v1/processes", 200);
	ck_assert(json_is_null(fx_at(a, "processes.0.user")));
	ck_assert(json_is_null(fx_at(a, "processes.0.api_version")));
	ck_assert(json_is_null(fx_at(a, "processes.0.plugin_version")));
	ck_assert(json_is_null(fx_at(a, "processes.0.level")));
	ck_assert(json_is_null(fx_at(a, "processes.0.level_reason")));
	ck_assert(json_is_null(fx_at(a, "processes.0.sampling")));
	ck_assert(json_is_null(fx_at(a, "processes.0.last_record_at")));
	ck_assert(json_is_null(fx_at(a, "processes.0.job.scheduler")));
	ck_assert(json_is_null(fx_at(a, "processes.0.job.rank")));
	json_decref(a);
}

static const struct {
	const char *env;
	size_t bytes;
	const char *job;
} jobs[] = {
#define JOB(env, job) { env, sizeof(env), job }
	JOB("SLURM_JOB_ID=88\0SLURM_PROCID=5\0SLURM_LOCALID=1\0SLURM_NTASKS=16",
	    "{'scheduler':'slurm','id':'88','rank':5,'local_rank':1,'world_size':16}"),
	JOB("SLURM_JOB_ID=88\0SLURM_PROCID=1\0RANK=11\0LOCAL_RANK=3\0WORLD_SIZE=16",
	    "{'scheduler':'slurm','id':'88','rank':11,'local_rank':3,'world_size':16}"),
	JOB("TORCHELASTIC_RUN_ID=abc\0RANK=0\0LOCAL_RANK=0\0WORLD_SIZE=2",
	    "{'scheduler':'torchrun','id':'abc','rank':0,'local_rank':0,'world_size':2}"),
	JOB("OMPI_COMM_WORLD_RANK=2\0OMPI_COMM_WORLD_LOCAL_RANK=2\0OMPI_COMM_WORLD_SIZE=4",
	    "{'scheduler':'mpi','id':null,'rank':2,'local_rank':2,'world_size':4}"),
	JOB("POD_NAME=train-0-x7\0JOB_NAME=train\0RANK=3\0LOCAL_RANK=3\0WORLD_SIZE=8",
	    "{'scheduler':'kubernetes','id':'train','rank':3,'local_rank':3,'world_size':8}"),
	/* torchrun without --rdzv-id, and in a batch script of Slurm, where no task counts */
	JOB("TORCHELASTIC_RUN_ID=none\0RANK=1\0LOCAL_RANK=1\0WORLD_SIZE=8",
	    "{'scheduler':'torchrun','id':null,'rank':1,'local_rank':1,'world_size':8}"),
	JOB("SLURM_JOB_ID=88\0SLURM_PROCID=0\0SLURM_NTASKS=1\0TORCHELASTIC_RUN_ID=none\0RANK=7\0"
	    "LOCAL_RANK=7\0WORLD_SIZE=8",
	    "{'scheduler':'slurm','id':'88','rank':7,'local_rank':7,'world_size':8}"),
	/* srun with PMIx; mpirun of Open MPI 5, of MPICH and Intel MPI, of MVAPICH2 */
	JOB("SLURM_JOB_ID=88\0SLURM_PROCID=3\0SLURM_LOCALID=1\0SLURM_NTASKS=4\0PMIX_RANK=3\0"
	    "PMIX_NAMESPACE=slurm.pmix.88.0",
	    "{'scheduler':'slurm','id':'88','rank':3,'local_rank':1,'world_size':4}"),
	JOB("OMPI_COMM_WORLD_RANK=5\0OMPI_COMM_WORLD_SIZE=8\0OMPI_COMM_WORLD_LOCAL_RANK=1\0"
	    "PMIX_RANK=5\0PMIX_NAMESPACE=prterun-n1-4242@1",
	    "{'scheduler':'mpi','id':'prterun-n1-4242@1','rank':5,'local_rank':1,'world_size':8}"),
	JOB("PMI_RANK=5\0PMI_SIZE=8\0MPI_LOCALRANKID=1",
	    "{'scheduler':'mpi','id':null,'rank':5,'local_rank':1,'world_size':8}"),
	JOB("MV2_COMM_WORLD_RANK=5\0MV2_COMM_WORLD_SIZE=8\0MV2_COMM_WORLD_LOCAL_RANK=1",
	    "{'scheduler':'mpi','id':null,'rank':5,'local_rank':1,'world_size':8}"),
	/* PBS with PALS, LSF with jsrun, Flux, Ray Train, an indexed Job of Kubernetes */
	JOB("PBS_JOBID=77.pbs1\0PMI_RANK=9\0PMI_SIZE=16\0PMI_LOCAL_RANK=1\0PALS_RANKID=9\0"
	    "PALS_LOCAL_RANKID=1",
	    "{'scheduler':'pbs','id':'77.pbs1','rank':9,'local_rank':1,'world_size':16}"),
	JOB("PBS_JOBID=77.pbs1\0PALS_RANKID=9\0PALS_LOCAL_RANKID=1",
	    "{'scheduler':'pbs','id':'77.pbs1','rank':9,'local_rank':1,'world_size':null}"),
	JOB("LSB_JOBID=123\0JSM_NAMESPACE_RANK=2\0JSM_NAMESPACE_SIZE=6\0JSM_NAMESPACE_LOCAL_RANK=0",
	    "{'scheduler':'lsf','id':'123','rank':2,'local_rank':0,'world_size':6}"),
	JOB("FLUX_JOB_ID=f2iTyA\0FLUX_TASK_RANK=3\0FLUX_TASK_LOCAL_ID=1\0FLUX_JOB_SIZE=4",
	    "{'scheduler':'flux','id':'f2iTyA','rank':3,'local_rank':1,'world_size':4}"),
	JOB("RAY_JOB_ID=01000000\0RANK=1\0LOCAL_RANK=0\0WORLD_SIZE=2",
	    "{'scheduler':'ray','id':'01000000','rank':1,'local_rank':0,'world_size':2}"),
	JOB("JOB_COMPLETION_INDEX=3\0TORCHELASTIC_RUN_ID=none",
	    "{'scheduler':'kubernetes','id':null,'rank':3,'local_rank':null,'world_size':null}"),
	JOB("RANK=-1\0WORLD_SIZE=8x\0LOCAL_RANK=",
	    "{'scheduler':null,'id':null,'rank':null,'local_rank':null,'world_size':null}"),
#undef JOB
};

TEST_LOOP(the_job_is_told_by_its_launchers_variables, 0, FX_COUNT(jobs))
{
	struct process *p = fx_process(1, 0, 0);
	char *got;
	json_t *a;

	set_env(p, jobs[_i].env, jobs[_i].bytes);
	a = fx_get("/v1/processes", 200);
	got = json_dumps(fx_at(a, "processes.0.job"), JSON_COMPACT);
	for (char *c = got; *c; c++)
		if (*c == '"')
			*c = '\'';
	ck_assert_str_eq(got, jobs[_i].job);
	free(got);
	json_decref(a);
}

TEST(an_environment_without_its_end_is_not_read_past)
{
	struct process *p = fx_process(1, 0, 0);
	json_t *a;

	memset(p->env, 'R', sizeof(p->env));
	memcpy(p->env, "SLURM_JOB_ID=", 13);
	p->env_bytes = UINT32_MAX;
	a = fx_get("/v1/processes", 200);
	ck_assert(json_is_null(fx_at(a, "processes.0.job.id")));
	json_decref(a);
}

TEST(ranks_of_one_communicator_stand_together)
{
	struct process *p = fx_process(10, 0, 3);
	json_t *a;

	fx_process(11, 0, 0);
	fx.processes[1]->comms[0].finalize_ticks = 5;
	p->state = PROCESS_DIED;
	a = fx_get("/v1/comms", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "comms")), 1);
	ck_assert_str_eq(fx_text(a, "comms.0.comm_id"), "0xd00dfeedcafe0001");
	ck_assert_str_eq(fx_text(a, "comms.0.name"), "dp");
	ck_assert_uint_eq(fx_number(a, "comms.0.nranks"), 8);
	ck_assert_uint_eq(fx_number(a, "comms.0.nnodes"), 2);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.rank"), 0);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.pid"), 11);
	ck_assert_str_eq(fx_text(a, "comms.0.local_ranks.0.gpu_uuid"),
			 "GPU-00000000-0000-0000-0000-0000000000ab");
	ck_assert_str_eq(fx_text(a, "comms.0.local_ranks.0.pci_bus_id"), "0000:1b:00.0");
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.gpu_index"), 5);
	ck_assert_str_eq(fx_text(a, "comms.0.local_ranks.0.state"), "finalized");
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.1.rank"), 3);
	ck_assert(json_is_null(fx_at(a, "comms.0.local_ranks.1.gpu_uuid")));
	ck_assert(json_is_null(fx_at(a, "comms.0.local_ranks.1.gpu_index")));
	ck_assert_str_eq(fx_text(a, "comms.0.local_ranks.1.state"), "died");
	json_decref(a);
}

TEST(communicators_that_share_an_id_but_no_size_stay_apart)
{
	json_t *a;

	fx_process(10, 0, 0);
	fx_process(11, 0, 0)->comms[0].nranks = 4;
	a = fx_get("/v1/comms", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "comms")), 2);
	json_decref(a);
}

TEST(communicators_without_an_id_stand_alone)
{
	json_t *a;

	for (int i = 0; i < 2; i++) {
		struct comm *c = &fx_process(10 + i, 0, UNKNOWN_I32)->comms[0];

		*c = (struct comm){ .ready = true, .rank = UNKNOWN_I32 };
	}
	a = fx_get("/v1/comms", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "comms")), 2);
	ck_assert(json_is_null(fx_at(a, "comms.0.comm_id")));
	ck_assert(json_is_null(fx_at(a, "comms.0.nranks")));
	ck_assert(json_is_null(fx_at(a, "comms.0.local_ranks.0.rank")));
	json_decref(a);
}

/* Two of the first four have the rows that one of two users may have. */
TEST(communicators_of_one_user_leave_rows_for_others_and_are_counted)
{
	json_t *a;

	for (int i = 0; i < 5; i++) {
		struct process *p = fx_process(100 + i, 0, 0);
		struct comm one = p->comms[0];

		p->account = i < 4 ? 1 : 2;
		if (i == 4)
			continue;
		free(p->comms);
		p->ncomms = 3000;
		p->comms = calloc(p->ncomms, sizeof(one));
		for (uint32_t k = 0; k < p->ncomms; k++) {
			p->comms[k] = one;
			p->comms[k].id = (uint64_t)p->pid << 32 | k;
		}
	}
	a = fx_get("/v1/comms?fields=comm_id", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "comms")), 2 * 3000 + 1);
	ck_assert_int_eq(json_integer_value(fx_at(a, "comms_left_out")), 2 * 3000);
	json_decref(a);
}

static const char *const long_tables[] = { "/v1/processes", "/v1/comms", "/v1/inflight" };

TEST_LOOP(the_source_gets_its_turn_between_the_rows_of_a_table, 0, FX_COUNT(long_tables))
{
	for (int i = 0; i < 8; i++)
		fx_post(fx_process(10 + i, 0, i), 1, 1, 100);
	json_decref(fx_get(long_tables[_i], 200));
	ck_assert_uint_ge(fx.meanwhiles, 1 + 8);
}

TEST(a_rank_tells_how_far_it_got)
{
	json_t *a;

	fx_post(fx_process(10, 0, 3), 41, 0x5001, 1000);
	a = fx_get("/v1/comms", 200);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.last_seq.AllReduce"), 41);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.in_flight"), 1);
	ck_assert(json_is_string(fx_at(a, "comms.0.local_ranks.0.last_op_at")));
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
