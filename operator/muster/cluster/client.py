"""The only importer of `kubernetes`: the few requests Muster makes, as raw dicts, with errors that are types.

The typed models are left out on purpose: a typed pod costs 1.5 ms, its JSON 0.04. Nothing is retried here: a failed
write is seen again in the next reconcile, which looks before it acts.
"""

import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast
from urllib.request import getproxies

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    ConfigException,
    load_incluster_config,
    load_kube_config,
)
from kubernetes.utils import parse_quantity

from muster import metrics
from muster.api import labels
from muster.cluster import nesting
from muster.cluster.errors import ApiError, Throttled, Transient, from_response
from muster.cluster.throttle import TokenBucket

Object = dict[str, Any]
"""A Kubernetes object as the API server sends it."""

_PAGE = 100  # objects a page of a list: while one is parsed, nothing else is done
_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Resource:
    """A kind, by where it is served."""

    root: str
    plural: str
    namespaced: bool = True

    @property
    def singular(self) -> str:
        """For messages."""
        return self.plural.removesuffix("s")

    @property
    def group_version(self) -> tuple[str, str]:
        """The API group, empty for the core group, and its version."""
        *group, version = self.root.removeprefix("/apis/").removeprefix("/api/").split("/")
        return "".join(group), version

    def path(self, namespace: str | None, *parts: str) -> str:
        """The URL path of a collection, of an object (one part: its name), or of a subresource."""
        where = ["namespaces", namespace] if namespace and self.namespaced else []
        return "/".join([self.root, *where, self.plural, *parts])


JOBS = Resource(f"/apis/{labels.API_VERSION}", labels.PLURAL)
PODS = Resource("/api/v1", "pods")
SERVICES = Resource("/api/v1", "services")
CONFIG_MAPS = Resource("/api/v1", "configmaps")
NODES = Resource("/api/v1", "nodes", namespaced=False)
QUOTAS = Resource("/api/v1", "resourcequotas")
EVENTS = Resource("/apis/events.k8s.io/v1", "events")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases")
_READY = Resource("/readyz", "readyz", namespaced=False)


@dataclass(frozen=True)
class Access:
    """How the API server is reached, for the watch runtime, which makes its own connections."""

    in_cluster: bool
    server: str
    ca_path: str | None
    insecure: bool
    certificate_path: str | None
    key_path: str | None
    token: str | None


class Client:
    """Requests to one API server. Every write but a lease's waits for its turn in `bucket`."""

    def __init__(self, configuration: Configuration, bucket: TokenBucket, *, in_cluster: bool = False) -> None:
        configuration.connection_pool_maxsize = 64
        configuration.retries = None
        # Otherwise every request asks a thread for the environment's proxy, which costs more than the request.
        configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
        self._configuration = configuration
        self._api = ApiClient(configuration)
        self._bucket = bucket
        self._in_cluster = in_cluster
        self.namespace = "default"
        """The kubeconfig's own choice, for commands of people; the operator names a namespace in every request."""

    @classmethod
    async def connect(cls, bucket: TokenBucket, kubeconfig: str | None = None, context: str | None = None) -> "Client":
        """By the service account where this runs in a pod and no kubeconfig is named, else by kubeconfig.

        Raises ApiError where there is neither. No request is made yet.
        """
        configuration = Configuration()
        if kubeconfig is None and context is None:
            try:
                load_incluster_config(configuration)
            except ConfigException:
                pass
            else:
                return cls(configuration, bucket, in_cluster=True)
        paths = kubeconfig or KUBE_CONFIG_DEFAULT_LOCATION
        if not _any_there(paths):
            text = f"there is no kubeconfig {paths}: name one by --kubeconfig or KUBECONFIG"
            raise ApiError(f"no way to a cluster: {text}")
        try:
            loader = await load_kube_config(kubeconfig, context, configuration, persist_config=False)
        except (ConfigException, OSError) as error:
            raise ApiError(f"no way to a cluster: the kubeconfig {paths} cannot be used: {error}") from error
        client = cls(configuration, bucket)
        client.namespace = loader.current_context["context"].get("namespace") or client.namespace
        return client

    async def access(self) -> Access:
        """The connection's own details."""
        configuration = self._configuration
        header = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return Access(
            in_cluster=self._in_cluster,
            server=configuration.host,
            ca_path=configuration.ssl_ca_cert,
            insecure=not configuration.verify_ssl,
            certificate_path=configuration.cert_file,
            key_path=configuration.key_file,
            token=header.split(" ", 1)[-1] if header else None,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def ping(self) -> None:
        """Whether the server says that it is ready."""
        await self._request("GET", _READY, _READY.root, accept="*/*")

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """One object."""
        return await self._json("GET", resource, resource.path(namespace, name))

    async def pages(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selector: str = "",
        metadata_only: bool = False,
        limit: int = 0,
    ) -> AsyncIterator[tuple[list[Object], int]]:
        """Pages of (objects, version of the list); one page of `limit` objects where that is given.

        The answer is consistent, never from an old cache.
        """
        query: dict[str, str] = {"limit": str(limit or _PAGE)}
        if selector:
            query["labelSelector"] = selector
        accept = _METADATA_ONLY if metadata_only else _JSON
        while True:
            page = await self._json("GET", resource, resource.path(namespace), query=query, accept=accept)
            yield page.get("items") or [], int(page["metadata"].get("resourceVersion") or 0)
            query["continue"] = page["metadata"].get("continue") or ""
            if limit or not query["continue"]:
                return

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Conflict where the name is taken."""
        query = {"fieldManager": labels.FIELD_MANAGER}
        return await self._json("POST", resource, resource.path(namespace), query=query, body=body)

    async def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Put the whole object; Conflict where its resourceVersion is not the present one."""
        path = resource.path(namespace, body["metadata"]["name"])
        return await self._json("PUT", resource, path, query={"fieldManager": labels.FIELD_MANAGER}, body=body)

    async def merge(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:
        """Merge `patch` into the object."""
        path = resource.path(namespace, name)
        query = {"fieldManager": labels.FIELD_MANAGER}
        return await self._json("PATCH", resource, path, query=query, body=patch, content=_MERGE)

    async def apply_status(self, namespace: str, name: str, uid: str, version: int, status: Object) -> Object:
        """Server-side apply of a job's whole status, Conflict unless the job is this uid at this version.

        The version is what keeps a stale cache, or a second operator, from undoing a newer status.
        """
        body = {
            "apiVersion": labels.API_VERSION,
            "kind": labels.KIND,
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(version)},
            "status": status,
        }
        query = {"fieldManager": labels.FIELD_MANAGER, "force": "true"}
        return await self._json(
            "PATCH", JOBS, JOBS.path(namespace, name, "status"), query=query, body=body, content=_APPLY
        )

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> Object:
        """Delete in the background; Conflict where the name has another uid. Returns the object, or a Status."""
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        return await self._json("DELETE", resource, resource.path(namespace, name), body=body)

    async def log(self, namespace: str, pod: str, container: str, *, tail_lines: int, limit_bytes: int) -> str:
        """The last lines of a container's log, at most `limit_bytes` of them."""
        query = {"container": container, "tailLines": str(tail_lines), "limitBytes": str(limit_bytes)}
        data = await self._request("GET", PODS, PODS.path(namespace, pod, "log"), query=query, accept="*/*")
        return data.decode(errors="replace")

    async def follow_log(self, namespace: str, pod: str, container: str) -> AsyncIterator[str]:
        """The lines of a container's log from its first, as they come, to the container's end."""
        path, query = PODS.path(namespace, pod, "log"), [("container", container), ("follow", "true")]
        _, url, headers, _, _ = await self._api.param_serialize(
            "GET", path, query_params=query, auth_settings=["BearerToken"]
        )
        try:
            timeout = aiohttp.ClientTimeout(sock_connect=5)
            answer = await self._api.call_api("GET", url, headers, None, _request_timeout=timeout)
            if answer.status >= 400:
                raise from_response(answer.status, _status(await answer.read()), None)
            rest = b""
            async for chunk in answer.response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line.decode(errors="replace")
            if rest:
                yield rest.decode(errors="replace")
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Transient(f"GET {path}: {error or type(error).__name__}") from error

    async def _json(self, verb: str, resource: Resource, path: str, **how: Any) -> Object:
        return cast("Object", nesting.loads(await self._request(verb, resource, path, **how)))

    async def _request(
        self,
        verb: str,
        resource: Resource,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content: str = _JSON,
        accept: str = _JSON,
    ) -> bytes:
        if verb != "GET" and resource is not LEASES:  # a leader must not lose its lease to its own burst of writes
            await self._bucket.take()
        headers = {"Accept": accept, "Content-Type": content}
        _, url, headers, _, _ = await self._api.param_serialize(
            verb, path, query_params=list((query or {}).items()), header_params=headers, auth_settings=["BearerToken"]
        )
        start = time.monotonic()
        try:
            answer = await self._api.call_api(verb, url, headers, body, _request_timeout=_TIMEOUT)
            data: bytes = await answer.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            metrics.api_request(verb, resource.plural, "none", time.monotonic() - start)
            raise Transient(f"{verb} {path}: {error or type(error).__name__}") from error
        metrics.api_request(verb, resource.plural, str(answer.status), time.monotonic() - start)
        if answer.status >= 400:
            failure = from_response(answer.status, _status(data), answer.getheader("Retry-After"))
            if isinstance(failure, Throttled):
                self._bucket.pause(failure.retry_after)
            raise failure
        return data


def quantity(text: object) -> Decimal:
    """A Kubernetes quantity as a number; 0 where it is none."""
    try:
        return cast("Decimal", parse_quantity(text))
    except (ValueError, ArithmeticError):
        return Decimal(0)


def _status(data: bytes) -> Object:
    try:
        body = json.loads(data)
    except ValueError:  # a proxy or load balancer answered, not the API server
        return {}
    return body if isinstance(body, dict) else {}


def _any_there(paths: str) -> bool:
    """As the library looks for them: without an error where it may not look."""
    each = (os.path.expanduser(path) for path in paths.split(os.pathsep) if path)  # noqa: PTH111
    return any(os.path.exists(path) for path in each)  # noqa: PTH110
