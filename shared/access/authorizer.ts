/**
 * Decides whether a user may do something: by the built-in rules, then by roles and bindings. Requests, reviews,
 * impersonation and the check of escalation use it.
 *
 * The node graph is which Secrets, ConfigMaps, claims and volumes a node may read: those that its own pods refer to.
 * Kubernetes: "Using Node Authorization"; upstream plugin/pkg/auth/authorizer/node/node_authorizer.go.
 *
 * Cost: nothing for what a built-in rule allows; otherwise that of policy-cache.ts. For a node one query of its pods
 * per CACHE_MS, and one for each read of an object that none of them refers to.
 */

import type { ResourceStorage } from '../api/resource-storage.ts';
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { persistentvolumes } from '../kinds/persistentvolumes/serve.ts';
import { type ReferencedResource, referenceKey, referencesOf } from '../kinds/pods/pod-references.ts';
import { pods } from '../kinds/registry.ts';
import { decideByRbac, faultsText, rulesGranted } from '../kinds/roles/grants.ts';
import type { RuleRequest } from '../kinds/roles/policy-rule.ts';
import type { PolicyRule } from '../kinds/types.ts';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import type { ResourceTarget } from '../kubernetes/request.ts';
import { parseFieldSelector } from '../kubernetes/selectors.ts';
import {
  type AccessAnswer,
  type AccessQuestion,
  type AccessRule,
  authorize,
  authorizePath,
  pathRulesFor,
  readsByReference,
  rulesFor,
  rulesToGrant,
} from './authorize.ts';
import { CHECK_MS, type Policies, RECHECK_MS } from './policy-cache.ts';
import type { UserInfo } from './user-info.ts';

/** A request for a resource. */
export interface ResourceQuestion extends AccessQuestion {
  /** The query of the request, for a node that reads an object by its name in a selector. */
  readonly query?: URLSearchParams;
}

export interface PathQuestion {
  readonly verb: string;
  readonly path: string;
}

export interface UserRules {
  readonly resourceRules: readonly AccessRule[];
  readonly nonResourceRules: readonly { verbs: readonly string[]; nonResourceURLs: readonly string[] }[];
  /** Why rules may be missing; '' if none are. */
  readonly fault: string;
}

export interface Authorizer {
  /** @param ageMaxMs age of the roles and bindings that is accepted; absent: CHECK_MS */
  authorize(user: UserInfo, question: ResourceQuestion, nowMs: number, ageMaxMs?: number): Promise<AccessAnswer>;
  authorizePath(user: UserInfo, question: PathQuestion, nowMs: number): Promise<AccessAnswer>;
  /** The rules of a user in a namespace, for `kubectl auth can-i --list`. */
  rulesOf(user: UserInfo, namespace: string, nowMs: number): Promise<UserRules>;
  /** The rules that a user holds without further limit, and may therefore grant to others. */
  rulesHeld(user: UserInfo, namespace: string, nowMs: number): Promise<{ rules: PolicyRule[]; faults: string[] }>;
  /** The rules of a role. undefined: there is no such role. @param namespace that of the binding, '' for the cluster */
  rulesOfRole(
    role: { readonly kind: 'Role' | 'ClusterRole'; readonly name: string },
    namespace: string,
    nowMs: number,
  ): Promise<readonly PolicyRule[] | undefined>;
}

export interface AuthorizerOptions {
  readonly policies: Policies;
  readonly nodeGraph: NodeGraph;
  /** Rules of the group nodekeeper:viewers. */
  readonly viewerRules: readonly AccessRule[];
}

export function authorizer({ policies, nodeGraph, viewerRules }: AuthorizerOptions): Authorizer {
  /** A refusal is checked again with newer policies: a user who was just granted a role expects to use it. */
  async function byRbac(
    user: UserInfo,
    request: RuleRequest,
    namespace: string,
    { nowMs, ageMaxMs = CHECK_MS }: { readonly nowMs: number; readonly ageMaxMs?: number | undefined },
  ): Promise<AccessAnswer> {
    const answer = decideByRbac(user, request, await policies.view(namespace, { nowMs, ageMaxMs }));
    if (answer.allowed || policies.isFresh({ nowMs, ageMaxMs: RECHECK_MS })) return answer;
    return decideByRbac(user, request, await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS }));
  }

  return {
    async authorize(user, question, nowMs, ageMaxMs) {
      const builtIn = authorize(user, question);
      const { verb, group, resource, subresource, namespace, name } = question;
      const why = builtIn.allowed
        ? await nodeGraph.refusal({ user, verb, target: question, query: question.query, nowMs })
        : builtIn.reason;
      if (why === undefined) return builtIn;
      const answer = await byRbac(user, { verb, group, resource, subresource, name }, namespace, { nowMs, ageMaxMs });
      if (answer.allowed) return answer;
      // Upstream also asks its authorizers one after the other.
      return { allowed: false, reason: [why, answer.reason].filter((reason) => reason !== '').join('\n') };
    },

    async authorizePath(user, question, nowMs) {
      const builtIn = authorizePath(user, question);
      return builtIn.allowed ? builtIn : byRbac(user, question, '', { nowMs });
    },

    async rulesOf(user, namespace, nowMs) {
      const granted = rulesGranted(user, await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS }));
      const ofResources = granted.rules.filter(({ resources = [] }) => resources.length > 0);
      const ofPaths = granted.rules.filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0);
      return {
        resourceRules: distinct([...rulesFor(user, viewerRules), ...ofResources.map(resourceRule)]),
        nonResourceRules: distinct([
          ...pathRulesFor(user),
          ...ofPaths.map(({ verbs = [], nonResourceURLs = [] }) => ({ verbs, nonResourceURLs })),
        ]),
        fault: granted.faults.length === 0 ? '' : faultsText(granted.faults),
      };
    },

    async rulesHeld(user, namespace, nowMs) {
      const granted = rulesGranted(user, await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS }));
      const builtIn: readonly PolicyRule[] = [...rulesToGrant(user, viewerRules), ...pathRulesFor(user)];
      return { rules: [...builtIn, ...granted.rules], faults: granted.faults };
    },

    async rulesOfRole({ kind, name }, namespace, nowMs) {
      return (await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS })).rulesOf(kind, name);
    },
  };
}

const resourceRule = ({ verbs = [], apiGroups = [], resources = [], resourceNames = [] }: PolicyRule): AccessRule => ({
  verbs,
  apiGroups,
  resources,
  ...(resourceNames.length === 0 ? {} : { resourceNames }),
});

/** A built-in rule and a default binding may grant the same. */
function distinct<T>(rules: readonly T[]): readonly T[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

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
