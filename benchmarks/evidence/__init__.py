"""What `benchmarks/science.py` is made of: the measured data, the experiments on it, and the plots of their results."""
