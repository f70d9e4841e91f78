"""All that talks to Kubernetes, and nothing that decides."""
