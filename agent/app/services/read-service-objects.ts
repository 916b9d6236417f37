/**
 * Keeps a copy of the Services, EndpointSlices and NetworkPolicies of the cluster: lists at first, then changes by
 * ChangeReads (shared/watches/change-read.ts). A heartbeat's answer says when to read. While there are policies, the
 * copy has what they select as well.
 *
 * The copy is plain data: an agent stores it, and starts with it while the API does not answer. A read that fails
 * half-way returns no copy, so the caller keeps the last complete one. A change that is delivered again is applied
 * again, in the same order, with the same end. A resource is listed anew when the changes after its cursor have
 * expired, and all are after another backup of the cluster was restored.
 *
 * Cost of a read without news: one request, and a read unit per shard of the three resources.
 */
import { defined } from '../../../shared/defined.ts';
import type {
  KubeEndpointSlice,
  KubeNetworkPolicy,
  KubeObject,
  KubePod,
  KubeService,
} from '../../../shared/kinds/types.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { recordOf, recordsOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import type { ChangeCursor, ChangeRead, ChangesOfResource, ReadChange } from '../../../shared/watches/change-read.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import { answeredWith, describeAnswer } from '../../rules/kube-answer.ts';

const PAGE_OBJECTS = 250;
/** At most 10,000 objects of a resource. */
const PAGES_MAX = 40;
/** Each brings up to 1,000 changes, or makes lists. */
const ROUNDS_MAX = 40;

const RESOURCES = {
  services: { group: '', resource: 'services', path: '/api/v1/services' },
  endpointSlices: {
    group: 'discovery.k8s.io',
    resource: 'endpointslices',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
  },
  networkPolicies: {
    group: 'networking.k8s.io',
    resource: 'networkpolicies',
    path: '/apis/networking.k8s.io/v1/networkpolicies',
  },
  // By ChangeReads alone: of others' pods a node reads what selectors match.
  pods: { group: '', resource: 'pods' },
  namespaces: { group: '', resource: 'namespaces' },
} as const;
type Part = keyof typeof RESOURCES;
type ListedPart = 'services' | 'endpointSlices' | 'networkPolicies';
const PARTS: readonly ListedPart[] = ['services', 'endpointSlices', 'networkPolicies'];
/** Followed while there are NetworkPolicies. */
const PEERS = ['pods', 'namespaces'] as const;
const CHANGE_READS = '/apis/nodekeeper.dev/v1alpha1/changereads';

export interface ServiceObjects {
  readonly services: readonly KubeService[];
  readonly endpointSlices: readonly KubeEndpointSlice[];
  readonly networkPolicies: readonly KubeNetworkPolicy[];
  /** While there are NetworkPolicies: labels, node, addresses and named ports of every pod; labels of namespaces. */
  readonly pods?: readonly KubePod[];
  readonly namespaces?: readonly KubeObject[];
  /** By list above: the copy has every change up to this resourceVersion. */
  readonly cursors: Readonly<Partial<Record<Part, string>>>;
  /** Names the history of the cluster's store. */
  readonly history?: string;
}

export type ServicesRead =
  /** `isChanged`: the objects differ from those that were known. */
  | { readonly kind: 'read'; readonly objects: ServiceObjects; readonly isChanged: boolean }
  | { readonly kind: 'failed'; readonly why: string };

/** Why the copy could not be brought up to date. */
class ReadFailed extends Error {
  override readonly name = 'ReadFailed';
}

/** @param known the copy of the last read; undefined: there is none */
export async function readServiceObjects(
  api: KubeApi,
  known: ServiceObjects | undefined,
  stop?: AbortSignal,
): Promise<ServicesRead> {
  try {
    return await readAll(api, known, stop);
  } catch (fault) {
    if (fault instanceof ReadFailed) return { kind: 'failed', why: fault.message };
    throw fault;
  }
}

interface Copy {
  readonly objects: Map<string, KubeObject>;
  cursor: string;
}

type Copies = Map<Part, Copy>;

async function readAll(
  api: KubeApi,
  known: ServiceObjects | undefined,
  stop: AbortSignal | undefined,
): Promise<ServicesRead> {
  const copies: Copies = new Map();
  for (const part of [...PARTS, ...PEERS]) {
    const [objects, cursor] = [known?.[part], known?.cursors[part]];
    if (objects !== undefined && cursor !== undefined) copies.set(part, { objects: byName(objects), cursor });
  }
  let history = known?.history;
  let isChanged = known === undefined;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    for (const part of PARTS) {
      if (copies.has(part)) continue;
      copies.set(part, await list(api, part, stop));
      isChanged = true;
    }
    const hasPolicies = copies.get('networkPolicies')!.objects.size > 0;
    for (const part of PEERS) {
      if (copies.has(part) === hasPolicies) continue;
      if (hasPolicies) copies.set(part, await listPeers(api, part, stop));
      else copies.delete(part);
      isChanged = true;
    }
    const followed = [...copies.keys()];
    const read = await changes(api, copies, stop);
    if (history !== undefined && read.history !== history) {
      copies.clear();
      history = read.history;
      continue;
    }
    history = read.history;
    let isComplete = true;
    for (const [index, part] of followed.entries()) {
      const outcome = read.outcomes[index]!;
      if (outcome.outcome === 'changes') {
        const copy = copies.get(part)!;
        if (apply(copy, outcome.changes)) isChanged = true;
        copy.cursor = outcome.through;
        if (outcome.more) isComplete = false;
      } else {
        copies.delete(part);
        isComplete = false;
      }
    }
    const isFollowed = copies.has('pods') === (copies.get('networkPolicies')?.objects.size ?? 0) > 0;
    if (isComplete && isFollowed) return { kind: 'read', objects: plain(copies, history), isChanged };
  }
  throw new ReadFailed(`the changes of Services have no end after ${ROUNDS_MAX} requests`);
}

const nameOf = ({ metadata: { namespace = '', name = '' } }: KubeObject): string => `${namespace}/${name}`;
const byName = (objects: readonly KubeObject[]): Map<string, KubeObject> =>
  new Map(objects.map((object) => [nameOf(object), object]));

function plain(copies: Copies, history: string | undefined): ServiceObjects {
  const cursors: Partial<Record<Part, string>> = {};
  const objects: Partial<Record<Part, readonly KubeObject[]>> = {};
  for (const [part, copy] of copies) {
    cursors[part] = copy.cursor;
    objects[part] = [...copy.objects.values()];
  }
  return { ...objects, cursors, ...defined({ history }) } as ServiceObjects;
}

/** Whether an object is another one than before. Of a pod, most changes do not concern the part that is known. */
function apply({ objects }: Copy, changes: readonly ReadChange[]): boolean {
  let isChanged = false;
  for (const { type, object } of changes) {
    const name = nameOf(object);
    const before = objects.get(name);
    if (type === 'DELETED') objects.delete(name);
    else objects.set(name, object);
    const after = objects.get(name);
    if (!jsonEqual(withoutVersion(before), withoutVersion(after))) isChanged = true;
  }
  return isChanged;
}

function withoutVersion(object: KubeObject | undefined): unknown {
  if (object === undefined) return undefined;
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** All pages, by the cursor of the first one. */
async function listPeers(api: KubeApi, part: (typeof PEERS)[number], stop: AbortSignal | undefined): Promise<Copy> {
  const found: KubeObject[] = [];
  let cursor: string | undefined;
  let from: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { outcomes } = await answered(api, [{ ...RESOURCES[part], after: '0', ...defined({ from }) }], stop);
    const [outcome] = outcomes;
    if (outcome?.outcome !== 'listed') throw new ReadFailed(`the ${part} cannot be listed: ${whyOf(outcome)}`);
    cursor ??= outcome.through;
    found.push(...objectsIn(outcome.objects));
    from = outcome.next;
    if (from === undefined) return { objects: byName(found), cursor };
  }
  throw new ReadFailed(`the ${part} of the cluster have more than ${PAGES_MAX} pages`);
}

async function list(api: KubeApi, part: ListedPart, stop: AbortSignal | undefined): Promise<Copy> {
  const { path, resource } = RESOURCES[part];
  const found: KubeObject[] = [];
  let cursor = '';
  let token = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await api.send({
      method: 'GET',
      path: `${path}?limit=${PAGE_OBJECTS}${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`,
      ...defined({ signal: stop }),
    });
    if (answer.kind !== 'answered' || !answeredWith(answer, 200)) throw new ReadFailed(describeAnswer(answer));
    const body = recordOf(answer.body);
    const metadata = recordOf(body['metadata']);
    const version = textOf(metadata['resourceVersion']);
    if (!Array.isArray(body['items']) || version === '') throw new ReadFailed(`the answer is no list of ${resource}`);
    // What the later pages have from after it is delivered again.
    if (cursor === '') cursor = version;
    found.push(...objectsIn(body['items']));
    token = textOf(metadata['continue']);
    if (token === '') return { objects: byName(found), cursor };
  }
  throw new ReadFailed(`the cluster has more than ${PAGE_OBJECTS * PAGES_MAX} ${resource}`);
}

const objectsIn = (items: unknown): readonly KubeObject[] =>
  recordsOf(items).map((item): KubeObject => ({ ...item, metadata: recordOf(item['metadata']) }));

interface Read<Outcome> {
  /** In the order of the question. */
  readonly outcomes: readonly Outcome[];
  readonly history: string | undefined;
}

/** The changes that a heartbeat's answer reported are in the answer. */
async function answered(
  api: KubeApi,
  cursors: readonly ChangeCursor[],
  stop: AbortSignal | undefined,
): Promise<Read<ChangesOfResource>> {
  const resources = cursors.map(({ group, resource, after, from }) => ({
    group,
    resource,
    after,
    ...defined({ from }),
  }));
  const body: ChangeRead = {
    apiVersion: 'nodekeeper.dev/v1alpha1',
    kind: 'ChangeRead',
    spec: { resources, consistent: true },
  };
  const answer = await api.send({ method: 'POST', path: CHANGE_READS, body, ...defined({ signal: stop }) });
  if (answer.kind !== 'answered' || !answeredWith(answer, 201)) throw new ReadFailed(describeAnswer(answer));
  const status = recordOf(recordOf(answer.body)['status']);
  const outcomes = recordsOf(status['resources']) as unknown as readonly ChangesOfResource[];
  for (const [index, { group, resource }] of cursors.entries()) {
    const outcome = outcomes[index];
    if (outcome?.group !== group || outcome.resource !== resource) {
      throw new ReadFailed(`the answer has no changes of ${resource}`);
    }
  }
  return { outcomes, history: textOf(status['history']) || undefined };
}

type Change = Extract<ChangesOfResource, { outcome: 'changes' | 'expired' }>;

/** In the order of the copies. */
async function changes(api: KubeApi, copies: Copies, stop: AbortSignal | undefined): Promise<Read<Change>> {
  const cursors = [...copies].map(([part, { cursor }]) => ({ ...RESOURCES[part], after: cursor }));
  const { outcomes, history } = await answered(api, cursors, stop);
  return {
    history,
    outcomes: outcomes.map((outcome): Change => {
      if (outcome.outcome === 'expired') return outcome;
      const isUsable = outcome.outcome === 'changes' && /^\d+$/.test(outcome.through);
      if (!isUsable) throw new ReadFailed(`the changes of ${outcome.resource} cannot be read: ${whyOf(outcome)}`);
      const read = outcome.changes.map((change) => ({ ...change, object: objectsIn([change.object])[0]! }));
      return { ...outcome, changes: read };
    }),
  };
}

const whyOf = (outcome: ChangesOfResource | undefined): string =>
  outcome !== undefined && 'message' in outcome ? outcome.message : `the outcome is ${outcome?.outcome}`;
