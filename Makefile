# Every target does its own set-up: what it lacks is downloaded or built into a cache folder outside the tree.
PY := .venv/bin/python

.PHONY: demo demo-cluster test check venv lock

demo: venv            ## the parameter-server example, profiled, sized and trained on this machine
	@$(PY) dev/demo.py

demo-cluster: venv    ## the same on kind: the operator by Helm, kubectl apply, to Complete
	@$(PY) dev/demo_cluster.py

test: venv            ## everything
	@$(PY) dev/test.py

check: venv           ## the fast loop: lint, types, layers, unit tests
	@$(PY) dev/check.py

venv:
	@dev/venv.sh

lock:                 ## resolve the dependencies anew into constraints.txt
	@dev/venv.sh lock
