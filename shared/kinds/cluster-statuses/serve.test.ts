import { beforeEach, describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory, TABLE } from '../../../test/support/api-in-memory.ts';
import { fleetStore } from '../../fleet/fleet-store.ts';
import { UNTRIED_GATE } from '../../fleet/gate.ts';
import { NO_DISRUPTION } from '../../fleet/zone-state.ts';

const PATH = '/apis/nodekeeper.dev/v1alpha1/clusterstatuses';
let api: ApiInMemory;
beforeEach(() => {
  api = apiInMemory();
});

const tick = (more: { slot?: number; seenFence?: number; finished?: boolean; failing?: boolean } = {}) =>
  fleetStore(api.items).claim({
    claimId: `tick-${more.slot ?? 1}`,
    slot: more.slot ?? 1,
    periodSeconds: 5,
    seenFence: more.seenFence ?? 0,
    nowMs: api.nowMs(),
    gate: { ...UNTRIED_GATE, ...(more.failing ? { reasons: ['failingPath'], sinceMs: api.nowMs() } : {}) },
    disruption: NO_DISRUPTION,
    nodes: 7,
    finished: more.finished ?? true,
  });

describe('the status of the cluster', () => {
  it('is the last finished tick, the gate and the number of nodes', async () => {
    await tick();
    api.advance(4_000);
    expect((await api.send('GET', `${PATH}/cluster`)).body).toEqual({
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'ClusterStatus',
      metadata: { name: 'cluster', uid: expect.any(String), resourceVersion: '2' },
      status: {
        lastTickTime: '2026-01-01T00:00:00.000000Z',
        nodes: 7,
        ticks: 1,
        gate: { state: 'Open', reasons: [] },
        totalDisruption: false,
        heartbeats: [{ profile: 'default', intervalSeconds: 10, graceSeconds: 40 }],
      },
    });
    const { rows } = (await api.send('GET', PATH, { accept: TABLE })).body;
    expect(rows[0].cells).toEqual(['cluster', 'Open', 'Allowed', '4s', '7']);
  });

  it('has the heartbeat interval and the grace period of each profile, also one that has only the default', async () => {
    const profiles = [
      {
        name: 'cell',
        nodeSelector: { matchLabels: { link: 'cell' } },
        beatIntervalSeconds: 20,
        nodeMonitorGracePeriodSeconds: 90,
      },
      { name: 'gpu', nodeSelector: { matchLabels: { gpu: 'yes' } }, podEvictionTimeoutSeconds: 900 },
    ];
    api = apiInMemory({ policy: { profiles, beatIntervalSeconds: 15 } });
    expect((await api.send('GET', `${PATH}/cluster`)).body.status.heartbeats).toEqual([
      { profile: 'cell', intervalSeconds: 20, graceSeconds: 90 },
      { profile: 'gpu', intervalSeconds: 15, graceSeconds: 40 },
      { profile: 'default', intervalSeconds: 15, graceSeconds: 40 },
    ]);
  });

  it('keeps the last finished tick when a later one began and did not finish', async () => {
    await tick();
    api.advance(5_000);
    await tick({ slot: 2, seenFence: 1, finished: false });
    const { status } = (await api.send('GET', `${PATH}/cluster`)).body;
    expect(status).toMatchObject({ lastTickTime: '2026-01-01T00:00:00.000000Z', ticks: 2 });
  });

  it('shows the gate closed with its reasons, and for missing ticks although none stored it', async () => {
    await tick({ failing: true });
    expect((await api.send('GET', `${PATH}/cluster`)).body.status.gate).toEqual({
      state: 'Closed',
      reasons: ['failingPath'],
      since: '2026-01-01T00:00:00Z',
    });
    await tick({ slot: 2, seenFence: 1 });
    api.advance(600_000);
    const { gate } = (await api.send('GET', `${PATH}/cluster`)).body.status;
    expect(gate).toEqual({ state: 'Closed', reasons: ['missedTicks'], since: '2026-01-01T00:00:00Z' });
    const { rows } = (await api.send('GET', PATH, { accept: TABLE })).body;
    expect(rows[0].cells.slice(1, 3)).toEqual(['Closed (missedTicks)', 'Held (gate closed)']);
  });

  it('exists before the first tick, without a time', async () => {
    const { body } = await api.send('GET', PATH);
    expect(body.items).toHaveLength(1);
    expect(body.items[0].status.lastTickTime).toBeUndefined();
  });

  it('is the only object, and no one writes it', async () => {
    expect((await api.send('GET', `${PATH}/other`)).code).toBe(404);
    expect((await api.send('DELETE', `${PATH}/cluster`)).code).toBe(405);
    expect(
      (await api.send('PATCH', `${PATH}/cluster`, { body: {}, contentType: 'application/merge-patch+json' })).code,
    ).toBe(405);
    expect((await api.send('POST', PATH, { body: {} })).code).toBe(405);
    expect((await api.send('GET', `${PATH}?watch=1`)).code).toBe(405);
  });
});
