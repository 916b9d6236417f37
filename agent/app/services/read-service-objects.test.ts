import { describe, expect, it } from 'vitest';
import type { ChangesOfResource } from '../../../shared/watches/change-read.ts';
import { answered, refused, timedOut } from '../../../test/support/agent-api.ts';
import type { KubeAnswer, KubeRequest } from '../../ports/kube-api.ts';
import { readServiceObjects, type ServiceObjects } from './read-service-objects.ts';

const GROUPS: Readonly<Record<string, string>> = {
  services: '',
  endpointslices: 'discovery.k8s.io',
  networkpolicies: 'networking.k8s.io',
  pods: '',
  namespaces: '',
};
const object = (name: string, over: object = {}) => ({ metadata: { namespace: 'default', name, ...over } });
const list = (names: readonly string[], next?: string, resourceVersion = '5') =>
  answered(200, { metadata: { resourceVersion, continue: next }, items: names.map((name) => object(name)) });

interface Cluster {
  /** The list of a resource. Absent: empty, of version 5. */
  readonly lists?: (resource: string, query: string) => KubeAnswer | undefined;
  /** What a ChangeRead answers of a resource. Absent: no changes through 9. */
  readonly changes?: (resource: string, from: string | undefined) => object | undefined;
  readonly history?: string;
  readonly changeRead?: KubeAnswer;
}

function cluster({ lists, changes, history, changeRead }: Cluster) {
  const sent: KubeRequest[] = [];
  const none = { outcome: 'changes', through: '9', more: false, changes: [] };
  const listed = { outcome: 'listed', through: '7', bounds: 'all', objects: [] };
  const answer = ({ method, path, body }: KubeRequest): KubeAnswer => {
    if (method === 'GET') {
      const [resource = '', query = ''] = path.split('/').at(-1)!.split('?');
      return lists?.(resource, query) ?? list([]);
    }
    const { spec } = body as { spec: { resources: { resource: string; after: string; from?: string }[] } };
    const resources = spec.resources.map(({ resource, after, from }) => {
      const outcome = changes?.(resource, from) ?? (after === '0' ? listed : none);
      return { group: GROUPS[resource], resource, ...outcome };
    });
    return changeRead ?? answered(201, { status: { history, resources } });
  };
  const send = async (request: KubeRequest): Promise<KubeAnswer> => {
    sent.push(request);
    return answer(request);
  };
  const read = (known?: ServiceObjects, stop?: AbortSignal) =>
    readServiceObjects({ send, reconnect() {} }, known, stop);
  return { sent, read };
}

const KNOWN: ServiceObjects = {
  services: [object('web', { resourceVersion: '3' })],
  endpointSlices: [],
  networkPolicies: [],
  cursors: { services: '3', endpointSlices: '3', networkPolicies: '3' },
};
const changed = (...changes: readonly object[]) => ({ outcome: 'changes', through: '9', more: false, changes });
const onServices = (outcome: object) => (resource: string) => (resource === 'services' ? outcome : undefined);

describe('the first read of Services', () => {
  it('lists all pages, and asks for the changes since the first of them', async () => {
    const { sent, read } = cluster({
      lists(resource, query) {
        if (resource !== 'services') return undefined;
        return query === 'limit=250' ? list(['a'], 'b/&c') : list(['b'], '', '6');
      },
    });
    const stop = new AbortController();
    const objects = {
      services: [object('a'), object('b')],
      endpointSlices: [],
      networkPolicies: [],
      cursors: { services: '9', endpointSlices: '9', networkPolicies: '9' },
    };
    expect(await read(undefined, stop.signal)).toEqual({ kind: 'read', isChanged: true, objects });
    const { signal } = stop;
    const resources = ['services', 'endpointslices', 'networkpolicies'];
    expect(sent).toEqual([
      { method: 'GET', path: '/api/v1/services?limit=250', signal },
      { method: 'GET', path: '/api/v1/services?limit=250&continue=b%2F%26c', signal },
      { method: 'GET', path: '/apis/discovery.k8s.io/v1/endpointslices?limit=250', signal },
      { method: 'GET', path: '/apis/networking.k8s.io/v1/networkpolicies?limit=250', signal },
      {
        method: 'POST',
        path: '/apis/nodekeeper.dev/v1alpha1/changereads',
        body: {
          apiVersion: 'nodekeeper.dev/v1alpha1',
          kind: 'ChangeRead',
          spec: {
            resources: resources.map((resource) => ({ group: GROUPS[resource], resource, after: '5' })),
            consistent: true,
          },
        },
        signal,
      },
    ]);
  });

  it.each([
    ['a refusal', refused(403, 'Forbidden'), '403'],
    ['no answer', timedOut, 'no answer'],
    ['no items', answered(200, { metadata: { resourceVersion: '5' } }), 'the answer is no list of services'],
    ['no version', answered(200, { metadata: {}, items: [] }), 'the answer is no list of services'],
  ])('fails with %s to a list', async (_what, answer, why) => {
    const { sent, read } = cluster({ lists: () => answer });
    expect(await read()).toEqual({ kind: 'failed', why });
    expect(sent).toHaveLength(1);
  });

  it('fails after 40 pages', async () => {
    const { sent, read } = cluster({ lists: () => list(['a'], 'more') });
    expect(await read()).toEqual({ kind: 'failed', why: 'the cluster has more than 10000 services' });
    expect(sent).toHaveLength(40);
  });

  it('throws what is no fault of the cluster', async () => {
    const api = { send: () => Promise.reject(new TypeError('a bug')), reconnect() {} };
    await expect(readServiceObjects(api, undefined)).rejects.toThrow(new TypeError('a bug'));
  });
});

describe('a read of changes', () => {
  it.each([
    ['an addition', { type: 'ADDED', object: object('db') }, true, ['web', 'db']],
    ['another label', { type: 'MODIFIED', object: object('web', { labels: { a: 'b' } }) }, true, ['web']],
    ['another version alone', { type: 'MODIFIED', object: object('web', { resourceVersion: '8' }) }, false, ['web']],
    ['a deletion', { type: 'DELETED', object: object('web') }, true, []],
    ['a deletion that was known', { type: 'DELETED', object: object('gone') }, false, ['web']],
  ])('has news or not: %s', async (_what, change, isChanged, names) => {
    const { sent, read } = cluster({ changes: onServices(changed(change)), history: 'h1' });
    const outcome = await read({ ...KNOWN, history: 'h1' });
    expect(outcome).toMatchObject({ kind: 'read', isChanged, objects: { history: 'h1', cursors: { services: '9' } } });
    expect(outcome.kind === 'read' && outcome.objects.services.map(({ metadata }) => metadata.name)).toEqual(names);
    expect(sent).toHaveLength(1);
  });

  it('asks again while there are more, 40 times', async () => {
    let left = 2;
    const twice = cluster({
      changes: onServices({
        ...changed(),
        get more() {
          return left-- > 0;
        },
      }),
    });
    expect(await twice.read(KNOWN)).toMatchObject({ kind: 'read', isChanged: false });
    expect(twice.sent).toHaveLength(3);
    const endless = cluster({ changes: onServices({ ...changed(), more: true }) });
    const why = 'the changes of Services have no end after 40 requests';
    expect(await endless.read(KNOWN)).toEqual({ kind: 'failed', why });
    expect(endless.sent).toHaveLength(40);
  });

  it('lists again what has expired, and keeps the others', async () => {
    let isExpired = true;
    const { sent, read } = cluster({
      lists: () => list(['new']),
      changes(resource) {
        if (resource !== 'services' || !isExpired) return undefined;
        isExpired = false;
        return { outcome: 'expired' };
      },
    });
    expect(await read(KNOWN)).toMatchObject({ isChanged: true, objects: { services: [object('new')] } });
    expect(sent.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`)).toEqual([
      'POST changereads',
      'GET services?limit=250',
      'POST changereads',
    ]);
  });

  it.each([
    ['a refusal', { changeRead: refused(403, 'Forbidden') }, '403'],
    ['no answer', { changeRead: timedOut }, 'no answer'],
    ['nothing', { changeRead: answered(201, {}) }, 'the answer has no changes of services'],
    ['another resource', { changes: onServices({ resource: 'pods' }) }, 'the answer has no changes of services'],
    ['another group', { changes: onServices({ group: 'apps' }) }, 'the answer has no changes of services'],
    [
      'a forbidden resource',
      { changes: onServices({ outcome: 'forbidden', message: 'no role' }) },
      'the changes of services cannot be read: no role',
    ],
    [
      'a list',
      { changes: onServices({ outcome: 'listed' }) },
      'the changes of services cannot be read: the outcome is listed',
    ],
    ...['', 'x9', '9x'].map((through): [string, Cluster, string] => [
      `the cursor '${through}'`,
      { changes: onServices({ ...changed(), through }) },
      'the changes of services cannot be read: the outcome is changes',
    ]),
  ] satisfies [string, Cluster, string][])('fails with %s in the answer', async (_what, given, why) => {
    expect(await cluster(given).read(KNOWN)).toEqual({ kind: 'failed', why });
  });
});

describe('the pods and namespaces of policies', () => {
  const POLICIES: ServiceObjects = { ...KNOWN, networkPolicies: [object('deny')] };
  const page = (name: string, over: Partial<ChangesOfResource> = {}) => ({
    outcome: 'listed',
    through: '7',
    bounds: 'all',
    objects: [object(name)],
    ...over,
  });
  const onPods = (answer: (from: string | undefined) => object | undefined) => (resource: string, from?: string) =>
    resource === 'pods' ? answer(from) : undefined;

  it('are listed page by page, and then followed from the first page', async () => {
    let isListed = false;
    const { sent, read } = cluster({
      changes: onPods((from) => {
        if (isListed) return undefined;
        if (from === undefined) return page('a', { next: 'n1' } as never);
        isListed = true;
        return page('b', { through: '8' } as never);
      }),
    });
    const outcome = await read(POLICIES);
    expect(outcome).toMatchObject({
      isChanged: true,
      objects: { pods: [object('a'), object('b')], namespaces: [], cursors: { pods: '9', namespaces: '9' } },
    });
    const asked = sent.map(({ body }) => (body as { spec: { resources: object[] } }).spec.resources);
    const pods = { group: '', resource: 'pods' };
    expect(asked.slice(0, 3)).toEqual([
      [{ ...pods, after: '0' }],
      [{ ...pods, after: '0', from: 'n1' }],
      [{ group: '', resource: 'namespaces', after: '0' }],
    ]);
    expect(asked[3]).toContainEqual({ ...pods, after: '7' });
  });

  it('fail after 40 pages, and where they cannot be listed', async () => {
    const endless = cluster({ changes: onPods(() => page('a', { next: 'n' } as never)) });
    const why = 'the pods of the cluster have more than 40 pages';
    expect(await endless.read(POLICIES)).toEqual({ kind: 'failed', why });
    expect(endless.sent).toHaveLength(40);
    const refusing = cluster({ changes: onPods(() => ({ outcome: 'notServed', message: 'no log' })) });
    expect(await refusing.read(POLICIES)).toEqual({ kind: 'failed', why: 'the pods cannot be listed: no log' });
  });

  it('are read when the first policy comes, and forgotten with the last', async () => {
    const first = { type: 'ADDED', object: object('deny') };
    let isNew = true;
    const { read } = cluster({
      changes(resource) {
        if (resource !== 'networkpolicies' || !isNew) return undefined;
        isNew = false;
        return changed(first);
      },
    });
    expect(await read(KNOWN)).toMatchObject({ isChanged: true, objects: { pods: [], namespaces: [] } });
    const none = { ...KNOWN, pods: [], namespaces: [], cursors: { ...KNOWN.cursors, pods: '3', namespaces: '3' } };
    const outcome = await cluster({}).read(none);
    expect(outcome).toMatchObject({ isChanged: true });
    expect(outcome.kind === 'read' && 'pods' in outcome.objects).toBe(false);
  });
});
