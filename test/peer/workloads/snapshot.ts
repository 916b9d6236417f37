/** What a control plane holds in the namespace of the comparison, without what differs between any two runs. */
import type { ApiClient } from '../../../demo/fleet/api-client.ts';
import type { KubeObject, OwnerReference } from '../../../shared/kinds/types.ts';
import { answerOf } from '../command.ts';

/** Normalised objects by `Kind/name`. Generated parts of names are replaced by what they mean. */
export type Snapshot = Readonly<Record<string, unknown>>;

export interface Seen {
  readonly snapshot: Snapshot;
  /** Replaces generated names, uids and hashes in texts about these objects. */
  readonly inText: (text: string) => string;
}

/** Lists of one kind in the versions that a server may have, newest first. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['/apis/apps/v1/namespaces/NS/deployments'],
  ReplicaSet: ['/apis/apps/v1/namespaces/NS/replicasets'],
  ReplicationController: ['/api/v1/namespaces/NS/replicationcontrollers'],
  DaemonSet: ['/apis/apps/v1/namespaces/NS/daemonsets'],
  StatefulSet: ['/apis/apps/v1/namespaces/NS/statefulsets'],
  ControllerRevision: ['/apis/apps/v1/namespaces/NS/controllerrevisions'],
  Job: ['/apis/batch/v1/namespaces/NS/jobs'],
  CronJob: ['/apis/batch/v1/namespaces/NS/cronjobs', '/apis/batch/v1beta1/namespaces/NS/cronjobs'],
  PodDisruptionBudget: [
    '/apis/policy/v1/namespaces/NS/poddisruptionbudgets',
    '/apis/policy/v1beta1/namespaces/NS/poddisruptionbudgets',
  ],
  ResourceQuota: ['/api/v1/namespaces/NS/resourcequotas'],
  Service: ['/api/v1/namespaces/NS/services'],
  HorizontalPodAutoscaler: ['/apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers'],
  Pod: ['/api/v1/namespaces/NS/pods'],
};

export type Listed = Readonly<Record<string, readonly KubeObject[]>>;

export async function listAll(client: ApiClient, namespace: string): Promise<Listed> {
  const entries = await Promise.all(
    Object.entries(LISTS).map(async ([kind, paths]) => [kind, await listFirst(client, namespace, paths)] as const),
  );
  return Object.fromEntries(entries);
}

async function listFirst(
  client: ApiClient,
  namespace: string,
  paths: readonly string[],
): Promise<readonly KubeObject[]> {
  for (const path of paths) {
    const { status, body } = await answerOf(client, { method: 'GET', path: path.replace('NS', namespace) }, [200, 404]);
    if (status === 200) return (body as { items: readonly KubeObject[] }).items;
  }
  throw new Error(`none of ${paths.join(', ')} is served`);
}

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;
/** The due time in the name of a CronJob's Job: minutes, or seconds before 1.21. */
const DUE_TIME = /-\d{8,10}\b/g;
const RANDOM_SUFFIX = '[bcdfghjklmnpqrstvwxz2456789]{5}';
const RANDOM_END = new RegExp(`^${RANDOM_SUFFIX}$`);
const NODE_NAME = /\bpeer-node-\d+\b/g;
/** The uid of an object that no longer exists. */
const UID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
/** Groups with a v1 that 1.20 does not have. */
const FIRST_VERSIONS = /\b(batch|policy)\/v1beta1\b/g;
const ADDRESS = /\b10\.\d+\.\d+\.\d+\b/g;

export function see(listed: Listed): Seen {
  const of = (kind: string): readonly KubeObject[] => listed[kind] ?? [];
  const replacements = new Map<string, string>();
  for (const { metadata } of of('ReplicaSet')) {
    const hash = metadata.labels?.['pod-template-hash'];
    const revision = metadata.annotations?.['deployment.kubernetes.io/revision'];
    if (hash !== undefined) replacements.set(hash, `<${revision ?? 'no revision'}>`);
  }
  for (const object of of('ControllerRevision')) {
    const name = object.metadata.name ?? '';
    replacements.set(name.slice(name.lastIndexOf('-') + 1), `<revision ${String(object['revision'])}>`);
  }
  const owners = ['ReplicaSet', 'ReplicationController', 'DaemonSet', 'Job', 'CronJob'].flatMap((kind) =>
    of(kind).map(({ metadata }) => metadata.name ?? ''),
  );
  for (const { metadata } of of('Pod')) {
    if (metadata.generateName !== undefined) owners.push(metadata.generateName.slice(0, -1));
  }
  const podNames = owners.length === 0 ? undefined : new RegExp(`\\b(${owners.join('|')})-${RANDOM_SUFFIX}\\b`, 'g');
  const named = (text: string): string => {
    let out = podNames === undefined ? text : text.replace(podNames, '$1-*');
    for (const [from, to] of replacements) out = out.replaceAll(from, to);
    return out.replace(DUE_TIME, '-<due>').replace(NODE_NAME, '<node>');
  };
  for (const [kind, objects] of Object.entries(listed)) {
    for (const { metadata } of objects) {
      if (metadata.uid !== undefined) replacements.set(metadata.uid, `<uid of ${kind} ${named(metadata.name ?? '')}>`);
    }
  }
  const inText = (text: string): string =>
    named(text)
      .replace(TIME, '<time>')
      .replace(UID, '<uid>')
      .replace(ADDRESS, '<address>')
      .replace(FIRST_VERSIONS, '$1/v1');
  const snapshot: Record<string, unknown> = {};
  for (const [kind, objects] of Object.entries(listed)) {
    const normalised = objects.map((object) => [inText(nameOf(object)), normal(object, inText)] as const);
    const sorted = normalised.toSorted(([, a], [, b]) => compareText(JSON.stringify(a), JSON.stringify(b)));
    const numbers = new Map<string, number>();
    for (const [name, object] of sorted) {
      const number = (numbers.get(name) ?? 0) + 1;
      numbers.set(name, number);
      snapshot[`${kind}/${name.replace(/\*$/, String(number))}`] = object;
    }
  }
  return { snapshot, inText };
}

/** A generated name without its random part, also that of a pod that lost its owner. */
function nameOf({ metadata: { generateName, name = '' } }: KubeObject): string {
  const isRandom = generateName !== undefined && RANDOM_END.test(name.slice(generateName.length));
  return isRandom ? `${generateName}*` : name;
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Fields without meaning for the comparison: names and versions are compared as keys, the rest differs in any two runs.
 */
const LEFT_OUT = ['name', 'uid', 'resourceVersion', 'managedFields', 'selfLink', 'namespace'];

function normal(object: KubeObject, inText: (text: string) => string): unknown {
  const { apiVersion: _, kind: __, ...rest } = withoutResizes(object);
  const metadata = Object.fromEntries(Object.entries(rest.metadata).filter(([key]) => !LEFT_OUT.includes(key)));
  const ownerReferences = object.metadata.ownerReferences?.toSorted((a, b) => compareText(refKey(a), refKey(b)));
  const whole = { ...rest, metadata: { ...metadata, ...(ownerReferences !== undefined && { ownerReferences }) } };
  return normalValue(whole, inText);
}

/** A ReplicaSet's generation counts in how many steps it was resized. Only whether its status is current matters. */
function withoutResizes(object: KubeObject): KubeObject {
  const { metadata, status = {} } = object;
  if (metadata.labels?.['pod-template-hash'] === undefined || status['observedGeneration'] === undefined) return object;
  const isCurrent = status['observedGeneration'] === metadata.generation;
  return {
    ...object,
    metadata: { ...metadata, generation: 0 },
    status: { ...status, observedGeneration: isCurrent ? 'current' : 'old' },
  };
}

const refKey = ({ kind, name }: OwnerReference): string => `${kind}/${name}`;

function normalValue(value: unknown, inText: (text: string) => string): unknown {
  if (typeof value === 'string') return inText(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => normalValue(item, inText));
    // Lists with a type or key have no order that means something.
    const keys = items.map((item) => (item as { type?: string } | null)?.type);
    if (items.length === 0 || keys.some((key) => typeof key !== 'string')) return items;
    return Object.fromEntries(items.map((item, index) => [keys[index], item]));
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    .filter(([, item]) => item !== null)
    .map(([key, item]) => [inText(key), normalValue(item, inText)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => compareText(a, b)));
}
