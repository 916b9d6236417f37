import { describe, expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import {
  elapsedMs,
  graceSecondsLeft,
  heartbeatText,
  mayStart,
  offlineRunMs,
  offlineStoppedStatus,
  parseHeartbeat,
  parsePermits,
  permitsText,
  stopMessage,
  waitingStatus,
} from './offline-stop.ts';

const at = (uptimeMs: number, wallMs: number) => ({ uptimeMs, wallMs });
const pod = (
  annotations: Record<string, string> = { [OFFLINE_STOP_AFTER]: '10m' },
  graceSeconds?: number,
): KubePod => ({
  metadata: { name: 'web', annotations },
  spec: graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds },
});

it.each([
  ['of the uptime', at(5_000, 1_000), 4_000],
  ['of the wall clock while the uptime stands', at(1_000, 9_000), 8_000],
  ['of the uptime when the wall clock was set back', at(5_000, -80_000), 4_000],
  ['0 at least', at(500, 500), 0],
])('the elapsed time is that %s', (_, to, elapsed) => {
  expect(elapsedMs(at(1_000, 1_000), to)).toBe(elapsed);
});

it('a pod runs for the time of its annotation, and a static or mirror pod for any time', () => {
  expect(offlineRunMs(pod())).toBe(600_000);
  for (const annotations of [
    {},
    { [OFFLINE_STOP_AFTER]: '1s' },
    { [OFFLINE_STOP_AFTER]: '10m', 'kubernetes.io/config.source': 'file' },
    { [OFFLINE_STOP_AFTER]: '10m', 'kubernetes.io/config.mirror': 'hash' },
  ]) {
    expect(offlineRunMs(pod(annotations))).toBeUndefined();
  }
});

it('it starts in its time after a heartbeat before its list, and never without one', () => {
  const start = at(1_000, 1_000);
  expect(mayStart(pod(), undefined, start)).toBe(false);
  expect(mayStart(pod(), start, at(600_999, 1_000))).toBe(true);
  expect(mayStart(pod(), start, at(601_000, 1_000))).toBe(false);
  expect(mayStart(pod(), start, at(1_000, 601_000))).toBe(false);
  expect(mayStart(pod({}), undefined, start)).toBe(true);
});

it('its grace period begins when its time is over', () => {
  const left = (silentMs: number, graceSeconds?: number) => graceSecondsLeft(pod(undefined, graceSeconds), silentMs);
  expect([left(600_000, 30), left(600_001, 30), left(610_000, 30), left(630_000, 30), left(700_000, 30)]).toEqual([
    30, 30, 20, 0, 0,
  ]);
  expect([left(Number.POSITIVE_INFINITY, 30), left(600_000)]).toEqual([0, 0]);
});

it('its status says for how long, that it failed, and that its node disrupted it', () => {
  const message = stopMessage(pod(), 600_400);
  expect(message).toBe(
    'Pod was stopped: no heartbeat was answered for 10m0s (nodekeeper.dev/offline-stop-after: 10m).',
  );
  expect(stopMessage(pod(), Number.POSITIVE_INFINITY)).toContain(
    'the agent has started, and no heartbeat was answered',
  );
  expect(offlineStoppedStatus({ phase: 'Running', podIP: '192.0.2.1' }, message, 0)).toMatchObject({
    phase: 'Failed',
    reason: 'OfflineStop',
    message,
    podIP: '192.0.2.1',
    conditions: [{ type: 'DisruptionTarget', status: 'True' }],
  });
});

it('while it waits, all its containers say why', () => {
  const containers = [{ name: 'a', restartCount: 0, state: { waiting: { reason: 'ContainerCreating' } } }];
  const waiting = [
    { name: 'a', restartCount: 0, state: { waiting: { reason: 'WaitingForHeartbeat', message: 'why' } } },
  ];
  expect(waitingStatus({ phase: 'Pending', containerStatuses: containers }, 'why')).toEqual({
    phase: 'Pending',
    containerStatuses: waiting,
  });
  expect(waitingStatus({ initContainerStatuses: containers }, 'why')).toEqual({ initContainerStatuses: waiting });
});

describe('a heartbeat that is kept', () => {
  const origin = { bootId: 'b1', nodeName: 'n1', clusterId: 'c1' };
  const text = heartbeatText(origin, at(1_000, 2_000));

  it('is read in the same boot', () => {
    expect(parseHeartbeat(text, origin, 1_000)).toEqual(at(1_000, 2_000));
  });

  it('is absent in another boot, of another node or cluster, and from the future', () => {
    for (const other of [{ bootId: 'b2' }, { nodeName: 'n2' }, { clusterId: 'c2' }]) {
      expect(parseHeartbeat(text, { ...origin, ...other }, 1_000)).toBeUndefined();
    }
    expect(parseHeartbeat(text, origin, 999)).toBeUndefined();
    const unknown = { ...origin, bootId: '' };
    expect(parseHeartbeat(heartbeatText(unknown, at(1, 1)), unknown, 1_000)).toBeUndefined();
  });

  it('is absent when it is torn or no heartbeat', () => {
    for (let length = 0; length < text.length; length += 1) {
      expect(parseHeartbeat(text.slice(0, length), origin, 1_000)).toBeUndefined();
    }
    for (const value of [null, '1', -1, undefined]) {
      const changed = JSON.stringify({ ...origin, uptimeMs: 1, wallMs: value });
      expect(parseHeartbeat(changed, origin, 1_000)).toBeUndefined();
      const other = JSON.stringify({ ...origin, uptimeMs: value, wallMs: 1 });
      expect(parseHeartbeat(other, origin, 1_000)).toBeUndefined();
    }
  });
});

describe('the permits that are kept', () => {
  const origin = { bootId: 'b1', nodeName: 'n1', clusterId: 'c1' };
  const kept = {
    hub: 'hub',
    permits: { u1: at(1_000, 2_000), u2: at(900, 1_900) },
    copies: [{ metadata: { name: 'web', uid: 'u1' } }],
  };

  it('are read in the same boot, except for those of a time that is not reached', () => {
    expect(parsePermits(permitsText(origin, kept), origin, 1_000)).toEqual(kept);
    const { u2 } = kept.permits;
    expect(parsePermits(permitsText(origin, kept), origin, 999)).toEqual({ ...kept, permits: { u2 } });
  });

  it('are absent in another boot and when they are torn, and empty where there are none', () => {
    expect(parsePermits(permitsText(origin, kept), { ...origin, bootId: 'b2' }, 1_000)).toBeUndefined();
    expect(parsePermits('{"bootId":', origin, 1_000)).toBeUndefined();
    expect(parsePermits(JSON.stringify(origin), origin, 1_000)).toEqual({ hub: '', permits: {}, copies: [] });
  });
});
