import { describe, expect, it } from 'vitest';
import { monitorParts } from '../../test/support/monitor-parts.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import type { KubeObject } from '../kinds/types.ts';
import { UNBOUNDED } from '../ticks/bounded-work.ts';
import { isMarkable, markPods } from './mark-pods.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const pod = (name: string, { status = 'True', nodeName = 'n', uid = `u-${name}` } = {}): KubeObject =>
  ({
    metadata: { namespace: 'd', name, uid },
    spec: { nodeName },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status }] },
  }) as unknown as KubeObject;
const pods = (count: number) => Array.from({ length: count }, (_, index) => pod(`p${String(index).padStart(2, '0')}`));

async function marked(
  of: readonly KubeObject[],
  outcomes: readonly ScriptedOutcome[],
  {
    stored = of,
    budget = UNBOUNDED,
  }: { readonly stored?: readonly KubeObject[]; readonly budget?: { hasTime(): boolean } } = {},
) {
  const { objects, commits, written } = scriptedCommits(outcomes, ({ name }) =>
    stored.find(({ metadata }) => metadata.name === name),
  );
  const { dependencies, emitted } = monitorParts({}, { nowMs: NOW_MS });
  const done = await markPods({ ...dependencies, objects }, of, NOW_MS, budget);
  /** The pods of each commit, and its number of events. */
  const parts = written().map((writes) => [
    writes.flatMap((each) => (each.startsWith('update') ? [each.slice(7)] : [])).join(),
    writes.filter((each) => each.startsWith('create')).length,
  ]);
  return { ...done, parts, commits, emitted };
}

it('a Ready pod can be marked, another one cannot', () => {
  expect([isMarkable(pod('p')), isMarkable(pod('p', { status: 'False' }))]).toEqual([true, false]);
  expect(isMarkable({ metadata: {} })).toBe(false);
});

describe('pods of a node', () => {
  it('are marked not ready with an event each, thirteen in a commit', async () => {
    const { marked: count, left, faults, parts, commits } = await marked(pods(14), ['committed', 'committed']);
    expect([count, left, faults, parts.map(([, events]) => events)]).toEqual([14, 0, [], [13, 1]]);
    expect(commits[1]?.writes).toMatchObject([
      {
        ref: { resource: 'pods', namespace: 'd', name: 'p13' },
        object: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] } },
      },
      { object: { reason: 'NodeNotReady', involvedObject: { kind: 'Pod', name: 'p13', uid: 'u-p13' } } },
    ]);
  });

  it('that are not Ready need no commit', async () => {
    expect(await marked([pod('a', { status: 'False' })], [])).toMatchObject({ marked: 0, left: 0, parts: [] });
    expect(await marked([], [])).toMatchObject({ marked: 0, left: 0, parts: [] });
  });

  it('that do not fit one commit are marked in halves', async () => {
    const { marked: count, parts } = await marked(pods(3), [{ kind: 'overfull' }, 'committed', 'committed']);
    expect([count, parts.map(([names]) => names)]).toEqual([3, ['p00,p01,p02', 'p00,p01', 'p02']]);
  });

  it('that are too large are reported, and the others are marked', async () => {
    const {
      marked: count,
      left,
      parts,
      emitted,
    } = await marked(pods(3), [{ kind: 'tooLarge', index: 1 }, 'committed', 'committed']);
    expect([count, left, parts]).toEqual([
      2,
      0,
      [
        ['p00,p01,p02', 3],
        ['', 1],
        ['p00,p02', 2],
      ],
    ]);
    expect(emitted.map(({ name }) => name)).toContain('objects_not_written_total');
  });

  it('that changed are read again; one that was replaced, moved, deleted or marked is skipped', async () => {
    const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map((name) => pod(name));
    const stored = [a!, pod('b', { uid: 'other' }), pod('c', { nodeName: 'm' }), pod('e', { status: 'False' })];
    const {
      marked: count,
      left,
      parts,
    } = await marked([a!, b!, c!, d!, e!], [{ kind: 'conflict', index: 1 }, 'committed'], { stored });
    expect([count, left, parts[1]]).toEqual([1, 0, ['a', 1]]);
  });

  it('with an event that exists are marked without another one', async () => {
    const { marked: count, parts } = await marked(pods(2), [{ kind: 'conflict', index: 2 }, 'committed']);
    expect([count, parts]).toEqual([
      2,
      [
        ['p00,p01', 2],
        ['p00,p01', 0],
      ],
    ]);
    const again = await marked(pods(2), [{ kind: 'conflict', index: 2 }, { kind: 'conflict', index: 0 }, 'committed']);
    expect(again.parts[2]).toEqual(['p00,p01', 0]);
  });

  it('that keep changing are left: eight attempts for two of them, then seven for each', async () => {
    const { marked: count, left, parts } = await marked(pods(2), []);
    expect([count, left, parts.length]).toEqual([0, 2, 8 + 7 + 7]);
  });

  it('are left without time', async () => {
    expect(await marked(pods(2), ['committed'], { budget: { hasTime: () => false } })).toMatchObject({
      marked: 0,
      left: 2,
      parts: [],
    });
  });
});
