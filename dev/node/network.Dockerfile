# kube-proxy and the CNI agent: the two pods of the node image that need more than one static binary.
FROM local/debian:trixie
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      conntrack iproute2 iptables ipset kmod nftables \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/* /usr/share/doc /usr/share/locale /usr/share/man
COPY kube-proxy cni-agent.sh /usr/local/bin/
RUN chmod 755 /usr/local/bin/*
