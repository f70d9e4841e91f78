# Every target does its own set-up: what it lacks is downloaded or built into a cache folder outside the tree.
.PHONY: demo demo-cluster test check gpu-check venv lock

demo: venv            # the parameter-server example profiled, sized and trained by processes of this machine
	@.venv/bin/python dev/demo.py

demo-cluster: venv    # the same on kind: the operator by Helm, kubectl apply, to Complete
	@PYTHONPATH=dev .venv/bin/python dev/demo_cluster.py

test: venv            # everything
	@dev/test.sh

check: venv           # lint, types, layers, unit tests
	@dev/check.sh

gpu-check:            # the profiler's CUDA parts on this machine's GPU, in under five minutes; builds nothing
	@$$(command -v .venv/bin/python || command -v python3) dev/gpu_check.py

venv:                 # .venv of exactly the locked versions
	@dev/venv.sh

lock: venv            # resolve the dependencies anew into constraints.txt
	@dev/venv.sh lock
