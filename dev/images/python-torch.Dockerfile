# Python with PyTorch for CPUs, gloo included, from Debian: the base of the examples' image where no registry is reached.
FROM local/debian:trixie
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      python3 python3-numpy python3-torch \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/* /usr/share/doc /usr/share/locale
