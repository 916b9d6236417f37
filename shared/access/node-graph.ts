/**
 * Which Secrets, ConfigMaps, claims and volumes a node may read: those that its own pods refer to. Kubernetes: "Using
 * Node Authorization"; upstream plugin/pkg/auth/authorizer/node/node_authorizer.go.
 *
 * Cost: one query of the pods of the node per CACHE_MS, and one for each read of an object that none of them refers to.
 */

import type { ResourceStorage } from '../api/resource-storage.ts';
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { persistentvolumes } from '../kinds/persistentvolumes/serve.ts';
import { type ReferencedResource, referenceKey, referencesOf } from '../kinds/pods/pod-references.ts';
import { pods } from '../kinds/registry.ts';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import type { ResourceTarget } from '../kubernetes/request.ts';
import { parseFieldSelector } from '../kubernetes/selectors.ts';
import { readsByReference } from './authorize.ts';
import type { UserInfo } from './user-info.ts';

/** How long the references of a node are kept. A pod that was just bound is found at once, by another query. */
const CACHE_MS = 5_000;
/** Nodes in memory. The least recent one is dropped first. */
const NODES_MAX = 1_000;
const PAGE_ITEMS = 500;
/** Pods of one node that are read at most, in pages. */
const PAGES_MAX = 20;

export interface NodeGraph {
  /** Why a node may not read an object: none of its pods refers to it. undefined: no objection. */
  refusal(asked: NodeQuestion): Promise<string | undefined>;
}

export interface NodeQuestion {
  readonly user: UserInfo;
  readonly verb: string;
  readonly target: NodeTarget;
  /** The query of a list or watch. Absent: the question is about the name in `target`. */
  readonly query: URLSearchParams | undefined;
  readonly nowMs: number;
}

type NodeTarget = Pick<ResourceTarget, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>;

type Dependencies = { readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage };

export function nodeGraph(dependencies: Dependencies): NodeGraph {
  const known = new Map<string, { readonly readAtMs: number; readonly references: ReadonlySet<string> }>();

  async function read(nodeName: string, nowMs: number): Promise<ReadonlySet<string>> {
    const references = await referencesOfNode(dependencies, nodeName);
    known.delete(nodeName);
    known.set(nodeName, { readAtMs: nowMs, references });
    if (known.size > NODES_MAX) known.delete(known.keys().next().value as string);
    return references;
  }

  async function refers(nodeName: string, key: string, nowMs: number): Promise<boolean> {
    const cached = known.get(nodeName);
    if (cached !== undefined && nowMs - cached.readAtMs < CACHE_MS && cached.references.has(key)) return true;
    return (await read(nodeName, nowMs)).has(key);
  }

  return {
    async refusal({ user, verb, target, query, nowMs }) {
      const { group, resource, subresource } = target;
      const nodeName = readsByReference(user, { verb, group, resource, subresource });
      if (nodeName === undefined) return undefined;
      const key = await keyOf(dependencies, target, query);
      if (key !== undefined && (await refers(nodeName, key, nowMs))) return undefined;
      return `no relationship found between node '${nodeName}' and this object`;
    },
  };
}

async function referencesOfNode({ storageOf }: Dependencies, nodeName: string): Promise<ReadonlySet<string>> {
  const references = new Set<string>();
  const storage = storageOf(pods);
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = { namespace: '', limit: PAGE_ITEMS, nodeName, ...defined({ continueAfter: after }) };
    const { items, next } = await storage.list(query);
    // A storage without an index for nodes returns the pods of all nodes.
    for (const pod of items.filter(({ spec }) => spec?.['nodeName'] === nodeName)) {
      for (const reference of referencesOf(pod)) references.add(reference);
    }
    if (next === undefined) break;
    after = next;
  }
  return references;
}

/** The reference that allows a request. A volume is allowed by its claim. undefined: nothing can allow it. */
async function keyOf(
  { storageOf }: Dependencies,
  target: NodeTarget,
  query: URLSearchParams | undefined,
): Promise<string | undefined> {
  const { resource, namespace } = target;
  const name = target.name === '' && query !== undefined ? selectedName(query) : target.name;
  // A longer name may be longer than a key of the store.
  if (name === undefined || name === '' || name.length > NAME_LENGTH_MAX) return undefined;
  if (resource !== persistentvolumes.resource) return referenceKey(resource as ReferencedResource, namespace, name);
  const claim = (await storageOf(persistentvolumes).get('', name))?.spec?.['claimRef'];
  const { namespace: claimNamespace = '', name: claimName = '' } = (claim ?? {}) as {
    namespace?: string;
    name?: string;
  };
  return referenceKey('persistentvolumeclaims', claimNamespace, claimName);
}

function selectedName(query: URLSearchParams): string | undefined {
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  return fields.kind === 'parsed' ? fields.exact('metadata.name') : undefined;
}
