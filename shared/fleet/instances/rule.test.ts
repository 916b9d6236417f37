import { describe, expect, it } from 'vitest';
import { cloudTable, renderCloudTable } from '../../../test/support/cloud-node-table.ts';
import type { CloudAnswer } from './instance.ts';
import { type CloudMemory, type CloudQuestion, decideAutomaticOutOfService, decideCloud } from './rule.ts';

const policy = { nodeMonitorPeriodSeconds: 5, cloudYoungInstanceSeconds: 300 };
const old = 300_001;
const notFound: CloudAnswer = { kind: 'notFound' };
const found = (state: Extract<CloudAnswer, { kind: 'found' }>['state'], launchedAtMs?: number): CloudAnswer => ({
  kind: 'found',
  state,
  launchedAtMs,
});
const question = (over: Partial<CloudQuestion> = {}): CloudQuestion => ({
  nodeName: 'n',
  ready: 'Unknown',
  answer: notFound,
  memory: {},
  createdAtMs: 0,
  hasShutdownTaint: false,
  ...over,
});

/** Asks in turn, remembering; the kinds of the decisions. */
function answers(
  script: readonly (readonly [atMs: number, answer: CloudAnswer, over?: Partial<CloudQuestion> | undefined])[],
) {
  let memory: CloudMemory = {};
  return script.map(([atMs, answer, over]) => {
    const result = decideCloud(question({ answer, memory, ...over }), atMs, policy);
    memory = result.memory;
    return result.decision.kind;
  });
}

describe('decideCloud', () => {
  it.each([
    ['two answers a period apart', [old, notFound], [old + 5_000, notFound], 'delete'],
    ['two answers a millisecond less than a period apart', [old, notFound], [old + 4_999, notFound], 'wait'],
  ] as const)('%s: %#', (_name, first, second, last) => {
    expect(answers([first, second])).toEqual(['wait', last]);
  });

  it('does not count answers while the instance was young, exactly 5 minutes included', () => {
    expect(
      answers([
        [295_000, notFound],
        [300_000, notFound],
        [300_001, notFound],
        [305_000, notFound],
        [305_001, notFound],
      ]),
    ).toEqual(['wait', 'wait', 'wait', 'wait', 'delete']);
  });

  it('computes the age from EC2’s launch time where known, else from the Node’s creation', () => {
    const launchedLate = { memory: { launchedAtMs: 200_000 } };
    const launchedEarly = { memory: { launchedAtMs: -400_000 } };
    expect(decideCloud(question(launchedLate), old, policy).memory.notFoundSinceMs).toBeUndefined();
    expect(decideCloud(question(launchedEarly), 1_000, policy).memory.notFoundSinceMs).toBe(1_000);
    expect(decideCloud(question(), old, policy).memory.notFoundSinceMs).toBe(old);
  });

  it.each<[string, CloudAnswer, Partial<CloudQuestion>?]>([
    ['an instance that is there', found('running')],
    ['an error', { kind: 'failed', cause: 'error', message: 'x' }],
    ['throttling', { kind: 'failed', cause: 'throttled', message: 'x' }],
    ['a foreign account', { kind: 'foreign', reason: 'x' }],
    ['a Ready node', notFound, { ready: 'True' }],
  ])('%s in between resets the count', (_name, between, over) => {
    expect(
      answers([
        [old, notFound],
        [old + 5_000, between, over],
        [old + 10_000, notFound],
        [old + 15_000, notFound],
      ]).toSpliced(1, 1),
    ).toEqual(['wait', 'wait', 'delete']);
  });

  it('deletes with the event that names the node', () => {
    expect(decideCloud(question({ answer: found('terminated') }), 0, policy).decision).toEqual({
      kind: 'delete',
      reason: 'instance is terminated',
      event: {
        type: 'Normal',
        reason: 'DeletingNode',
        message: 'Deleting node n because it does not exist in the cloud provider',
        source: 'cloud-node-lifecycle-controller',
      },
    });
  });

  it('keeps how long an instance has been down when its launch time becomes known later', () => {
    const over = { answer: found('stopped', 100), memory: { downSinceMs: 5 } };
    expect(decideCloud(question(over), 10, policy).memory).toEqual({ launchedAtMs: 100, downSinceMs: 5 });
  });

  it('keeps how long an instance has been down, through failed calls and until the next launch', () => {
    let memory: CloudMemory = {};
    const at = (atMs: number, answer: CloudAnswer) => {
      memory = decideCloud(question({ answer, memory }), atMs, policy).memory;
      return memory.downSinceMs;
    };
    expect(at(1, found('stopped', 0))).toBe(1);
    expect(at(2, { kind: 'failed', cause: 'throttled', message: '' })).toBe(1);
    expect(at(3, found('stopped', 0))).toBe(1);
    expect(at(4, found('stopped', 2))).toBe(4);
    expect(at(5, found('running', 2))).toBeUndefined();
  });
});

describe('the truth table', () => {
  const table = cloudTable(policy);

  it('has every combination once', () => {
    expect(table).toHaveLength(3 * 13 * 2);
    expect(new Set(table.map(({ ready, answer, shutdownTaint }) => `${ready} ${answer} ${shutdownTaint}`)).size).toBe(
      78,
    );
  });

  it('a Ready node only ever loses its shutdown taint', () => {
    for (const row of table.filter(({ ready }) => ready === 'True')) {
      const expected = row.shutdownTaint ? 'removeShutdownTaint' : 'nothing';
      expect([row.first.kind, row.second.kind]).toEqual([expected, expected]);
    }
  });

  it.each<[string, string, string, string]>([
    // answer, first, second, second with the shutdown taint already there
    ['pending', 'nothing', 'nothing', 'nothing'],
    ['running', 'nothing', 'nothing', 'nothing'],
    ['stopping', 'wait', 'wait', 'wait'],
    ['stopped', 'addShutdownTaint', 'addShutdownTaint', 'nothing'],
    ['shutting-down', 'delete', 'delete', 'delete'],
    ['terminated', 'delete', 'delete', 'delete'],
    ['vanished, young', 'wait', 'wait', 'wait'],
    ['vanished, old', 'wait', 'delete', 'delete'],
    ['error', 'wait', 'wait', 'wait'],
    ['timeout', 'wait', 'wait', 'wait'],
    ['throttled', 'wait', 'wait', 'wait'],
    ['foreign account or region', 'nothing', 'nothing', 'nothing'],
    ['no EC2 instance', 'nothing', 'nothing', 'nothing'],
  ])('not Ready and %s: %s, then %s', (answer, first, second, secondTainted) => {
    for (const ready of ['False', 'Unknown']) {
      const rows = table.filter((row) => row.ready === ready && row.answer === answer);
      expect(rows.map((row) => row.second.kind)).toEqual([second, secondTainted]);
      expect(rows[0]?.first.kind).toBe(first);
    }
  });

  it('renders as Markdown, one line for the rows with the same outcome', () => {
    expect(cloudTable(policy)).toHaveLength(78);
    const lines = renderCloudTable(policy).trimEnd().split('\n');
    expect(lines).toHaveLength(2 + 16);
    expect(lines).toContain(
      '| False or Unknown | vanished, old | no or yes | wait: EC2 does not know the instance, asking again | delete: EC2 did not know the instance twice in a row |',
    );
    expect(new Set(lines.map((line) => line.split('|').length))).toEqual(new Set([7]));
  });
});

describe('decideAutomaticOutOfService', () => {
  const on = { automaticOutOfService: 'stopped', automaticOutOfServiceAfterSeconds: 300 } as const;
  const down = {
    ready: 'Unknown',
    answer: found('stopped'),
    memory: { downSinceMs: 0 },
    outOfServiceTaint: 'absent',
  } as const;

  it('adds the taint from the configured time on, and only when switched on', () => {
    expect(decideAutomaticOutOfService(down, 299_999, on)).toBe('keep');
    expect(decideAutomaticOutOfService(down, 300_000, on)).toBe('add');
    expect(decideAutomaticOutOfService(down, 300_000, { ...on, automaticOutOfService: 'off' })).toBe('keep');
    expect(decideAutomaticOutOfService(down, 300_000, { ...on, automaticOutOfService: 'terminated' })).toBe('keep');
  });

  it('does not act on a failed call, a running instance or a taint that is there', () => {
    const failed: CloudAnswer = { kind: 'failed', cause: 'error', message: '' };
    expect(decideAutomaticOutOfService({ ...down, answer: failed }, 900_000, on)).toBe('keep');
    expect(decideAutomaticOutOfService({ ...down, answer: found('running') }, 900_000, on)).toBe('keep');
    expect(decideAutomaticOutOfService({ ...down, outOfServiceTaint: 'others' }, 900_000, on)).toBe('keep');
  });

  it('lifts only our own taint once the node is Ready', () => {
    expect(decideAutomaticOutOfService({ ...down, ready: 'True', outOfServiceTaint: 'ours' }, 0, on)).toBe('remove');
    expect(decideAutomaticOutOfService({ ...down, ready: 'True', outOfServiceTaint: 'others' }, 0, on)).toBe('keep');
  });
});
