/**
 * What belongs to some nodes, for the hub of a site that may not follow the whole cluster. A role names the nodes:
 *
 *   resources: [nodes, nodes/pods, nodes/configmaps, nodes/secrets], resourceNames: [edge-1, …], verbs: [watch]
 *
 *   nodes              the Nodes
 *   nodes/pods         pods that are bound to them
 *   nodes/configmaps   ConfigMaps that those pods refer to, as for a node itself (authorizer.ts)
 *   nodes/secrets      Secrets, in the same way
 *
 * Which objects that are changes without a change of the objects: a role names another node, or a pod refers to another
 * ConfigMap. `bounds` names the set. A cursor with other bounds is answered with a list in place of changes.
 *
 * Cost: at rest the heads of the resource and of pods. The pods of the nodes are read only when pods have changed since
 * the set was computed, or after ten minutes.
 */
import { createHash } from 'node:crypto';
import type { Authorizer } from '../../../shared/access/authorizer.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { ReadDependencies } from '../../../shared/api/call.ts';
import { defined } from '../../../shared/defined.ts';
import { configmaps } from '../../../shared/kinds/configmaps/serve.ts';
import { type ReferencedResource, referenceKey, referencesOf } from '../../../shared/kinds/pods/pod-references.ts';
import { nodes, pods } from '../../../shared/kinds/registry.ts';
import { ALL } from '../../../shared/kinds/roles/policy-rule.ts';
import { secrets } from '../../../shared/kinds/secrets/serve.ts';
import type { KubeObject, PolicyRule } from '../../../shared/kinds/types.ts';
import type { ChangesOfResource, ResourceName } from '../../../shared/watches/change-read.ts';
import { type Cursor, readOne, type Spendable } from './read-changes.ts';

/** In the core group: the resource that roles name, of each that may be followed so. */
const GRANTED: Readonly<Record<string, string>> = {
  nodes: 'nodes',
  pods: 'nodes/pods',
  configmaps: 'nodes/configmaps',
  secrets: 'nodes/secrets',
};
const DESCRIPTORS = { nodes, configmaps, secrets };

/** Pods per page of a node, and pages. A node has 110 pods by default. */
const PAGE_PODS = 500;
const PAGES_MAX = 20;
/** Parts of a list in one answer: nodes, or single objects. Each costs a read. */
const PARTS_MAX = 100;

export interface SiteCursor extends Cursor {
  readonly bounds?: string;
  readonly from?: string;
}

type Reads = Pick<ReadDependencies, 'storageOf' | 'changes'>;

/** Names of nodes, in order: a user may follow their objects of this resource. Empty: of none. */
export async function followedNodes(
  authorizer: Pick<Authorizer, 'rulesHeld'>,
  user: UserInfo,
  { group, resource }: ResourceName,
  nowMs: number,
): Promise<readonly string[]> {
  const granted = group === '' ? GRANTED[resource] : undefined;
  if (granted === undefined) return [];
  const { rules } = await authorizer.rulesHeld(user, '', nowMs);
  const names = rules.filter((rule) => isOn(rule, granted)).flatMap(({ resourceNames = [] }) => resourceNames);
  return [...new Set(names)].sort();
}

const isOn = ({ verbs = [], apiGroups = [], resources = [] }: PolicyRule, granted: string): boolean =>
  [verbs, apiGroups, resources].every((each, index) =>
    each.some((value) => value === ALL || value === ['watch', '', granted][index]),
  );

/** One outcome in JSON. `room` becomes smaller. */
export async function readSite(
  dependencies: Reads,
  cursor: SiteCursor,
  nodeNames: readonly string[],
  { room, consistent }: { readonly room: Spendable; readonly consistent: boolean },
): Promise<string> {
  const { group, resource, after, from, bounds = '' } = cursor;
  const changes = (more: boolean, of: string): string =>
    JSON.stringify({
      ...{ group, resource, outcome: 'changes', through: String(after), more, changes: [], bounds: of },
    } satisfies ChangesOfResource);
  if (from === undefined && (await isQuiet(dependencies, cursor, nodeNames, consistent))) return changes(false, bounds);
  const set = await followedSet(dependencies, resource, nodeNames);
  const isSame = setOf(bounds) === setOf(set.bounds);
  if (from !== undefined && !isSame) return JSON.stringify({ group, resource, outcome: 'expired' });
  const hasRoom = room.changes > 0 && room.bytes > 0;
  if (!hasRoom && isSame) return changes(true, set.bounds);
  if (from === undefined && isSame && after > 0) {
    const read = JSON.parse(await readOne(dependencies.changes, cursor, room, { sees: set.has })) as ChangesOfResource;
    if (read.outcome !== 'expired') return JSON.stringify({ ...read, bounds: set.bounds });
  }
  return JSON.stringify(await listedPage(dependencies, cursor, set, room));
}

interface FollowedSet {
  readonly bounds: string;
  /** What a list reads, part by part. */
  readonly parts: readonly string[];
  has(object: KubeObject): boolean;
}

/** `<version of pods>:<hash of the nodes>:<hash of the objects>`. What no pod decides has version 0. */
const setOf = (bounds: string): string => bounds.slice(bounds.indexOf(':') + 1);
const versionIn = (bounds: string): number => Number(bounds.slice(0, bounds.indexOf(':')));
const hashed = (parts: readonly string[]): string => createHash('sha256').update(parts.join('\n')).digest('base64url');

/** Neither the set nor the resource has changed. */
async function isQuiet(
  { changes }: Reads,
  { resource, after, bounds = '' }: SiteCursor,
  nodeNames: readonly string[],
  consistent: boolean,
): Promise<boolean> {
  if (after === 0 || !setOf(bounds).startsWith(`${hashed(nodeNames)}:`)) return false;
  const version = versionIn(bounds);
  const ofPods = version === 0 ? [] : [{ resource: 'pods', after: version }];
  return (await changes.areQuiet([{ resource, after }, ...ofPods], { consistent })).every((each) => each);
}

async function followedSet(dependencies: Reads, resource: string, nodeNames: readonly string[]): Promise<FollowedSet> {
  const ofNodes = hashed(nodeNames);
  if (resource === 'nodes' || resource === 'pods') {
    const names = new Set(nodeNames);
    return {
      bounds: `0:${ofNodes}:`,
      parts: nodeNames,
      has: ({ metadata, spec }) => names.has(resource === 'nodes' ? (metadata.name ?? '') : String(spec?.['nodeName'])),
    };
  }
  // Read before the pods: what is bound meanwhile changes the set the next time.
  const version = await dependencies.changes.currentVersion('pods');
  const references = new Set<string>();
  for (const nodeName of nodeNames) {
    for await (const pod of podsOf(dependencies, nodeName)) {
      for (const reference of referencesOf(pod)) if (reference.startsWith(`${resource}/`)) references.add(reference);
    }
  }
  const parts = [...references].sort();
  return {
    bounds: `${version}:${ofNodes}:${hashed(parts)}`,
    parts,
    has: ({ metadata: { namespace = '', name = '' } }) =>
      references.has(referenceKey(resource as ReferencedResource, namespace, name)),
  };
}

async function* podsOf({ storageOf }: Reads, nodeName: string): AsyncGenerator<KubeObject> {
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = { namespace: '', limit: PAGE_PODS, nodeName, ...defined({ continueAfter: after }) };
    const { items, next } = await storageOf(pods).list(query);
    // A storage without an index for nodes returns the pods of all nodes.
    yield* items.filter(({ spec }) => spec?.['nodeName'] === nodeName);
    if (next === undefined) return;
    after = next;
  }
}

/** The objects of the parts from `from` on, as many as there is room for, and one part at least. */
async function listedPage(
  dependencies: Reads,
  { group, resource, from = '0' }: SiteCursor,
  { bounds, parts }: FollowedSet,
  room: Spendable,
): Promise<ChangesOfResource> {
  const through = String(await dependencies.changes.currentVersion(resource));
  const objects: KubeObject[] = [];
  const first = Number(from);
  if (!Number.isSafeInteger(first)) return { group, resource, outcome: 'expired' };
  const end = Math.min(parts.length, first + PARTS_MAX);
  let at = first;
  for (; at < end && (at === first || room.bytes > 0); at += 1) {
    for await (const object of objectsOf(dependencies, resource, parts[at]!)) {
      objects.push(object);
      room.bytes -= Buffer.byteLength(JSON.stringify(object));
    }
  }
  return {
    group,
    resource,
    outcome: 'listed',
    through,
    bounds,
    objects,
    ...(at < parts.length && { next: String(at) }),
  };
}

async function* objectsOf(dependencies: Reads, resource: string, part: string): AsyncGenerator<KubeObject> {
  if (resource === 'pods') return yield* podsOf(dependencies, part);
  const [namespace, name] = resource === 'nodes' ? ['', part] : part.split('/').slice(1);
  const found = await dependencies.storageOf(DESCRIPTORS[resource as keyof typeof DESCRIPTORS]).get(namespace!, name!);
  if (found !== undefined) yield found;
}
