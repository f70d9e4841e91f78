"""What `benchmarks/controller.py` is made of: the cluster and its objects, the operator's process, the plots."""
