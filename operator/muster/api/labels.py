"""Every label, annotation and environment variable that Muster puts on what it makes, documented in one block."""

GROUP = "muster.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "TrainingJob"
PLURAL = "trainingjobs"
SHORT_NAME = "tjob"

FIELD_MANAGER = "muster"
"""Field manager of every write."""
MANAGED_BY = f"{GROUP}/operator"
"""The only value of spec.runPolicy.managedBy under which this operator touches a job."""

# Labels on pods, services and config maps.
JOB = f"{GROUP}/job"
"""The TrainingJob's name. The operator lists and watches pods by the presence of this label."""
ROLE = f"{GROUP}/role"
"""profiler, peer, scheduler, server, worker, chief or evaluator."""
INDEX = f"{GROUP}/index"
"""The pod's place in its role, from 0."""
ATTEMPT = f"{GROUP}/attempt"
"""Which attempt of the job the pod belongs to, from 1."""

LONGEST_JOB_NAME = 63 - len("-evaluator-511")
"""So that `<job>-<role>-<index>`, a pod's host name too, is a DNS label with the longest role and highest index."""

TRAINING_CONTAINER = "train"
"""Name of the training container, unless the pod has only one."""
GPU_RESOURCE = "nvidia.com/gpu"

# Environment of every pod of a job, whatever its framework.
ENV_ROLE = "MUSTER_ROLE"
ENV_INDEX = "MUSTER_INDEX"
ENV_WORKERS = "MUSTER_WORKERS"
ENV_SERVERS = "MUSTER_SERVERS"
ENV_WORKER_HOSTS = "MUSTER_WORKER_HOSTS"
"""Comma-separated host:port of every worker, in order of index."""
ENV_SERVER_HOSTS = "MUSTER_SERVER_HOSTS"
"""Comma-separated host:port of every server, in order of index; empty without servers."""
ENV_MINIBATCH = "MUSTER_MINIBATCH"
"""Samples per GPU and iteration. `$(MUSTER_MINIBATCH)` in command, args or env is how a script receives it."""
ENV_ATTEMPT = "MUSTER_ATTEMPT"
"""The present attempt, from 1; above 1 a script goes on from its checkpoint. 0 in the profiling pod."""
ENV_CONVOLUTION_WORKSPACE = "MUSTER_CONVOLUTION_WORKSPACE_BYTES"
"""The planned bound of one convolution's workspace, where the plan has one."""

# Environment of the profiling pod.
ENV_PROFILE_MINIBATCHES = "MUSTER_PROFILE_MINIBATCHES"
"""Comma-separated candidates, in rising order; empty where the script keeps its own mini-batch."""
ENV_PROFILE_WARMUP_STEPS = "MUSTER_PROFILE_WARMUP_STEPS"
ENV_PROFILE_STEPS = "MUSTER_PROFILE_STEPS"
ENV_PROFILE_CONVOLUTION_SECONDS = "MUSTER_PROFILE_CONVOLUTION_SECONDS"
"""For measuring convolution algorithms; 0 where the spec has them off, absent: what the candidates leave."""
ENV_PROFILE_PEER = "MUSTER_PROFILE_PEER"
"""host:port of the peer that the network is measured against; absent where it is not measured."""
ENV_PROFILE_DEADLINE = "MUSTER_PROFILE_DEADLINE_SECONDS"
"""The profiler reports what it has by then, counted from its own start."""
