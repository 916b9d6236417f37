/**
 * The roles and bindings of the cluster in memory. A heartbeat never reads them, and a request that a built-in rule
 * allows does not either (authorizer.ts).
 *
 * A kind is read again when its change log has a newer commit. That is checked when the last check is older than
 * CHECK_MS, and on a refusal when it is older than RECHECK_MS: a new grant holds within a second, a withdrawn one is
 * accepted for up to CHECK_MS. Writes of this process are seen at once.
 *
 * Cost: a check is 2 read units, half a unit per kind. A changed kind of the cluster costs one read unit per 4 KB of
 * its objects. Roles and RoleBindings are read per namespace, so the objects of one namespace cannot delay another. A
 * cluster without such objects is never listed.
 */

import type { ListPage, ListQuery } from '../api/resource-storage.ts';
import { defined } from '../defined.ts';
import { effectiveRules } from '../kinds/roles/aggregation.ts';
import type { PolicyView } from '../kinds/roles/grants.ts';
import type { KubeClusterRole, KubeObject, KubeRole, KubeRoleBinding, PolicyRule } from '../kinds/types.ts';
import type { ChangeLog } from '../store/change-log.ts';

/** Age of the last check until which an answer needs no other. Milliseconds. */
export const CHECK_MS = 5_000;
/** The same for a refusal. Milliseconds. */
export const RECHECK_MS = 1_000;

const KINDS = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'] as const;
type Kind = (typeof KINDS)[number];

/** Namespaces in memory. The least recent one is dropped first. */
const NAMESPACES_MAX = 500;
/** A page of the largest objects has 10 MB. */
const PAGE_ITEMS = 100;
/** Objects of one kind in one namespace that are evaluated: 10,000. Rules only add, so the rest grants nothing. */
const PAGES_MAX = 100;
/** The same in characters of JSON. Otherwise large bindings in one namespace could exhaust the memory. */
const CHARACTERS_MAX = 10_000_000;
/** The limit for all namespaces in memory. The least recent one is dropped first. */
const CHARACTERS_IN_MEMORY_MAX = 50_000_000;

export interface PolicyCacheOptions {
  readonly changes: Pick<ChangeLog, 'newestCommits'>;
  /** Reads stored objects, without the default ones. */
  readonly list: (kind: Kind, query: ListQuery) => Promise<ListPage>;
  /** Ordered by name. */
  readonly defaultRoles: readonly KubeClusterRole[];
  readonly defaultBindings: readonly KubeRoleBinding[];
}

export interface Policies {
  /**
   * The policies for a namespace, or for the cluster with ''.
   *
   * @param ageMaxMs age of the last check that is accepted
   */
  view(namespace: string, at: { readonly nowMs: number; readonly ageMaxMs: number }): Promise<PolicyView>;
  /** True if the last check is younger than this. */
  isFresh(at: { readonly nowMs: number; readonly ageMaxMs: number }): boolean;
  /** The ClusterRoles, ordered by name: the default ones, and those stored. */
  clusterRoles(nowMs: number): Promise<readonly KubeClusterRole[]>;
  /** This process wrote a role or a binding. */
  changed(): void;
}

type Versions = Readonly<Record<Kind, number>>;

/** Objects of one kind and namespace, with the version of the change log that was read before them. */
interface Known<T extends KubeObject> {
  readonly version: number;
  readonly objects: readonly T[];
  /** The length of their JSON. */
  readonly characters: number;
}

interface Cluster {
  readonly roles: Known<KubeClusterRole>;
  readonly bindings: Known<KubeRoleBinding>;
  readonly rules: Map<string, readonly PolicyRule[]>;
}

interface Namespace {
  readonly roles: Known<KubeRole>;
  readonly bindings: Known<KubeRoleBinding>;
}

/** A review may name any text; another one has no objects, and may be longer than a key of the store. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

const NOTHING = { version: 0, objects: [], characters: 0 };
const EMPTY: Namespace = { roles: NOTHING, bindings: NOTHING };

const charactersOf = ({ roles, bindings }: Namespace): number => roles.characters + bindings.characters;

/** Objects to read, as of at least this version. */
interface Place {
  readonly kind: Kind;
  readonly namespace: string;
  readonly version: number;
}

/** The roles and bindings that were read, each with the version that was committed before. */
function policyMemory(options: PolicyCacheOptions) {
  const { defaultRoles, defaultBindings } = options;
  const roleNames = new Set(defaultRoles.map(({ metadata }) => metadata.name));
  const bindingNames = new Set(defaultBindings.map(({ metadata }) => metadata.name));
  const namespaces = new Map<string, Namespace>();
  let cluster: Cluster = {
    roles: { ...NOTHING, objects: defaultRoles },
    bindings: { ...NOTHING, objects: defaultBindings },
    rules: new Map(),
  };

  /** Returns `known` if nothing was committed since. */
  async function read<T extends KubeObject>(place: Place, known: Known<T>): Promise<Known<T>> {
    const { version } = place;
    return version === known.version ? known : { version, ...(await listAll<T>(options, place)) };
  }

  function keepInMemory(namespace: string, current: Namespace): void {
    namespaces.delete(namespace);
    namespaces.set(namespace, current);
    let characters = [...namespaces.values()].reduce((sum, each) => sum + charactersOf(each), 0);
    for (const [oldest, { roles, bindings }] of namespaces) {
      if (namespaces.size <= NAMESPACES_MAX && characters <= CHARACTERS_IN_MEMORY_MAX) return;
      namespaces.delete(oldest);
      characters -= charactersOf({ roles, bindings });
    }
  }

  return {
    async cluster(versions: Versions): Promise<Cluster> {
      const [roles, bindings] = await Promise.all([
        read({ kind: 'clusterroles', namespace: '', version: versions.clusterroles }, cluster.roles),
        read({ kind: 'clusterrolebindings', namespace: '', version: versions.clusterrolebindings }, cluster.bindings),
      ]);
      if (roles === cluster.roles && bindings === cluster.bindings) return cluster;
      // An unchanged kind has its default objects already, which merging removes and adds again.
      cluster = {
        roles: { ...roles, objects: merged(defaultRoles, roleNames, roles.objects) },
        bindings: { ...bindings, objects: merged(defaultBindings, bindingNames, bindings.objects) },
        rules: new Map(),
      };
      return cluster;
    },

    async namespace(namespace: string, versions: Versions): Promise<Namespace> {
      if (!NAMESPACE.test(namespace)) return EMPTY;
      const known = namespaces.get(namespace) ?? EMPTY;
      const [roles, bindings] = await Promise.all([
        read({ kind: 'roles', namespace, version: versions.roles }, known.roles),
        read({ kind: 'rolebindings', namespace, version: versions.rolebindings }, known.bindings),
      ]);
      const current = { roles, bindings };
      keepInMemory(namespace, current);
      return current;
    },
  };
}

export function policyCache(options: PolicyCacheOptions): Policies {
  const memory = policyMemory(options);
  let versions: Versions = { clusterroles: 0, clusterrolebindings: 0, roles: 0, rolebindings: 0 };
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  /** Writes of this process, and how many of them the last check has seen. */
  let writes = 0;
  let writesChecked = 0;

  async function check(nowMs: number): Promise<void> {
    // The heads may not show a write of this process yet if the read is eventually consistent.
    const current = writes;
    const newest = await options.changes.newestCommits(KINDS, { consistent: current !== writesChecked });
    const entries = KINDS.map((kind, index) => [kind, Math.max(versions[kind], newest[index] ?? 0)] as const);
    versions = Object.fromEntries(entries) as Versions;
    writesChecked = current;
    // A write during the check needs another one.
    if (current === writes) checkedAtMs = nowMs;
  }

  // A check time in the future means that the clock was set back.
  const isFresh: Policies['isFresh'] = ({ nowMs, ageMaxMs }) => Math.abs(nowMs - checkedAtMs) < ageMaxMs;

  return {
    isFresh,
    async view(namespace, at) {
      if (!isFresh(at)) await check(at.nowMs);
      const [cluster, inNamespace] = await Promise.all([
        memory.cluster(versions),
        memory.namespace(namespace, versions),
      ]);
      return viewOf(namespace, cluster, inNamespace);
    },
    async clusterRoles(nowMs) {
      if (!isFresh({ nowMs, ageMaxMs: CHECK_MS })) await check(nowMs);
      return (await memory.cluster(versions)).roles.objects;
    },
    changed() {
      writes += 1;
      checkedAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}

function viewOf(namespace: string, { roles, bindings, rules }: Cluster, inNamespace: Namespace): PolicyView {
  return {
    namespace,
    clusterRoleBindings: bindings.objects,
    roleBindings: inNamespace.bindings.objects,
    rulesOf(kind, name) {
      if (kind === 'Role') return rulesIn(inNamespace.roles.objects.find((role) => role.metadata.name === name));
      const known = rules.get(name);
      if (known !== undefined) return known;
      const role = roles.objects.find(({ metadata }) => metadata.name === name);
      // Nothing of a role that does not exist: a user who may write bindings could name any number of them.
      if (role === undefined) return undefined;
      const found = effectiveRules(role, roles.objects);
      rules.set(name, found);
      return found;
    },
  };
}

const rulesIn = (role: KubeRole | undefined): readonly PolicyRule[] | undefined =>
  role === undefined ? undefined : (role.rules ?? []);

/** Default objects hide stored ones of the same name. Ordered by name. */
function merged<T extends KubeObject>(
  defaults: readonly T[],
  names: ReadonlySet<string | undefined>,
  objects: readonly T[],
): readonly T[] {
  const all = [...defaults, ...objects.filter(({ metadata }) => !names.has(metadata.name))];
  return all.sort((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1));
}

async function listAll<T extends KubeObject>(
  { list }: PolicyCacheOptions,
  { kind, namespace }: Place,
): Promise<Omit<Known<T>, 'version'>> {
  const objects: T[] = [];
  let characters = 0;
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await list(kind, { namespace, limit: PAGE_ITEMS, ...defined({ continueAfter: after }) });
    for (const object of read.items as readonly T[]) {
      const more = JSON.stringify(object).length;
      if (characters + more > CHARACTERS_MAX) return { objects, characters };
      objects.push(object);
      characters += more;
    }
    if (read.next === undefined) break;
    after = read.next;
  }
  return { objects, characters };
}
