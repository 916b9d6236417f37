/**
 * exec, attach, port-forward and the proxies. Clients upgrade the connection to WebSocket or SPDY for them. API Gateway
 * HTTP APIs and Lambda function URLs cannot do that, so there they end with one sentence, which kubectl prints as it
 * is. `nodekeeper serve` opens the first three. Source of the checks before it: pkg/registry/core/pod/strategy.go
 * (streamLocation).
 */

import type { ReadDependencies, UnstoredRequest } from '../../../shared/api/call.ts';
import { refuseWithoutAgent } from '../../../shared/api/logs/without-agent.ts';
import { logContainer } from '../../../shared/kinds/pods/pod-log-options.ts';
import { findResource } from '../../../shared/kinds/registry.ts';
import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import type { HttpResponse } from '../../../shared/kubernetes/http.ts';
import { isAskedFor, type ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { SessionPurpose } from '../../../shared/sessions/session-request.ts';

const CONNECTIONS: Readonly<Record<string, readonly string[]>> = {
  pods: ['attach', 'exec', 'portforward', 'proxy'],
  nodes: ['proxy'],
  services: ['proxy'],
};

export const isConnection = ({ group, resource, subresource }: ResourceTarget): boolean =>
  group === '' && (CONNECTIONS[resource] ?? []).includes(subresource);

/** What a client connects to. `portforward`: the client names the ports later. */
export type ConnectionPurpose = Extract<SessionPurpose, { kind: 'exec' | 'attach' }> | { readonly kind: 'portforward' };

/** An authorized and valid connection to a pod. */
export interface PodConnection {
  readonly pod: KubePod;
  readonly nodeName: string;
  readonly purpose: ConnectionPurpose;
}

/** Opens a connection. The response is `101`, without the headers of the upgrade. @throws StatusError */
export type OpenConnection = (connection: PodConnection, asked: UnstoredRequest) => Promise<HttpResponse>;

interface ConnectionDependencies extends Pick<ReadDependencies, 'storageOf'> {
  /** Absent: the transport cannot upgrade a connection. */
  readonly openConnection?: OpenConnection;
}

/** Refuses by the policies of the cluster. `options`: the query as the kind that upstream reads it as. */
export type AdmitConnection = (options: KubeObject, kind: string) => Promise<void>;

/** @throws StatusError 403, 404, 400 for a pod without a node or an invalid option, 405 where it is not served */
export async function answerConnection(
  dependencies: ConnectionDependencies,
  asked: UnstoredRequest,
  admit: AdmitConnection,
): Promise<HttpResponse> {
  const { target } = asked;
  await asked.requireAccess();
  const isOpened = target.resource === 'pods' && target.subresource !== 'proxy';
  // A WebSocket begins with a GET. To read is not enough, as upstream from 1.35 on.
  // Source: pkg/registry/core/pod/rest/subresources.go (ensureAuthorizedForVerb).
  if (isOpened) await asked.requireAccess('create');
  if (isOpened && asked.verb !== 'get' && asked.verb !== 'create') throw status.methodNotAllowedHere();
  const descriptor = findResource(target.group, target.version, target.resource);
  if (descriptor === undefined) throw status.unknownPath();
  const found = await dependencies
    .storageOf(descriptor)
    .get(descriptor.namespaced ? target.namespace : '', target.name);
  if (found === undefined) throw status.notFound(descriptor, target.name);
  const pod = found as KubePod;
  const nodeName = pod.spec?.nodeName ?? '';
  if (target.resource === 'pods' && nodeName === '') {
    throw status.badRequest(`pod ${target.name} does not have a host assigned`);
  }
  const { openConnection } = dependencies;
  if (!isOpened) throw status.notServed(`${target.resource}/${target.subresource} is not served`);
  if (openConnection === undefined) throw status.notServed(NOT_UPGRADED(target));
  const purpose = purposeOf(pod, asked);
  const kind = OPTIONS_KINDS[purpose.kind];
  const { kind: _purpose, ...options } = purpose;
  await admit({ kind, apiVersion: 'v1', metadata: {}, ...options }, kind);
  await refuseWithoutAgent(dependencies, nodeName, 'exec, attach and port-forward');
  asked.audit('create');
  return openConnection({ pod, nodeName, purpose }, asked);
}

const OPTIONS_KINDS: Readonly<Record<ConnectionPurpose['kind'], string>> = {
  exec: 'PodExecOptions',
  attach: 'PodAttachOptions',
  portforward: 'PodPortForwardOptions',
};

const NOT_UPGRADED = ({ resource, subresource }: ResourceTarget): string =>
  `${resource}/${subresource} is not served on AWS: its HTTP APIs cannot upgrade a connection to WebSocket or SPDY; ` +
  'it is served by "nodekeeper serve", the cluster on one machine; here use "kubectl logs" to read output, or sign in to the machine';

/**
 * Source: pkg/apis/core/validation (ValidatePodExecOptions), k8s.io/kubelet pkg/cri/streaming (validateExecRequest).
 */
function purposeOf(pod: KubePod, { target, request: { query } }: UnstoredRequest): ConnectionPurpose {
  if (target.subresource === 'portforward') return { kind: 'portforward' };
  const container = logContainer(pod, query.get('container') ?? '');
  const stdin = isAskedFor(query, 'stdin');
  const stderr = isAskedFor(query, 'stderr');
  if (!stdin && !stderr && !isAskedFor(query, 'stdout')) {
    throw status.badRequest('you must specify at least 1 of stdin, stdout, stderr');
  }
  if (target.subresource === 'attach') return { kind: 'attach', container, stdin };
  const command = query.getAll('command');
  if (command.length === 0) throw status.badRequest('you must specify at least one command for the container');
  const tty = isAskedFor(query, 'tty');
  if (tty && stderr) throw status.badRequest('tty and stderr cannot both be true');
  return { kind: 'exec', container, command, stdin, tty };
}
