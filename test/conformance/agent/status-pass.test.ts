/** ST: retries of one status pass. SF: defaulting of the status timers (see also the configuration's own tests). */
import { describe, expect, it } from 'vitest';
import { StatusLoop } from '../../../agent/app/status-loop.ts';
import type { KubeAnswer, KubeRequest } from '../../../agent/ports/kube-api.ts';
import { statusFrequencies } from '../../../agent/rules/config-settings.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';

const NOW_MS = Date.UTC(2024, 4, 1, 10);
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const NODE: KubeNode = { metadata: { name: 'n' }, status: { conditions: [] } };

/** A pass over a Node that is in the local cache, against a server that answers patches as listed. */
async function passAgainst(patchStatuses: readonly number[]) {
  const requests: KubeRequest[] = [];
  const statuses = [...patchStatuses];
  let callbacks = 0;
  const loop = new StatusLoop({
    settings: {
      nodeName: 'n',
      registerNode: true,
      nodeLeaseDurationSeconds: 40,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
    },
    api: {
      send: async (request): Promise<KubeAnswer> => {
        requests.push(request);
        return { kind: 'answered', status: request.method === 'GET' ? 200 : (statuses.shift() ?? 200), body: NODE };
      },
      reconnect: () => {},
    },
    time: { nowMs: () => NOW_MS, monotonicMs: () => 0, uptimeMs: () => 0, sleep: async () => {} },
    fraction: () => 0.5,
    log: SILENT,
    compute: async (node) => ({
      node: { ...node, status: { conditions: [{ type: 'Ready', status: 'True' }] } },
      events: [],
    }),
    registration: {
      ensure: async () => true,
      again: async () => true,
      // Publishes the Node at once: it is then in the local cache.
      onRegistered: (listener) => listener(NODE),
    },
    recordEvent: () => {},
    onRepeatedFailure: () => {
      callbacks += 1;
    },
  });
  const outcome = await loop.pass();
  return { methods: requests.map(({ method }) => method), outcome: outcome.kind, callbacks, requests };
}

describe('ST retries of one status pass', () => {
  it('ST-01 reads the local cache and patches once', async () => {
    const { methods, outcome, callbacks, requests } = await passAgainst([200]);
    expect({ methods, outcome, callbacks }).toEqual({ methods: ['PATCH'], outcome: 'written', callbacks: 0 });
    expect(requests[0]).toMatchObject({
      path: '/api/v1/nodes/n/status',
      contentType: 'application/strategic-merge-patch+json',
      timeoutMs: 10_000,
    });
  });

  it('ST-03 reads live after a failure, and calls back from the second failure on', async () => {
    const { methods, outcome, callbacks } = await passAgainst([500, 500, 200]);
    expect(methods).toEqual(['PATCH', 'GET', 'PATCH', 'GET', 'PATCH']);
    expect({ outcome, callbacks }).toEqual({ outcome: 'written', callbacks: 1 });
  });
});

const MINUTE = 60_000;

describe('SF defaulting of the status timers', () => {
  it('SF-01 updates every 10 s and reports every 5 m', () => {
    expect(statusFrequencies(undefined, undefined)).toEqual({ updateMs: 10_000, reportMs: 5 * MINUTE });
  });

  it('SF-03 keeps a report frequency that is set alone', () => {
    expect(statusFrequencies(undefined, MINUTE)).toEqual({ updateMs: 10_000, reportMs: MINUTE });
  });
});
