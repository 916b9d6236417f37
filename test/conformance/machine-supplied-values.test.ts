/**
 * docs/machine-supplied-values.md: every value that a machine supplies, and that none which is a time or a count
 * decides a mark, a taint, an eviction, a deletion, or when. Each value lies in a story that is otherwise the honest
 * one; the two are compared. After a change: WRITE_DOCS=1 npx vitest run
 * test/conformance/machine-supplied-values.test.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { MERGE } from '../support/api-in-memory.ts';
import { type Fields, type Lie, machineStory, type Told } from '../support/machine-story.ts';
import { servedFleet } from '../support/served-fleet.ts';

const PAGE = new URL('../../docs/machine-supplied-values.md', import.meta.url);

interface Value {
  readonly value: string;
  /** Where our code reads it. */
  readonly read: string;
  readonly lies: Readonly<Record<string, Lie>>;
  /** Present: it decides about the machine itself, by design. Why it is neither clock nor count. */
  readonly decides?: string;
}

const PAST = '2001-02-03T04:05:06Z';
const FUTURE = '2099-02-03T04:05:06Z';
const micro = (time: string): string => time.replace('Z', '.000000Z');
const NOT_A_NUMBER_MAX = 2_147_483_647;

const lease = (...fields: Fields[]): Record<string, Lie> =>
  Object.fromEntries(fields.map((each) => [said(each), { lease: (spec) => ({ ...spec, ...each }) } satisfies Lie]));
const said = (fields: Fields): string =>
  Object.entries(fields)
    .map(([name, value]) => (typeof value === 'object' ? name : `${name} ${String(value)}`))
    .join(', ');
const status = (...fields: Fields[]): Record<string, Lie> =>
  Object.fromEntries(
    fields.map((each) => [said(each), { status: (honest) => ({ ...honest, ...each }) } satisfies Lie]),
  );
const podStatus = (...fields: Fields[]): Record<string, Lie> =>
  Object.fromEntries(
    fields.map((each) => [said(each), { podStatus: (honest) => ({ ...honest, ...each }) } satisfies Lie]),
  );
const conditions = (change: (condition: Fields, seconds: number) => Fields) => ({
  status: (honest: Fields, seconds: number) => ({
    ...honest,
    conditions: (honest['conditions'] as Fields[]).map((each) => change(each, seconds)),
  }),
});
const podConditions = (lastTransitionTime: string) => ({
  podStatus: (honest: Fields) => ({
    ...honest,
    conditions: (honest['conditions'] as Fields[]).map((each) => ({ ...each, lastTransitionTime })),
  }),
});
const metadata = (more: Fields) => ({
  node: (own: KubeObject) => ({ ...own, metadata: { ...own.metadata, ...more } }),
  nodeMetadata: more,
});
const spec = (more: Fields): Lie => ({ node: (own) => ({ ...own, spec: { ...own.spec, ...more } }) });
const mirror = (more: Fields): Lie => ({ mirrorPod: (own) => ({ ...own, spec: { ...own.spec, ...more } }) });
const manyOf = (count: number, make: (index: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, i) => make(i));

const VALUES: readonly Value[] = [
  {
    value: 'Lease `renewTime`, `acquireTime`',
    read: 'stored and shown (`lease-record.ts`)',
    lies: lease(
      { renewTime: micro(PAST) },
      { renewTime: micro(FUTURE) },
      { acquireTime: micro(PAST) },
      { acquireTime: micro(FUTURE) },
    ),
  },
  {
    value: 'Lease `leaseDurationSeconds`',
    read: 'stored and shown; the grace period is the policy’s',
    lies: lease({ leaseDurationSeconds: 1 }, { leaseDurationSeconds: NOT_A_NUMBER_MAX }),
  },
  {
    value: 'Lease `leaseTransitions`, `holderIdentity`',
    read: 'stored and shown',
    lies: lease({ leaseTransitions: NOT_A_NUMBER_MAX }, { holderIdentity: 'n2' }),
  },
  {
    value: 'Lease labels and annotations, `nodekeeper.dev/pods-version` among them',
    read: 'stored and shown; the pods’ version is our own attribute',
    lies: { 'a version far ahead': { leaseMetadata: { annotations: { 'nodekeeper.dev/pods-version': '999999999' } } } },
  },
  {
    value: 'Node conditions: `lastHeartbeatTime`',
    read: '`node-digest.ts`: which write a post becomes; shown',
    lies: {
      'long ago': conditions((each) => ({ ...each, lastHeartbeatTime: PAST })),
      'far ahead': conditions((each) => ({ ...each, lastHeartbeatTime: FUTURE })),
      'an hour ahead': conditions((each, seconds) => ({
        ...each,
        lastHeartbeatTime: new Date(Date.UTC(2026, 0, 1, 1) + seconds * 1_000).toISOString().replace('.000Z', 'Z'),
      })),
      backwards: conditions((each, seconds) => ({
        ...each,
        lastHeartbeatTime: new Date(Date.UTC(2026, 0, 1) - seconds * 1_000).toISOString().replace('.000Z', 'Z'),
      })),
    },
  },
  {
    value: 'Node conditions: `lastTransitionTime`, `reason`, `message`',
    read: 'shown',
    lies: {
      'long ago': conditions((each) => ({ ...each, lastTransitionTime: PAST })),
      'far ahead': conditions((each) => ({ ...each, lastTransitionTime: FUTURE })),
      'the reason of our own mark': conditions((each) => ({ ...each, reason: 'NodeStatusUnknown' })),
      'the reason of a node that never posted': conditions((each) => ({ ...each, reason: 'NodeStatusNeverUpdated' })),
    },
  },
  {
    value: 'Node conditions: `status`',
    read: '`node-taints.ts`, `marks.rule.ts`',
    lies: {
      'Ready False': conditions((each) => (each['type'] === 'Ready' ? { ...each, status: 'False' } : each)),
      'MemoryPressure True': conditions((each) => (each['type'] === 'Ready' ? each : { ...each, status: 'True' })),
    },
    decides: 'the machine reports that it cannot work; the time is our receipt',
  },
  {
    value: 'Node `status.addresses`, `capacity`, `allocatable`, `images`, `daemonEndpoints`',
    read: 'shown; addresses of EC2 instances are written by EC2’s word',
    lies: status(
      { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] },
      { capacity: { cpu: '1000000', memory: '0', pods: '0' } },
      { allocatable: { cpu: '0', pods: '0' } },
      { images: manyOf(50, (index) => ({ names: [`image-${index}`], sizeBytes: Number.MAX_SAFE_INTEGER })) },
      { daemonEndpoints: { kubeletEndpoint: { Port: 65_535 } } },
    ),
  },
  {
    value: 'Node `status.nodeInfo` with `bootID`, `status.phase`',
    read: 'shown; `agent-version.ts`: a kubelet keeps terminating pods that must not run twice',
    lies: status(
      { nodeInfo: { bootID: 'another', machineID: 'n2', kubeletVersion: 'v99.0.0' } },
      { phase: 'Terminated' },
    ),
  },
  {
    value: 'Node `status.volumesInUse`, `volumesAttached`',
    read: '`volumes/reconcile.ts`: whether a volume counts as mounted',
    lies: status(
      { volumesInUse: manyOf(50, (index) => `kubernetes.io/csi/ebs.csi.aws.com^vol-${index}`) },
      { volumesAttached: [{ name: 'kubernetes.io/csi/ebs.csi.aws.com^vol-1', devicePath: '' }] },
    ),
    decides:
      'a volume reported as mounted is detached only after six minutes by our clock; no pod or Node depends on it',
  },
  {
    value: 'Node `metadata`: times, counts, uid, `deletionTimestamp`, `generation`, annotations',
    read: 'creation, uid and deletion are the server’s; annotations are shown',
    lies: {
      'created long ago': metadata({ creationTimestamp: PAST }),
      'created in the future': metadata({ creationTimestamp: FUTURE }),
      'deleted in the future': metadata({ deletionTimestamp: FUTURE, deletionGracePeriodSeconds: 1 }),
      'a generation': metadata({ generation: 999 }),
      'a ttl': metadata({ annotations: { 'node.alpha.kubernetes.io/ttl': '99999999' } }),
      finalizers: metadata({ finalizers: ['example.com/kept'] }),
    },
  },
  {
    value: 'Node labels: `exclude-disruption`, zone and region',
    read: '`node-digest.ts`: in which zone the node counts, and whether',
    lies: {
      excluded: metadata({
        labels: { 'topology.kubernetes.io/zone': 'a', 'node.kubernetes.io/exclude-disruption': '' },
      }),
      'another zone': metadata({ labels: { 'topology.kubernetes.io/zone': 'b' } }),
    },
    decides: 'the zone that limits its taint; it is a name, and rate and tokens of the zone are our own',
  },
  {
    value: 'Node `spec.taints` at registration, with `timeAdded`',
    read: '`eviction-time.rule.ts`; `timeAdded` is overwritten (decision 0011)',
    lies: {
      'a NoExecute taint long ago': spec({ taints: [{ key: 'own', effect: 'NoExecute', timeAdded: PAST }] }),
      'a NoExecute taint far ahead': spec({ taints: [{ key: 'own', effect: 'NoExecute', timeAdded: FUTURE }] }),
    },
    decides: 'the machine refuses pods without the toleration; the time of its taint is ours',
  },
  {
    value: 'Node `spec.unschedulable`',
    read: '`node-taints.ts`',
    lies: { cordoned: spec({ unschedulable: true }) },
    decides: 'the machine accepts no new pods; nothing is evicted for it',
  },
  {
    value: 'Node `spec.podCIDR`, `providerID`',
    read: '`node-cidrs.rule.ts`, `instances/rule.ts`: which instance EC2 describes',
    lies: {
      'a range': spec({ podCIDR: '10.0.0.0/8', podCIDRs: ['10.0.0.0/8'] }),
      'another cloud': spec({ providerID: 'k3s://n2' }),
      'an instance': spec({ providerID: 'aws:///eu-central-1a/i-0123456789abcdef0' }),
    },
    decides: 'a name: which instance EC2 describes. Its answers and launch time decide. A range affects only pod CIDRs',
  },
  {
    value: 'Pod conditions: times, `PodScheduled` among them; `startTime`',
    read: 'shown; the binding is our commit (decision 0011)',
    lies: {
      'long ago': podConditions(PAST),
      'far ahead': podConditions(FUTURE),
      ...podStatus({ startTime: PAST }, { startTime: FUTURE }),
    },
  },
  {
    value: 'Pod container states, their times, exit codes and restart counts',
    read: '`pods/row.ts`: what `kubectl get` prints',
    lies: podStatus({
      containerStatuses: [
        {
          name: 'main',
          image: 'i',
          imageID: '',
          ready: false,
          restartCount: NOT_A_NUMBER_MAX,
          state: { terminated: { exitCode: 1, startedAt: PAST, finishedAt: FUTURE } },
          lastState: { terminated: { exitCode: 1, startedAt: FUTURE, finishedAt: FUTURE } },
        },
      ],
    }),
  },
  {
    value: 'Pod `metadata` sent with a status: creation, deletion, grace, generation',
    read: 'the server’s, whatever is sent',
    lies: {
      'created in the future': { podMetadata: { creationTimestamp: FUTURE } },
      'deleted in the future': { podMetadata: { deletionTimestamp: FUTURE, deletionGracePeriodSeconds: 999_999 } },
      'no deletion': { podMetadata: { deletionTimestamp: null, deletionGracePeriodSeconds: null } },
      finalizers: { podMetadata: { finalizers: ['example.com/kept'] } },
    },
  },
  {
    value: 'Pod `status.phase`',
    read: '`collection.rule.ts`: whether a pod terminated; the policy limits terminated pods',
    lies: podStatus({ phase: 'Succeeded' }, { phase: 'Failed', reason: 'Evicted' }),
    decides: 'a terminated pod needs no grace period: it is removed when it would be marked',
  },
  {
    value: 'Mirror pod: `tolerations`, `terminationGracePeriodSeconds`',
    read: '`eviction-time.rule.ts`, `deletion.ts`',
    lies: {
      'tolerates everything': mirror({ tolerations: [{ operator: 'Exists' }] }),
      'a grace of an hour': mirror({ terminationGracePeriodSeconds: 3_600 }),
    },
    decides: 'the spec of the machine’s own static pod, which we do not control',
  },
  {
    value: 'Mirror pod: creation, uid, `priority`',
    read: 'the server’s',
    lies: {
      'created long ago': { mirrorPod: (own) => ({ ...own, metadata: { ...own.metadata, creationTimestamp: PAST } }) },
      'created in the future': {
        mirrorPod: (own) => ({ ...own, metadata: { ...own.metadata, creationTimestamp: FUTURE } }),
      },
      'a priority': mirror({ priority: 1_000_000_000 }),
    },
  },
  {
    value: 'Events: times and counts',
    read: 'shown; they expire an hour after our receipt',
    lies: {
      'long ago': { event: { firstTimestamp: PAST, lastTimestamp: PAST, count: 1 } },
      'far ahead': { event: { firstTimestamp: FUTURE, lastTimestamp: FUTURE, count: NOT_A_NUMBER_MAX } },
    },
  },
  {
    value: 'Query of a beat, `Date` and other headers',
    read: 'the field manager is shown; `Date` is not read',
    lies: {
      'a date long ago': { headers: { date: 'Sat, 03 Feb 2001 04:05:06 GMT' } },
      'a date far ahead': { headers: { date: 'Tue, 03 Feb 2099 04:05:06 GMT', 'x-amz-date': '20990203T040506Z' } },
      'a timeout': { query: 'timeout=999999s&timeoutSeconds=999999' },
    },
  },
];

/** Not in a story: what stands for it. */
const ELSEWHERE = [
  [
    'Token `iat`, `exp`, `nbf`',
    'sign-in only (`node-token.ts`)',
    'a token lives 6 minutes at most, by our clock; `node-token.test.ts`, `attacks.test.ts`',
  ],
  [
    'Instance identity document `pendingTime`',
    'enrolment only (`instance-identity.ts`)',
    'signed by AWS, not by the machine; `node-identity.test.ts`',
  ],
  [
    'DELETE with `gracePeriodSeconds` of its own pod',
    '`deletion.ts`',
    'by design: the machine terminates its own pods; `access.md`',
  ],
  ['Order of requests', 'resourceVersion is the server’s', '`change-log-race.test.ts`'],
] as const;

describe('what a machine supplies', () => {
  let honest: Told;
  const shown = new Set<string>();
  beforeAll(async () => {
    honest = await machineStory({});
  });

  it('is part of a story in which it is marked, tainted, evicted, recovers, and is tainted by a person', () => {
    const all = honest.ofLiar.join('\n');
    for (const word of [
      'n1: marked',
      'unreachable:NoExecute of',
      'bound: deletion 1',
      'n1: not marked',
      'late: deletion 3',
    ]) {
      expect(all).toContain(word);
    }
    expect(honest.refused).toEqual([]);
  });

  const cases = VALUES.flatMap((value) => Object.entries(value.lies).map(([what, lie]) => ({ value, what, lie })));
  it.each(cases.map((each) => [each.value.value, each.what, each] as const))(
    '%s: %s',
    async (_value, _what, { value, lie }) => {
      const told = await machineStory(lie);
      shown.add(value.value);
      expect(told.ofOthers).toEqual(honest.ofOthers);
      if (value.decides === undefined) expect(told.ofLiar).toEqual(honest.ofLiar);
      // Its times are ours: whatever it decides happens at a moment of the story.
      expect(told.ofLiar.join()).not.toMatch(/of -?\d{5,} s|deletion -?\d{5,} s/);
    },
  );

  it.each(['PATCH', 'PUT'])(
    'keeps alive a machine without a Lease that posts by %s with a clock that stands',
    async (method) => {
      const { fleet, send, sendAs } = servedFleet(['n1']);
      const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: PAST, lastTransitionTime: PAST };
      for (const name of ['n1', 'n2']) {
        await send('POST', '/api/v1/nodes', { body: { metadata: { name }, status: { conditions: [ready] } } });
      }
      await fleet.streams();
      await fleet.run(0, 120, async () => {
        expect(await fleet.ready('n1')).toBe('True');
        const stored = await send('GET', '/api/v1/nodes/n1');
        const body = method === 'PUT' ? stored : { status: { conditions: [ready] } };
        const contentType = method === 'PUT' ? 'application/json' : MERGE;
        expect((await sendAs('n1', method, '/api/v1/nodes/n1/status', { body, contentType })).code).toBe(200);
        // Said by a person it is no sign of life of n2.
        if (fleet.seconds() < 30) {
          await send('PATCH', '/api/v1/nodes/n2/status', {
            body: { status: { conditions: [ready] } },
            contentType: MERGE,
          });
        }
      });
      expect(await fleet.ready('n1')).toBe('True');
      expect(await fleet.ready('n2')).toBe('Unknown');
    },
  );

  it.each([PAST, FUTURE])(
    'lets an event expire an hour after our receipt, also when it is said to be of %s',
    async (time) => {
      const { fleet, sendAs } = servedFleet(['n1']);
      fleet.at(1_000);
      const body = {
        metadata: { name: 'e1' },
        involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
        firstTimestamp: time,
        lastTimestamp: time,
        reason: 'Lied',
        type: 'Normal',
      };
      const { code, text } = await sendAs('n1', 'POST', '/api/v1/namespaces/default/events', { body });
      expect(code, text).toBe(201);
      const stored = fleet.tables.items('objects').filter(({ pk }) => String(pk).startsWith('o#events#'));
      expect(stored.map(({ ttl }) => ttl)).toEqual([fleet.nowMs() / 1_000 + 3_600]);
    },
  );

  it('is what docs/machine-supplied-values.md says', () => {
    expect([...shown]).toEqual(VALUES.map(({ value }) => value));
    const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
    const text = [
      '# What machines supply',
      '',
      'No mark, taint, eviction or deletion, and no time of one, depends on a clock or a count of a machine. This table lists',
      'each value that a machine supplies, and the effect of wrong ones.',
      '',
      '`test/conformance/machine-supplied-values.test.ts` generates it, and has the wrong values. It compares one story per',
      'value, from the registration of a machine to its end, with the story with correct values. `nothing` means that every',
      'mark, taint and deletion happened at the same second.',
      '',
      line(['value', 'where it is read', 'effect']),
      line(['---', '---', '---']),
      ...VALUES.map(({ value, read, decides }) =>
        line([value, read, decides === undefined ? 'nothing' : `by design: ${decides}`]),
      ),
      '',
      '## Shown elsewhere',
      '',
      line(['value', 'where it is read', 'why it decides nothing']),
      line(['---', '---', '---']),
      ...ELSEWHERE.map(line),
      '',
    ].join('\n');
    if (process.env['WRITE_DOCS'] === '1') writeFileSync(PAGE, text);
    expect(readFileSync(PAGE, 'utf8')).toBe(text);
  });
});
