import { describe, expect, it } from 'vitest';
import { fleetStore } from '../../../shared/fleet/fleet-store.ts';
import { UNTRIED_GATE } from '../../../shared/fleet/gate.ts';
import {
  READERS_COUNTED_MAX,
  SERVICES_ANNOTATION,
  settleServiceReader,
} from '../../../shared/fleet/nodes/service-readers.ts';
import { NO_DISRUPTION } from '../../../shared/fleet/zone-state.ts';
import { configmaps } from '../../../shared/kinds/configmaps/serve.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { resourcequotas } from '../../../shared/kinds/quotas/serve.ts';
import { nodes } from '../../../shared/kinds/registry.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { APPLY, apiInMemory, JSON_PATCH, MERGE } from '../../../test/support/api-in-memory.ts';
import { chargedQuotas } from './admit-write.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC = `/apis/${RBAC_GROUP}/v1`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const USERS = {
  uma: { name: 'uma', groups: [] },
  n1: { name: 'system:node:n1', groups: ['system:nodes'] },
  probe: { name: 'system:nodekeeper:probe', groups: ['nodekeeper:probes'] },
};
const as = (who: keyof typeof USERS) => ({ headers: { authorization: `Bearer ${who}` } });

describe('a write that creates', () => {
  async function cluster(verbs: readonly string[]) {
    const api = apiInMemory({ users: USERS });
    const rules = [{ verbs, apiGroups: ['coordination.k8s.io'], resources: ['leases'] }];
    await api.send('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'r' }, rules } });
    const roleRef = { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: 'r' };
    const subjects = [{ kind: 'User', apiGroup: RBAC_GROUP, name: 'uma' }];
    await api.send('POST', `${RBAC}/clusterrolebindings`, { body: { metadata: { name: 'b' }, roleRef, subjects } });
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'l' },
      spec: { leaseDurationSeconds: 40 },
    };
    return {
      post: () => api.send('POST', LEASES, { body, ...as('uma') }),
      put: () => api.send('PUT', `${LEASES}/l`, { body, ...as('uma') }),
      apply: () => api.send('PATCH', `${LEASES}/l?fieldManager=m`, { body, contentType: APPLY, ...as('uma') }),
    };
  }

  it('needs the verb create, too, and an update of what exists does not', async () => {
    const updating = await cluster(['update', 'patch']);
    const refused = {
      code: 403,
      body: {
        message:
          'leases.coordination.k8s.io "l" is forbidden: User "uma" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default"',
      },
    };
    expect(await updating.put()).toMatchObject(refused);
    expect(await updating.apply()).toMatchObject(refused);
    const creating = await cluster(['create', 'update', 'patch']);
    expect([(await creating.put()).code, (await creating.apply()).code]).toEqual([201, 200]);
    const applying = await cluster(['create', 'patch']);
    expect([(await applying.apply()).code, (await applying.apply()).code]).toEqual([201, 200]);
    const posting = await cluster(['create']);
    expect((await posting.post()).code).toBe(201);
  });
});

describe('a kind that nothing acts on', () => {
  const INGRESSES = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';
  const body = { metadata: { name: 'i' }, spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } };

  it('is refused where the policy says so, and stored ones may be changed and deleted', async () => {
    const stored = apiInMemory();
    expect((await stored.send('POST', INGRESSES, { body })).code).toBe(201);
    const strict = apiInMemory({ items: stored.items, policy: { unenforcedKinds: 'refuse' } });
    const refused = await strict.send('POST', INGRESSES, { body: { ...body, metadata: { name: 'j' } } });
    expect(refused).toMatchObject({
      code: 403,
      body: {
        message: expect.stringMatching(
          /^ingresses\.networking\.k8s\.io "j" is forbidden: the policy has unenforcedKinds: refuse, and nothing acts on it: ./,
        ),
      },
    });
    const patch = { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE };
    expect((await strict.send('PATCH', `${INGRESSES}/i`, patch)).code).toBe(200);
    expect((await strict.send('DELETE', `${INGRESSES}/i`)).code).toBe(200);
    const config = { metadata: { name: 'c' } };
    expect((await strict.send('POST', '/api/v1/namespaces/default/configmaps', { body: config })).code).toBe(201);
  });
});

describe('a NetworkPolicy', () => {
  const POLICIES = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
  const policy = (name: string) => ({ metadata: { name }, spec: { podSelector: {} } });

  /** @param all nodes that a tick has counted; undefined: none ticked */
  async function cluster(enforcing: number, all?: number) {
    const items = memoryItemStore();
    for (let index = 0; index < enforcing; index += 1) {
      const [nodeName, uid, annotations] = [`n${index}`, `u${index}`, { [SERVICES_ANNOTATION]: 'nftables' }];
      await settleServiceReader(items, { nodeName, uid }, { metadata: { name: nodeName, uid, annotations } });
    }
    if (all !== undefined) {
      const ours = { gate: UNTRIED_GATE, disruption: NO_DISRUPTION, finished: true, periodSeconds: 5 };
      await fleetStore(items).claim({ slot: 1, seenFence: 0, nowMs: 0, claimId: 'c', nodes: all, ...ours });
    }
    return items;
  }

  async function answers(items: ItemStore) {
    const warned = await apiInMemory({ items }).send('POST', POLICIES, { body: policy('a') });
    const strict = apiInMemory({ items, policy: { unenforcedKinds: 'refuse' } });
    const { code, body } = await strict.send('POST', POLICIES, { body: policy('b') });
    return [warned.code, warned.headers['warning'], code === 201 ? code : body.message];
  }

  it('is refused, or stored with a warning, where no node enforces it', async () => {
    for (const items of [await cluster(0), await cluster(0, 2)]) {
      expect(await answers(items)).toEqual([
        201,
        '299 - "the NetworkPolicy is stored: no node has an agent that enforces it (services.enabled)"',
        'networkpolicies.networking.k8s.io "b" is forbidden: the policy has unenforcedKinds: refuse, and nothing acts ' +
          'on it: no node has an agent that enforces it (services.enabled)',
      ]);
    }
  });

  it('is stored where nodes enforce it, with a warning of those that do not', async () => {
    expect(await answers(await cluster(2, 5))).toEqual([
      201,
      '299 - "3 of 5 nodes have no agent that enforces it (services.enabled)"',
      201,
    ]);
    const unknown = '299 - "some nodes may have no agent that enforces it (services.enabled)"';
    expect(await answers(await cluster(2))).toEqual([201, unknown, 201]);
    expect(await answers(await cluster(READERS_COUNTED_MAX + 1, 5_000))).toEqual([201, unknown, 201]);
    expect(await answers(await cluster(2, 2))).toEqual([201, undefined, 201]);
  });

  it('costs two reads when it is created, and none when it is changed', async () => {
    const items = await cluster(1, 1);
    const reads: string[] = [];
    const api = apiInMemory({
      items: {
        ...items,
        get(key, options) {
          reads.push(key.pk);
          return items.get(key, options);
        },
        query(request) {
          reads.push(request.pk);
          return items.query(request);
        },
      },
    });
    const ofNodes = () => reads.splice(0).filter((pk) => pk === 'service-readers' || pk === 'fleet');
    await api.send('POST', POLICIES, { body: policy('a') });
    expect(ofNodes()).toEqual(['service-readers', 'fleet']);
    await api.send('PUT', `${POLICIES}/a`, { body: policy('a') });
    await api.send('DELETE', `${POLICIES}/a`);
    expect(ofNodes()).toEqual([]);
  });
});

describe('a machine and the probe', () => {
  const NODE_LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const lease = (name: string) => ({ metadata: { name }, spec: { leaseDurationSeconds: 40 } });

  it('create no Lease of another name, and no other object', async () => {
    const api = apiInMemory({ users: USERS });
    const create = async (who: 'n1' | 'probe', name: string) => {
      const { code, body } = await api.send('POST', NODE_LEASES, { body: lease(name), ...as(who) });
      return code === 201 ? code : body.message;
    };
    const forbidden = (name: string, why: string) => `leases.coordination.k8s.io "${name}" is forbidden: ${why}`;
    expect(await create('probe', 'n1')).toBe(forbidden('n1', 'the probe may create only the Lease nodekeeper-probe'));
    expect(await create('probe', 'nodekeeper-probe')).toBe(201);
    expect(await create('n1', 'n2')).toBe(
      forbidden('n2', 'can only access node lease with the same name as the requesting node'),
    );
    expect(await create('n1', 'n1')).toBe(201);
  });

  it('see nothing of an object that they may not change by what a patch tests', async () => {
    const api = apiInMemory({ users: USERS });
    const pods = '/api/v1/namespaces/default/pods';
    const spec = { nodeName: 'n2', containers: [{ name: 'c', image: 'i' }] };
    await api.send('POST', pods, { body: { metadata: { name: 'other' }, spec } });
    const codeOf = async (value: string) => {
      const body = [{ op: 'test', path: '/spec/nodeName', value }];
      return (await api.send('PATCH', `${pods}/other/status`, { body, contentType: JSON_PATCH, ...as('n1') })).code;
    };
    expect([await codeOf('n2'), await codeOf('n3')]).toEqual([403, 403]);
  });

  it('may read an object only if it may be related to them', async () => {
    const api = apiInMemory({ users: USERS });
    const spec = (nodeName: string) => ({ nodeName, containers: [{ name: 'c', image: 'i' }] });
    const pods = '/api/v1/namespaces/default/pods';
    for (const [name, nodeName] of [
      ['own', 'n1'],
      ['other', 'n2'],
    ] as const)
      await api.send('POST', pods, { body: { metadata: { name }, spec: spec(nodeName) } });
    expect((await api.send('GET', `${pods}/own`, as('n1'))).code).toBe(200);
    expect(await api.send('GET', `${pods}/other`, as('n1'))).toMatchObject({
      code: 403,
      body: {
        message: expect.stringContaining(
          `User "system:node:n1" cannot get resource "pods" in API group "" in the namespace "default": no relationship found between node 'n1' and this object`,
        ),
      },
    });
    const attachments = '/apis/storage.k8s.io/v1/volumeattachments';
    for (const nodeName of ['n1', 'n2']) {
      const source = { persistentVolumeName: 'v' };
      const body = { metadata: { name: `of-${nodeName}` }, spec: { attacher: 'a', nodeName, source } };
      expect((await api.send('POST', attachments, { body })).code).toBe(201);
    }
    expect((await api.send('GET', `${attachments}/of-n1`, as('n1'))).code).toBe(200);
    expect((await api.send('GET', `${attachments}/of-n2`, as('n1'))).code).toBe(403);
    expect((await api.send('GET', `${attachments}/of-n2`)).code).toBe(200);
  });
});

const NOW_MS = Date.UTC(2026, 0, 1);
const quota = (name: string, hard: Record<string, string>, used: Record<string, string>): KubeObject => ({
  metadata: { name, namespace: 'a', resourceVersion: '7' },
  spec: { hard },
  status: { hard, used },
});
const object = (name: string): KubeObject => ({ metadata: { name, namespace: 'a' } });

function charged(quotas: readonly KubeObject[], descriptor: ResourceDescriptor = configmaps, old?: KubeObject) {
  const asked: string[] = [];
  const namespacePolicies = {
    limitRanges: async () => [],
    quotas: async (namespace: string) => {
      asked.push(namespace);
      return quotas;
    },
  };
  const writes = chargedQuotas({ namespacePolicies } as never, descriptor, { object: object('c'), old, nowMs: NOW_MS });
  return { asked, writes };
}

describe('a new object', () => {
  it('is added to each quota that counts it, on the version that was read', async () => {
    const counting = quota('counting', { 'count/configmaps': '2', pods: '1' }, { 'count/configmaps': '1', pods: '0' });
    const other = quota('other', { pods: '1' }, { pods: '0' });
    const { asked, writes } = charged([counting, other]);
    expect(await writes).toEqual([
      {
        kind: 'update',
        ref: { resource: resourcequotas.resource, namespace: 'a', name: 'counting' },
        object: expect.objectContaining({
          status: expect.objectContaining({ used: { 'count/configmaps': '2', pods: '0' } }),
        }),
        previous: counting,
      },
    ]);
    expect(asked).toEqual(['a']);
  });

  it('is refused by a quota that is used up', async () => {
    const full = quota('full', { 'count/configmaps': '1' }, { 'count/configmaps': '1' });
    await expect(charged([full]).writes).rejects.toMatchObject({
      status: {
        code: 403,
        message:
          'configmaps "c" is forbidden: exceeded quota: full, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
      },
    });
  });
});

it('what no quota counts reads none: an update of most kinds, an object of the cluster', async () => {
  for (const { asked, writes } of [charged([], configmaps, object('c')), charged([], nodes)]) {
    expect(await writes).toEqual([]);
    expect(asked).toEqual([]);
  }
});
