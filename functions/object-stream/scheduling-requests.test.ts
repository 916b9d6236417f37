import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { schedulingWorks } from './scheduling-requests.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
type Changes = Parameters<typeof schedulingWorks>[1];

function requesting(scheduling: 'on' | 'off' = 'on') {
  const items = memoryItemStore();
  const woken: (readonly [readonly string[], number])[] = [];
  const quiet = () => {};
  const dependencies = {
    items,
    clock: { nowMs: () => NOW_MS },
    policy: { ...defaultPolicy, scheduling },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    waker: {
      async wake(names: readonly string[], atMs: number) {
        woken.push([names, atMs]);
        return [];
      },
    },
  } as unknown as Parameters<typeof schedulingWorks>[0];
  return {
    items,
    woken,
    queue: queueStore(items),
    works: (changes: Partial<Changes>) => schedulingWorks(dependencies, { nodes: [], pods: [], ...changes }),
  };
}

const pod = (parts: { metadata?: object; spec?: object; status?: object } = {}): KubePod =>
  ({
    metadata: { namespace: 'd', name: 'p', uid: 'u', ...parts.metadata },
    spec: { containers: [], ...parts.spec },
    ...(parts.status === undefined ? {} : { status: parts.status }),
  }) as unknown as KubePod;
const node = (parts: { metadata?: object; spec?: object; status?: object } = {}): KubeNode =>
  ({
    metadata: { name: 'n', uid: 'nu', ...parts.metadata },
    spec: parts.spec,
    status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu: '4', pods: '9' }, ...parts.status },
  }) as KubeNode;
const ofPod = (before: KubePod | undefined, after: KubePod | undefined): Partial<Changes> => ({
  pods: [{ position: 0, before, after }],
});
const ofNode = (before: KubeNode | undefined, after: KubeNode | undefined): Partial<Changes> => ({
  nodes: [{ position: 0, before, after }],
});

/** `request`: at once. `if waiting`: only while a pod waits. */
async function effectOf(changes: Partial<Changes>): Promise<'request' | 'if waiting' | 'none'> {
  const { works, queue } = requesting();
  const [work] = works(changes);
  if (work === undefined) return 'none';
  await work.run();
  return (await queue.wanted()) > 0 ? 'request' : 'if waiting';
}
const BOUND = { spec: { nodeName: 'n' } };
const REQUESTS = { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] } };

describe('a change of a pod', () => {
  it.each<[string, KubePod | undefined, KubePod | undefined, string]>([
    ['that is created', undefined, pod(), 'request'],
    ['that is created with a gate', undefined, pod({ spec: { schedulingGates: [{ name: 'g' }] } }), 'none'],
    ['that loses its gate', pod({ spec: { schedulingGates: [{ name: 'g' }] } }), pod(), 'request'],
    ['that is created for another scheduler', undefined, pod({ spec: { schedulerName: 'x' } }), 'none'],
    ['that is created while being deleted', undefined, pod({ metadata: { deletionTimestamp: 't' } }), 'none'],
    ['that changes its labels', pod(), pod({ metadata: { labels: { a: 'b' } } }), 'request'],
    ['that changes its tolerations', pod(), pod({ spec: { tolerations: [{ operator: 'Exists' }] } }), 'request'],
    ['that is resized while it waits', pod(), pod(REQUESTS), 'request'],
    ['that is resized on its node', pod(BOUND), pod({ spec: { ...BOUND.spec, ...REQUESTS.spec } }), 'if waiting'],
    ['that is created again', pod(), pod({ metadata: { uid: 'v' } }), 'request'],
    ['that only changes its status', pod(), pod({ status: { conditions: [] } }), 'none'],
    ['that is bound', pod(), pod(BOUND), 'if waiting'],
    ['that is deleted from its node', pod(BOUND), undefined, 'if waiting'],
    ['that terminates', pod(BOUND), pod({ ...BOUND, status: { phase: 'Failed' } }), 'if waiting'],
    ['that begins to terminate', pod(BOUND), pod({ ...BOUND, metadata: { deletionTimestamp: 't' } }), 'if waiting'],
    [
      'that is bound and changes its labels',
      pod(BOUND),
      pod({ ...BOUND, metadata: { labels: { a: 'b' } } }),
      'if waiting',
    ],
    ['that is bound and becomes Ready', pod(BOUND), pod({ ...BOUND, status: { phase: 'Running' } }), 'none'],
    ['that has ended and is deleted', pod({ ...BOUND, status: { phase: 'Succeeded' } }), undefined, 'none'],
    ['that is nominated', pod(), pod({ status: { nominatedNodeName: 'n' } }), 'if waiting'],
    ['that waits and is deleted', pod(), undefined, 'none'],
  ])('%s', async (_text, before, after, expected) => {
    expect(await effectOf(ofPod(before, after))).toBe(expected);
  });
});

describe('a change of a Node', () => {
  it.each<[string, KubeNode | undefined, KubeNode | undefined, string]>([
    ['that is created', undefined, node(), 'if waiting'],
    ['that is deleted', node(), undefined, 'if waiting'],
    ['that changes its labels', node(), node({ metadata: { labels: { a: 'b' } } }), 'if waiting'],
    ['that is cordoned', node(), node({ spec: { unschedulable: true } }), 'if waiting'],
    ['that gets a taint', node(), node({ spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }), 'if waiting'],
    ['that grows', node(), node({ status: { allocatable: { cpu: '5', pods: '9' } } }), 'if waiting'],
    ['that declares a feature', node(), node({ status: { declaredFeatures: ['A'] } }), 'if waiting'],
    ['that accepts more pods', node(), node({ status: { allocatable: { cpu: '4', pods: '10' } } }), 'if waiting'],
    ['that is not Ready', node(), node({ status: { conditions: [{ type: 'Ready', status: 'False' }] } }), 'if waiting'],
    ['that has another image', node(), node({ status: { images: [{ names: ['i'], sizeBytes: 1 }] } }), 'none'],
    ['that only reports its status', node(), node({ metadata: { resourceVersion: '9' } }), 'none'],
  ])('%s', async (_text, before, after, expected) => {
    expect(await effectOf(ofNode(before, after))).toBe(expected);
  });
});

describe('a request for a pass', () => {
  const created = ofPod(undefined, pod());

  it('wakes the scheduler, unless a pass is running: that continues', async () => {
    const { works, queue, woken } = requesting();
    await works(created)[0]!.run();
    expect(woken).toEqual([[['scheduler'], NOW_MS]]);
    await queue.begin({ id: 'a', nowMs: NOW_MS, untilMs: NOW_MS + 1 });
    await works(created)[0]!.run();
    expect([woken.length, await queue.wanted()]).toEqual([1, 2]);
    const over = requesting();
    await over.queue.begin({ id: 'a', nowMs: NOW_MS - 10, untilMs: NOW_MS });
    await over.works(created)[0]!.run();
    expect(over.woken).toHaveLength(1);
  });

  it('follows from other changes while a pod waits', async () => {
    const { works, queue, woken } = requesting();
    await queue.begin({ id: 'a', nowMs: 0, untilMs: 1 });
    await queue.end({ id: 'a', wanted: 0, dueAtMs: NOW_MS + 60_000 });
    await works(ofNode(undefined, node()))[0]!.run();
    expect([woken.length, await queue.wanted()]).toEqual([1, 1]);
  });

  it('is one work for a batch, with the positions of what requires it', () => {
    const { works } = requesting();
    const changes = {
      pods: [
        { position: 1, before: undefined, after: pod() },
        { position: 2, before: pod(), after: pod() },
        { position: 3, before: pod(BOUND), after: undefined },
      ],
      nodes: [{ position: 4, before: undefined, after: node() }],
    };
    expect(works(changes).map(({ of }) => of)).toEqual([[1, 4, 3]]);
  });

  it('is repeated by a retry, whatever changed', async () => {
    expect(await effectOf({ pods: [{ position: 0, before: pod(), after: pod(), isRetry: true }] })).toBe('request');
    expect(await effectOf({ pods: [{ position: 0, before: pod(BOUND), after: pod(BOUND), isRetry: true }] })).toBe(
      'if waiting',
    );
    expect(await effectOf({ nodes: [{ position: 0, before: node(), after: node(), isRetry: true }] })).toBe(
      'if waiting',
    );
  });

  it('is none where another scheduler binds the pods', () => {
    expect(requesting('off').works(created)).toEqual([]);
  });
});
