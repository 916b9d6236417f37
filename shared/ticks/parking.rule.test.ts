import { describe, expect, it } from 'vitest';
import type { KubeNode, KubeObject } from '../kinds/types.ts';
import { isRowGivenUp, isWorkGivenUp, parkedNode, parkedPod, retryDelayMs } from './parking.rule.ts';

describe('a parked work', () => {
  it.each([
    [0, 5_000],
    [1, 10_000],
    [2, 10_000],
    [99, 10_000],
  ])('is retried after %i retries in %i ms', (tries, delayMs) => {
    expect(retryDelayMs(tries)).toBe(delayMs);
  });

  it('is given up half an hour after it was parked', () => {
    expect(isWorkGivenUp(7, 7 + 1_799_999)).toBe(false);
    expect(isWorkGivenUp(7, 7 + 1_800_000)).toBe(true);
  });

  it.each([
    [360, 7_200_000, true],
    [359, 7_200_000, false],
    [360, 7_199_999, false],
  ])('without a result is given up after %i retries and %i ms: %s', (tries, ageMs, isGivenUp) => {
    expect(isRowGivenUp({ tries, workParkedAtMs: { old: 0, last: 100 } }, 100 + ageMs)).toBe(isGivenUp);
  });
});

describe('what is stored of a parked object', () => {
  const long = 'x'.repeat(513);
  const longest = 'x'.repeat(512);
  const metadata = { name: 'n', namespace: 'a', uid: 'u', annotations: { note: 'left out' } };

  it('is of a Node its zone, its blocks and its instance', () => {
    const labels = {
      'topology.kubernetes.io/zone': 'z',
      'topology.kubernetes.io/region': 'r',
      'failure-domain.beta.kubernetes.io/zone': longest,
      'failure-domain.beta.kubernetes.io/region': long,
      other: 'left out',
    };
    const podCIDRs = ['1', long, '3', '4', '5'];
    const node = { metadata: { ...metadata, labels }, spec: { podCIDRs, providerID: longest, unschedulable: true } };
    expect(parkedNode(node as KubeNode)).toEqual({
      metadata: {
        ...{ name: 'n', namespace: 'a', uid: 'u' },
        labels: {
          'topology.kubernetes.io/zone': 'z',
          'topology.kubernetes.io/region': 'r',
          'failure-domain.beta.kubernetes.io/zone': longest,
        },
      },
      spec: { podCIDRs: ['1', '3', '4'], providerID: longest },
    });
    const bare = { metadata: { name: 'n', labels: {} }, spec: { podCIDRs: [] } };
    expect(parkedNode({ metadata: { name: 'n' } })).toEqual(bare);
    const odd = { metadata: { name: 'n' }, spec: { podCIDRs: 'x', providerID: long } };
    expect(parkedNode(odd as unknown as KubeNode)).toEqual(bare);
    expect(parkedNode({ ...odd, spec: { providerID: 7 } } as unknown as KubeNode)).toEqual(bare);
  });

  it('is of a Pod its node, and whether it has volumes that must be detached', () => {
    const pod = (spec: object): KubeObject => ({ metadata, spec: spec as never });
    const names = { name: 'n', namespace: 'a', uid: 'u' };
    const volumes = [
      { name: 'v', persistentVolumeClaim: { claimName: 'c' } },
      { name: 'w', emptyDir: {} },
    ];
    expect(parkedPod(pod({ nodeName: 'n1', volumes }))).toEqual({
      metadata: names,
      spec: { nodeName: 'n1', volumes: [{ persistentVolumeClaim: {} }] },
    });
    expect(parkedPod(pod({ nodeName: long, volumes: volumes.slice(1) }))).toEqual({ metadata: names, spec: {} });
    expect(parkedPod(pod({ volumes: 'x' }))).toEqual({ metadata: names, spec: {} });
  });
});
