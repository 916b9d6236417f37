import { beforeEach, describe, expect, it } from 'vitest';
import { acquireTokenWrite, fleetStore } from '../../../shared/fleet/fleet-store.ts';
import { UNTRIED_GATE } from '../../../shared/fleet/gate.ts';
import { takeTokenUpdate } from '../../../shared/fleet/limiter.ts';
import { NO_DISRUPTION } from '../../../shared/fleet/zone-state.ts';
import { type ApiInMemory, apiInMemory } from '../../../test/support/api-in-memory.ts';
import { metricFormatFor, metricParts, metricsText } from './open-metrics.ts';

const OPEN_METRICS = 'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1';
let api: ApiInMemory;
beforeEach(() => {
  api = apiInMemory({
    users: {
      viewer: { name: 'grafana', groups: ['nodekeeper:viewers'] },
      machine: { name: 'system:node:edge-1', groups: ['system:nodes'] },
    },
  });
});

interface NodeParts {
  readonly ready?: string;
  readonly annotations?: object;
  readonly spec?: object;
  readonly status?: object;
}

async function createNode(name: string, more: NodeParts = {}): Promise<void> {
  const answer = await api.send('POST', '/api/v1/nodes', {
    body: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'topology.kubernetes.io/zone': 'a' }, annotations: more.annotations ?? {} },
      spec: more.spec ?? {},
      status: { conditions: [{ type: 'Ready', status: more.ready ?? 'True' }], ...more.status },
    },
  });
  expect(answer.code).toBe(201);
}

const linesOf = async (query = ''): Promise<readonly string[]> =>
  (await api.send('GET', `/metrics${query}`)).text.split('\n');
const samplesOf = async (name: string, query = ''): Promise<readonly string[]> =>
  (await linesOf(query)).filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));

describe('GET /metrics: objects', () => {
  it('has the names, labels and units of kube-state-metrics for a node', async () => {
    await createNode('edge-1', {
      spec: {
        unschedulable: true,
        providerID: 'aws:///a/i-1',
        taints: [{ key: 'gpu', value: 'a100', effect: 'NoSchedule' }],
      },
      status: {
        capacity: {
          cpu: '1500m',
          memory: '1Ki',
          'ephemeral-storage': '2k',
          pods: '110',
          'example.com/gpu': '2',
        },
        allocatable: { cpu: '1' },
        nodeInfo: { kubeletVersion: 'v1.33.0', osImage: 'Debian' },
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      },
    });
    const lines = await linesOf();
    expect(lines.filter((line) => line.startsWith('kube_node_'))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^kube_node_info\{node="edge-1",.*os_image="Debian",.*kubelet_version="v1.33.0",.*provider_id="aws:\/\/\/a\/i-1",.*internal_ip="10.0.0.1"\} 1$/,
        ),
        'kube_node_created{node="edge-1"} 1767225600',
        'kube_node_spec_unschedulable{node="edge-1"} 1',
        'kube_node_spec_taint{node="edge-1",key="gpu",value="a100",effect="NoSchedule"} 1',
        'kube_node_status_condition{node="edge-1",condition="Ready",status="true"} 1',
        'kube_node_status_condition{node="edge-1",condition="Ready",status="false"} 0',
        'kube_node_status_condition{node="edge-1",condition="Ready",status="unknown"} 0',
        'kube_node_status_capacity{node="edge-1",resource="cpu",unit="core"} 1.5',
        'kube_node_status_capacity{node="edge-1",resource="memory",unit="byte"} 1024',
        'kube_node_status_capacity{node="edge-1",resource="ephemeral_storage",unit="byte"} 2000',
        'kube_node_status_capacity{node="edge-1",resource="pods",unit="integer"} 110',
        'kube_node_status_capacity{node="edge-1",resource="example_com_gpu",unit="integer"} 2',
        'kube_node_status_allocatable{node="edge-1",resource="cpu",unit="core"} 1',
      ]),
    );
  });

  it('has pods with their creator and phase, and leases with owner and time', async () => {
    await createNode('edge-1');
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'u', controller: true };
    await api.send('POST', '/api/v1/namespaces/default/pods', {
      body: {
        metadata: { name: 'web', ownerReferences: [owner] },
        spec: { nodeName: 'edge-1', containers: [{ name: 'c', image: 'i' }] },
      },
    });
    await api.send('POST', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', {
      body: {
        metadata: { name: 'edge-1', ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'edge-1', uid: 'u' }] },
        spec: { holderIdentity: 'edge-1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:02.500000Z' },
      },
    });
    expect(await samplesOf('kube_pod_info')).toEqual([
      expect.stringMatching(
        /namespace="default",pod="web",uid=".+",host_ip="",pod_ip="",node="edge-1",created_by_kind="ReplicaSet",created_by_name="web-1",priority_class="",host_network="false"\} 1$/,
      ),
    ]);
    const phases = await samplesOf('kube_pod_status_phase');
    expect(phases).toHaveLength(5);
    expect(phases.filter((line) => line.endsWith(' 1'))).toEqual([expect.stringContaining('phase="Pending"')]);
    expect(await samplesOf('kube_lease_renew_time')).toEqual([
      'kube_lease_renew_time{lease="edge-1",namespace="kube-node-lease"} 1767225602.5',
    ]);
    expect(await samplesOf('kube_lease_owner')).toEqual([
      'kube_lease_owner{lease="edge-1",namespace="kube-node-lease",owner_kind="Node",owner_name="edge-1",lease_holder="edge-1"} 1',
    ]);
  });

  it('reads every page', async () => {
    for (let index = 0; index < 501; index += 1) await createNode(`edge-${index}`);
    console.log(api.faults);
    expect(await samplesOf('kube_node_info')).toHaveLength(501);
  });
});

describe('GET /metrics: controllers', () => {
  const tick = (reasons: ('failingPath' | 'missedTicks')[] = [], probes: readonly boolean[] = []) =>
    fleetStore(api.items).claim({
      claimId: 'tick',
      slot: 1,
      periodSeconds: 5,
      seenFence: 0,
      nowMs: api.nowMs(),
      gate: {
        ...UNTRIED_GATE,
        reasons,
        sinceMs: api.nowMs(),
        probes: probes.map((accepted) => ({ sentAtMs: api.nowMs(), accepted })),
      },
      disruption: NO_DISRUPTION,
      nodes: 2,
      finished: true,
    });

  it('counts the nodes of a zone as the node lifecycle controller does', async () => {
    await createNode('edge-1');
    await createNode('edge-2', { ready: 'False' });
    // It does not count in its zone until then.
    const until = new Date(api.nowMs() + 3_600_000).toISOString();
    await createNode('edge-3', { annotations: { 'nodekeeper.dev/planned-silence-until': until } });
    const zone = (await samplesOf('node_collector_zone_size', '?scope=controller'))[0]!.split('"')[1]!;
    expect(await linesOf('?scope=controller')).toEqual(
      expect.arrayContaining([
        `node_collector_zone_size{zone="${zone}"} 2`,
        `node_collector_zone_health{zone="${zone}"} 50`,
        `node_collector_unhealthy_nodes_in_zone{zone="${zone}"} 1`,
        'nodekeeper_nodes 3',
      ]),
    );
  });

  it('counts an acquired token as an eviction of its zone, and none when the limiter refuses', async () => {
    const nowMs = api.nowMs();
    await fleetStore(api.items).createZone('a', { state: 'Normal', ratePerSecond: 0.1, nowMs });
    const take = () => api.items.transact([acquireTokenWrite('a', takeTokenUpdate({ nowMs, ratePerSecond: 0.1 })!)]);
    expect((await take()).kind).toBe('written');
    expect((await take()).kind).toBe('refused');
    expect(await samplesOf('node_collector_evictions_total')).toEqual(['node_collector_evictions_total{zone="a"} 1']);
    expect(await samplesOf('nodekeeper_zone_state')).toContain('nodekeeper_zone_state{zone="a",state="Normal"} 1');
    expect(await samplesOf('nodekeeper_zone_eviction_rate')).toEqual(['nodekeeper_zone_eviction_rate{zone="a"} 0.1']);
  });

  it('shows when the limiter grants its next token, and the probes that the gate rests on', async () => {
    const nowMs = api.nowMs();
    await fleetStore(api.items).createZone('a', { state: 'Normal', ratePerSecond: 0.1, nowMs });
    const next = 'nodekeeper_zone_next_token_timestamp_seconds';
    expect(await samplesOf(next)).toEqual([]);
    await api.items.transact([acquireTokenWrite('a', takeTokenUpdate({ nowMs, ratePerSecond: 0.1 })!)]);
    expect(await samplesOf(next)).toEqual([`${next}{zone="a"} ${nowMs / 1_000 + 10}`]);
    await tick([], [true, true, false]);
    expect(await samplesOf('nodekeeper_probes')).toEqual([
      'nodekeeper_probes{result="accepted"} 2',
      'nodekeeper_probes{result="failed"} 1',
    ]);
  });

  it.each([
    [[], 0],
    [['failingPath'] as const, 1],
  ])('shows the gate with reasons %j as %i', async (reasons, value) => {
    await tick([...reasons]);
    expect(await samplesOf('nodekeeper_gate_holding')).toEqual([`nodekeeper_gate_holding ${value}`]);
    expect(await samplesOf('nodekeeper_last_tick_timestamp_seconds')).toEqual([
      `nodekeeper_last_tick_timestamp_seconds ${api.nowMs() / 1_000}`,
    ]);
  });

  it('leaves objects out with ?scope=controller, and refuses another scope', async () => {
    await createNode('edge-1');
    expect((await linesOf('?scope=controller')).filter((line) => line.startsWith('kube_'))).toEqual([]);
    const refused = await api.send('GET', '/metrics?scope=nodes');
    expect(refused.body).toMatchObject({
      code: 400,
      message: 'scope: Invalid value: "nodes": must be all or controller',
    });
  });
});

it('lets other work run while the response is made', async () => {
  await createNode('edge-1');
  let turns = 0;
  const count = () => {
    turns += 1;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  const lines = await linesOf();
  clearImmediate(immediate);
  expect(turns).toBeGreaterThanOrEqual(lines.filter((line) => line.startsWith('# TYPE')).length);
});

describe('GET /metrics: access and format', () => {
  const as = (token: string) => api.send('GET', '/metrics', { headers: { authorization: `Bearer ${token}` } });

  it('is for those who may read all objects', async () => {
    expect((await as('viewer')).code).toBe(200);
    expect((await as('machine')).body).toMatchObject({
      code: 403,
      message: 'forbidden: User "system:node:edge-1" cannot get path "/metrics"',
    });
    expect((await as('nobody')).code).toBe(401);
    expect((await api.send('POST', '/metrics')).code).toBe(404);
  });

  it('is OpenMetrics for a client that asks for it, and text for others', async () => {
    const open = await api.send('GET', '/metrics', { accept: OPEN_METRICS });
    expect(open.headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(open.text.endsWith('\n# EOF\n')).toBe(true);
    const text = await api.send('GET', '/metrics');
    expect(text.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(text.text).not.toContain('# EOF');
    expect(metricFormatFor(undefined)).toBe('text');
  });

  it('names a counter with its suffix in the sample, and in the family only as text', () => {
    const family = { name: 'a_total', help: 'A\nb.', type: 'counter' as const, samples: [{ labels: {}, value: 1 }] };
    expect(metricsText([family], 'openmetrics')).toBe('# HELP a A\\nb.\n# TYPE a counter\na_total 1\n# EOF\n');
    expect(metricsText([family], 'text')).toBe('# HELP a_total A\\nb.\n# TYPE a_total counter\na_total 1\n');
    const quoted = { ...family, samples: [{ labels: { l: 'a"b\\c\nd' }, value: 1 }] };
    expect(metricsText([quoted], 'text')).toContain('a_total{l="a\\"b\\\\c\\nd"} 1\n');
    const values = [Number.NaN, Infinity, -Infinity, 0.5].map((value) => ({ labels: {}, value }));
    expect(metricsText([{ ...family, name: 'b', type: 'gauge', samples: values }], 'text')).toContain(
      'b NaN\nb +Inf\nb -Inf\nb 0.5\n',
    );
  });

  it('is made in parts: heartbeats are served between them', () => {
    const samples = Array.from({ length: 2_500 }, (_, value) => ({ labels: {}, value }));
    const parts = [...metricParts([{ name: 'a', help: 'A.', type: 'gauge', samples }], 'text')];
    expect(parts.map((part) => part.split('\n').length - 1)).toEqual([2, 1_000, 1_000, 500]);
    expect(parts.at(-1)?.endsWith('a 2499\n')).toBe(true);
  });
});
