import { describe, expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER, offlineStoppedAtMs, offlineStopSeconds, parseOfflineStop } from './offline-stop.ts';

const pod = (text: string | undefined, graceSeconds?: number) => ({
  metadata: { name: 'web', ...(text === undefined ? {} : { annotations: { [OFFLINE_STOP_AFTER]: text } }) },
  spec: { containers: [], ...(graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds }) },
});

describe('the time after which a machine without a link stops a pod', () => {
  it.each([
    ['10m', 600],
    ['2h', 7_200],
    ['1h30m', 5_400],
    ['720h', 2_592_000],
    ['9m59s', undefined],
    ['720h0m1s', undefined],
    ['7200', undefined],
    ['-2h', undefined],
    ['', undefined],
    ['two hours', undefined],
  ])('of %j is %j seconds', (text, seconds) => {
    expect(parseOfflineStop(text)).toBe(seconds);
  });

  it('is undefined for a pod without the annotation, which may run for ever', () => {
    expect(offlineStopSeconds(pod(undefined))).toBeUndefined();
    expect(offlineStoppedAtMs(pod(undefined), 0)).toBeUndefined();
  });

  it('is followed by the grace period of the pod and a margin of a minute and a thousandth', () => {
    expect(offlineStoppedAtMs(pod('1000s', 30), 5_000)).toBe(5_000 + (1_000 + 30 + 60 + 1) * 1_000);
    expect(offlineStoppedAtMs(pod('1000s'), 0)).toBe((1_000 + 60 + 1) * 1_000);
  });

  it('is followed by the grace period of the deletion, if that is longer', () => {
    const { metadata, spec } = pod('1000s', 30);
    const deleted = (deletionGracePeriodSeconds: number) =>
      offlineStoppedAtMs({ metadata: { ...metadata, deletionGracePeriodSeconds }, spec }, 0);
    expect(deleted(90)).toBe((1_000 + 90 + 60 + 1) * 1_000);
    expect(deleted(1)).toBe((1_000 + 30 + 60 + 1) * 1_000);
  });
});
