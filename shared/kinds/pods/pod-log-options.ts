/**
 * Options of `pods/log`, and the container that they mean. Texts and order of the checks are upstream's.
 * Source: pkg/apis/core/validation (ValidatePodLogOptions), pkg/registry/core/pod/strategy.go (LogLocation),
 * pkg/kubelet/kubelet_pods.go (validateContainerLogStatus).
 */
import { defined } from '../../defined.ts';
import { forbiddenField, invalidValue, NOT_NEGATIVE } from '../../kubernetes/causes.ts';
import { isAskedFor, wholeNumberOf } from '../../kubernetes/request.ts';
import * as status from '../../kubernetes/status.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { ContainerStatus, KubePod } from '../types.ts';
import type { LogOptions } from './log-request.ts';

const POSITIVE = 'must be greater than 0';
const STREAMS = ['All', 'Stdout', 'Stderr'];

/** @throws StatusError 400 for a malformed option, 422 for an invalid one */
export function podLogOptions(podName: string, query: URLSearchParams): LogOptions {
  const sinceSeconds = wholeNumberOf(query, 'sinceSeconds');
  const tailLines = wholeNumberOf(query, 'tailLines');
  const limitBytes = wholeNumberOf(query, 'limitBytes');
  const sinceTimeMs = sinceTimeOf(query);
  const stream = query.get('stream') ?? 'All';
  const causes = [
    ...(tailLines !== undefined && tailLines < 0 ? [invalidValue('tailLines', tailLines, NOT_NEGATIVE)] : []),
    ...(limitBytes !== undefined && limitBytes < 1 ? [invalidValue('limitBytes', limitBytes, POSITIVE)] : []),
    ...sinceCauses(sinceSeconds, sinceTimeMs),
    // The agent keeps stdout and stderr in one file, as it keeps their order.
    ...(stream === 'All' ? [] : [streamCause(stream)]),
  ];
  if (causes.length > 0) throw status.invalid({ group: '', kind: 'PodLogOptions' }, podName, causes);
  return {
    follow: isAskedFor(query, 'follow'),
    previous: isAskedFor(query, 'previous'),
    timestamps: isAskedFor(query, 'timestamps'),
    ...defined({ sinceSeconds, sinceTimeMs, tailLines, limitBytes }),
  };
}

const streamCause = (stream: string): status.Cause =>
  STREAMS.includes(stream)
    ? invalidValue('stream', stream, 'stdout and stderr are stored together on this node, only "All" is supported')
    : { reason: 'FieldValueNotSupported', field: 'stream', message: unsupportedStream(stream) };

const unsupportedStream = (stream: string): string =>
  `Unsupported value: ${status.quote(stream)}: supported values: ${STREAMS.map(status.quote).join(', ')}`;

function sinceCauses(sinceSeconds: number | undefined, sinceTimeMs: number | undefined): readonly status.Cause[] {
  if (sinceSeconds === undefined) return [];
  if (sinceTimeMs !== undefined) {
    return [forbiddenField('', 'at most one of `sinceTime` or `sinceSeconds` may be specified')];
  }
  return sinceSeconds < 1 ? [invalidValue('sinceSeconds', sinceSeconds, POSITIVE)] : [];
}

function sinceTimeOf(query: URLSearchParams): number | undefined {
  const text = query.get('sinceTime') ?? '';
  if (text === '') return undefined;
  const timeMs = parseTimeMs(text);
  if (timeMs !== undefined) return timeMs;
  const quoted = status.quote(text);
  throw status.badRequest(`parsing time ${quoted} as "2006-01-02T15:04:05Z07:00": cannot parse ${quoted} as "2006"`);
}

/** The named container of the pod, or its only one. @throws StatusError 400 */
export function logContainer(pod: KubePod, requested: string): string {
  const podName = pod.metadata.name ?? '';
  const { containers = [] } = pod.spec ?? {};
  const all = namesOf(pod);
  if (requested === '') {
    if (containers.length === 1) return containers[0]?.name ?? '';
    const choice = containers.length === 0 ? '' : `, choose one of: [${all.join(' ')}]`;
    throw status.badRequest(`a container name must be specified for pod ${podName}${choice}`);
  }
  if (!all.includes(requested)) throw status.badRequest(`container ${requested} is not valid for pod ${podName}`);
  return requested;
}

function namesOf({ spec }: KubePod): readonly string[] {
  const { initContainers = [], containers = [], ephemeralContainers = [] } = spec ?? {};
  return [...initContainers, ...containers, ...(ephemeralContainers as { name?: string }[])].map(
    ({ name = '' }) => name,
  );
}

/** @throws StatusError 400 while the container has no output that could be read */
export function refuseWithoutLog(pod: KubePod, container: string, previous: boolean): void {
  const why = whyNoLog(statusOf(pod, container), previous);
  if (why === undefined) return;
  const podName = status.quote(pod.metadata.name ?? '');
  const prefix = why === NO_PREVIOUS ? 'previous terminated container' : 'container';
  throw status.badRequest(`${prefix} ${status.quote(container)} in pod ${podName} ${why}`);
}

const NO_PREVIOUS = 'not found';

function statusOf({ status: podStatus }: KubePod, name: string): ContainerStatus | undefined {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = podStatus ?? {};
  return [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].find(
    (each) => each.name === name,
  );
}

function whyNoLog(container: ContainerStatus | undefined, previous: boolean): string | undefined {
  if (container === undefined) return 'is not available';
  const { waiting, running, terminated } = container.state ?? {};
  const last = container.lastState?.terminated;
  const hasLast = (last?.containerID ?? '') !== '';
  if (previous) return hasLast ? undefined : NO_PREVIOUS;
  if (running !== undefined) return undefined;
  if (terminated !== undefined) {
    return (terminated.containerID ?? '') !== '' || hasLast ? undefined : 'is terminated';
  }
  if (last !== undefined) return hasLast ? undefined : 'is terminated';
  if (waiting === undefined) return 'is waiting to start - no logs yet';
  return `is waiting to start: ${WAITING_TEXTS[waiting.reason ?? ''] ?? waiting.reason ?? ''}`;
}

const WAITING_TEXTS: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
};
