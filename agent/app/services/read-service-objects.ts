/**
 * Keeps a copy of the Services, EndpointSlices and NetworkPolicies of the cluster: lists at first, then changes by
 * ChangeReads (shared/watches/change-read.ts). A heartbeat's answer says when to read.
 *
 * The copy is plain data: an agent stores it, and starts with it while the API does not answer. A read that fails
 * half-way returns no copy, so the caller keeps the last complete one. A change that is delivered again is applied
 * again, in the same order, with the same end. A resource is listed anew when the changes after its cursor have
 * expired, and all are after another backup of the cluster was restored.
 *
 * Cost of a read without news: one request, and a read unit per shard of the three resources.
 */
import { defined } from '../../../shared/defined.ts';
import type { KubeEndpointSlice, KubeNetworkPolicy, KubeObject, KubeService } from '../../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import type { ChangeRead, ChangesOfResource, ReadChange } from '../../../shared/watches/change-read.ts';
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
} as const;
type Part = keyof typeof RESOURCES;
const PARTS = Object.keys(RESOURCES) as readonly Part[];
const CHANGE_READS = '/apis/nodekeeper.dev/v1alpha1/changereads';

export interface ServiceObjects {
  readonly services: readonly KubeService[];
  readonly endpointSlices: readonly KubeEndpointSlice[];
  readonly networkPolicies: readonly KubeNetworkPolicy[];
  /** By list above: the copy has every change up to this resourceVersion. */
  readonly cursors: Readonly<Record<Part, string>>;
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

async function readAll(
  api: KubeApi,
  known: ServiceObjects | undefined,
  stop: AbortSignal | undefined,
): Promise<ServicesRead> {
  const copies: Partial<Record<Part, Copy>> = {};
  for (const part of PARTS) {
    if (known !== undefined) copies[part] = { objects: byName(known[part]), cursor: known.cursors[part] };
  }
  let history = known?.history;
  let isChanged = known === undefined;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    for (const part of PARTS) {
      if (copies[part] !== undefined) continue;
      copies[part] = await list(api, part, stop);
      isChanged = true;
    }
    const read = await changes(api, copies as Record<Part, Copy>, stop);
    if (history !== undefined && read.history !== history) {
      for (const part of PARTS) delete copies[part];
      history = read.history;
      continue;
    }
    history = read.history;
    let isComplete = true;
    for (const [index, part] of PARTS.entries()) {
      const outcome = read.outcomes[index]!;
      if (outcome.outcome === 'changes') {
        apply(copies[part]!, outcome.changes);
        copies[part]!.cursor = outcome.through;
        if (outcome.changes.length > 0) isChanged = true;
        if (outcome.more) isComplete = false;
      } else {
        delete copies[part];
        isComplete = false;
      }
    }
    if (isComplete) return { kind: 'read', objects: plain(copies as Record<Part, Copy>, history), isChanged };
  }
  throw new ReadFailed(`the changes of Services have no end after ${ROUNDS_MAX} requests`);
}

const nameOf = ({ metadata: { namespace = '', name = '' } }: KubeObject): string => `${namespace}/${name}`;
const byName = (objects: readonly KubeObject[]): Map<string, KubeObject> =>
  new Map(objects.map((object) => [nameOf(object), object]));

function plain(copies: Readonly<Record<Part, Copy>>, history: string | undefined): ServiceObjects {
  const cursors: Partial<Record<Part, string>> = {};
  const objects: Partial<Record<Part, readonly KubeObject[]>> = {};
  for (const part of PARTS) {
    cursors[part] = copies[part].cursor;
    objects[part] = [...copies[part].objects.values()];
  }
  return { ...objects, cursors, ...defined({ history }) } as ServiceObjects;
}

function apply({ objects }: Copy, changes: readonly ReadChange[]): void {
  for (const { type, object } of changes) {
    if (type === 'DELETED') objects.delete(nameOf(object));
    else objects.set(nameOf(object), object);
  }
}

async function list(api: KubeApi, part: Part, stop: AbortSignal | undefined): Promise<Copy> {
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

interface Read {
  /** In the order of PARTS. */
  readonly outcomes: readonly Extract<ChangesOfResource, { outcome: 'changes' | 'expired' }>[];
  readonly history: string | undefined;
}

async function changes(api: KubeApi, copies: Record<Part, Copy>, stop: AbortSignal | undefined): Promise<Read> {
  const resources = PARTS.map((part) => {
    const { group, resource } = RESOURCES[part];
    return { group, resource, after: copies[part].cursor };
  });
  // The changes that a heartbeat's answer reported are in the answer.
  const body: ChangeRead = {
    apiVersion: 'nodekeeper.dev/v1alpha1',
    kind: 'ChangeRead',
    spec: { resources, consistent: true },
  };
  const answer = await api.send({ method: 'POST', path: CHANGE_READS, body, ...defined({ signal: stop }) });
  if (answer.kind !== 'answered' || !answeredWith(answer, 201)) throw new ReadFailed(describeAnswer(answer));
  const status = recordOf(recordOf(answer.body)['status']);
  const outcomes = recordsOf(status['resources']) as unknown as readonly ChangesOfResource[];
  const history = textOf(status['history']) || undefined;
  return {
    history,
    outcomes: resources.map(({ group, resource }, index) => {
      const outcome = outcomes[index];
      if (outcome?.group !== group || outcome.resource !== resource) {
        throw new ReadFailed(`the answer has no changes of ${resource}`);
      }
      if (outcome.outcome === 'expired') return outcome;
      const isUsable = outcome.outcome === 'changes' && /^\d+$/.test(outcome.through);
      if (!isUsable) throw new ReadFailed(`the changes of ${resource} cannot be read: ${whyOf(outcome)}`);
      const read = outcome.changes.map((change) => ({ ...change, object: objectsIn([change.object])[0]! }));
      return { ...outcome, changes: read };
    }),
  };
}

const whyOf = (outcome: ChangesOfResource): string =>
  'message' in outcome ? outcome.message : `the outcome is ${outcome.outcome}`;
