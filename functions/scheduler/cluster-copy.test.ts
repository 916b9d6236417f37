import { expect, it } from 'vitest';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import { controlledFleet } from '../../test/support/controlled-fleet.ts';
import { ClusterCopy } from './cluster-copy.ts';

it('keeps a bounded number of changes, and knows which of them it no longer has', async () => {
  const { tables: items, objects } = controlledFleet();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const random = { uuid: () => 'one', fraction: () => 0.5 };
  const copy = new ClusterCopy({ items, objects, log, random, clock: { nowMs: () => 0 } }, queueStore(items));
  const change = (version: number) =>
    copy.bound({
      metadata: { name: 'web', namespace: 'default', uid: 'u', resourceVersion: String(version) },
      spec: { nodeName: 'n1', containers: [] },
    });
  for (let version = 1; version <= 8_192; version += 1) change(version);
  expect([copy.changesSeen, copy.changesSince(0)?.length]).toEqual([8_192, 8_192]);
  change(8_193);
  expect(copy.changesSeen).toBe(8_193);
  expect(copy.changesSince(4_096)).toBeUndefined();
  const kept = copy.changesSince(4_097);
  expect(kept).toHaveLength(4_096);
  expect(kept?.at(-1)).toMatchObject({ kind: 'pod', after: { resourceVersion: 8_193 } });
  expect(copy.changesSince(8_193)).toEqual([]);
});
