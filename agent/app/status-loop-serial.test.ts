import { expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { answered, scriptedApi, silentLog, timedOut } from '../../test/support/agent-api.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import { StatusLoop } from './status-loop.ts';

const nodeWith = (ready: 'True' | 'False'): KubeNode => ({
  metadata: { name: 'n' },
  status: { conditions: [{ type: 'Ready', status: ready }] },
});

it('a pass waits for the one that reports that the node became ready', async () => {
  let ready: 'True' | 'False' = 'False';
  let isFailing = false;
  let computing = 0;
  let computingMost = 0;
  const held: (() => void)[] = [];
  const time = new SteppedTime(Date.UTC(2026, 0, 1));
  const api = scriptedApi(({ method }) => {
    if (method === 'PATCH' && isFailing) {
      isFailing = false;
      return timedOut;
    }
    return answered(200, nodeWith(ready));
  });
  const loop = new StatusLoop({
    settings: {
      nodeName: 'n',
      registerNode: true,
      nodeLeaseDurationSeconds: 40,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
    },
    api,
    time,
    fraction: () => 0,
    log: silentLog,
    compute: async (node) => {
      computing += 1;
      computingMost = Math.max(computingMost, computing);
      if (ready === 'True') await new Promise<void>((resolve) => held.push(resolve));
      computing -= 1;
      return { node: { ...node, status: nodeWith(ready).status ?? {} }, events: [] };
    },
    registration: { ensure: async () => true, again: async () => true, onRegistered: () => {} },
    recordEvent: () => {},
    onRepeatedFailure: () => {},
  });
  const stop = new AbortController();
  const running = loop.run(stop.signal);
  await time.pass(1_000);
  // The node becomes ready, and the first report fails: a full pass follows.
  ready = 'True';
  isFailing = true;
  await time.pass(100);
  const later = loop.pass();
  for (let turn = 0; turn < 20; turn += 1) {
    held.shift()?.();
    for (let wait = 0; wait < 5; wait += 1) await settle();
  }
  expect(await later).toMatchObject({ kind: 'quiet' });
  expect(computingMost).toBe(1);
  stop.abort();
  await running;
});
