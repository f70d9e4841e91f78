#!/bin/sh
# The pod network, on each node: a CNI configuration for the node's own pod range, a route to every other node's, and
# masquerading of what leaves the pod network. From the environment: NODE_NAME, POD_SUBNET, CONTROL_PLANE_ENDPOINT.
# No NetworkPolicy.
set -u
account=/var/run/secrets/kubernetes.io/serviceaccount
config=/etc/cni/net.d/10-muster.conflist
chain=MUSTER-MASQUERADE

nat() { # add a rule to the nat table unless it is there: chain, then the rule
  iptables -w -t nat -C "$@" 2>/dev/null || iptables -w -t nat -A "$@"
}

masquerade() {
  iptables -w -t nat -N "$chain" 2>/dev/null
  nat "$chain" -d "$POD_SUBNET" -j RETURN
  nat "$chain" -j MASQUERADE
  nat POSTROUTING -s "$POD_SUBNET" -m addrtype ! --dst-type LOCAL -j "$chain"
}

nodes() { # a line a node: name, pod range, address
  kubectl --server="https://$CONTROL_PLANE_ENDPOINT" --certificate-authority="$account/ca.crt" \
    --token="$(cat "$account/token")" get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}'
}

write_config() { # the pod range
  cat >"$config.new" <<CONF
{"cniVersion": "0.4.0", "name": "muster", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": 1500,
   "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "$1"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
CONF
  cmp -s "$config.new" "$config" || { mv "$config.new" "$config" && echo "pods of this node: $1"; }
}

while :; do
  masquerade
  complete=yes
  nodes >/tmp/nodes || complete=no
  while read -r name range address; do
    if [ -z "$range" ] || [ -z "$address" ]; then complete=no
    elif [ "$name" = "$NODE_NAME" ]; then write_config "$range"
    else ip route replace "$range" via "$address" || complete=no; fi
  done </tmp/nodes
  [ "$complete" = yes ] && [ -s "$config" ] && sleep 10 || sleep 1
done
