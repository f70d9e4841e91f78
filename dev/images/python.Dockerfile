# What `python:3.13-slim` would be, from Debian: the base of the operator's image where no registry is reached.
FROM local/debian:trixie
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/* /usr/share/doc /usr/share/locale /usr/share/man
