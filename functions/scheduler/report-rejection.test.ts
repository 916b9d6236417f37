import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { reportDeleted, reportRejection } from './report-rejection.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const THEN = '2025-12-31T23:00:00Z';
const shown = (message: string, reason = 'Unschedulable') => ({
  type: 'PodScheduled',
  status: 'False',
  reason,
  message,
  lastTransitionTime: THEN,
});

async function report(
  message: string,
  outcomes: readonly ScriptedOutcome[],
  {
    status = {},
    eventAtMs = 0,
    ...more
  }: { readonly status?: object; readonly eventAtMs?: number; readonly nominatedNodeName?: string } = {},
) {
  const object = {
    metadata: { namespace: 'd', name: 'p', uid: 'u' },
    spec: { containers: [] },
    status,
  } as unknown as KubePod;
  const { objects, commits, written } = scriptedCommits(outcomes);
  const silent = () => {};
  const dependencies = {
    ...workDependencies({
      items: memoryItemStore(),
      clock: { nowMs: () => NOW_MS },
      random: { uuid: () => 'e', fraction: () => 0 },
      policy: defaultPolicy,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      meter: { add: silent },
    }),
    objects,
  };
  const reported = await reportRejection(
    dependencies,
    { pod: schedulablePod(object), object, reason: 'Unschedulable', message, eventAtMs, ...more },
    NOW_MS,
  );
  const first = commits[0]?.writes[0];
  const next = first?.kind === 'update' && first.ref.resource === 'pods' ? (first.object as KubePod).status : undefined;
  return { reported, object, written: written(), next, dependencies, commits };
}
const EVENT = expect.stringMatching(/^create p\./);

describe('why a pod is not scheduled', () => {
  it('is shown by its condition and by an event, in one commit', async () => {
    const { reported, written, next, commits } = await report('no room', ['committed'], {
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    });
    expect(written).toEqual([['update p', EVENT]]);
    expect(next?.conditions).toEqual([
      { type: 'Ready', status: 'False' },
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: 'no room',
        lastProbeTime: null,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
    expect(reported).toMatchObject({ eventAtMs: NOW_MS, stored: { status: next } });
    expect(commits[0]?.writes[1]).toMatchObject({
      object: { type: 'Warning', reason: 'FailedScheduling', message: 'no room' },
    });
  });

  it('has the time at which its status changed', async () => {
    const time = async (condition: object) =>
      (await report('no room', ['committed'], { status: { conditions: [condition] } })).next?.conditions?.[0]
        ?.lastTransitionTime;
    expect(await time(shown('other'))).toBe(THEN);
    expect(await time({ ...shown('other'), status: 'True' })).toBe('2026-01-01T00:00:00Z');
    expect(await time({ ...shown('other'), lastTransitionTime: undefined })).toBeNull();
  });

  it('is not written again while it is shown; its event is counted once per minute', async () => {
    const status = { conditions: [shown('no room')] };
    const early = await report('no room', [], { status, eventAtMs: NOW_MS - 59_999 });
    expect([early.written, early.reported.eventAtMs, early.reported.stored]).toEqual([
      [],
      NOW_MS - 59_999,
      early.object,
    ]);
    const later = await report('no room', ['committed'], { status, eventAtMs: NOW_MS - 60_000 });
    expect([later.written, later.reported.eventAtMs, later.reported.stored]).toEqual([[[EVENT]], NOW_MS, later.object]);
  });

  it.each([
    ['another message', shown('other')],
    ['another reason', shown('no room', 'SchedulerError')],
    ['another status', { ...shown('no room'), status: 'True' }],
  ])('is written in place of %s', async (_text, condition) => {
    expect((await report('no room', ['committed'], { status: { conditions: [condition] } })).written).toEqual([
      ['update p', EVENT],
    ]);
  });

  it('is written with a nomination, and when that ends', async () => {
    const conditions = [shown('no room')];
    const nominated = await report('no room', ['committed'], { status: { conditions }, nominatedNodeName: 'n' });
    expect(nominated.next?.nominatedNodeName).toBe('n');
    const ended = await report('no room', ['committed'], {
      status: { conditions, nominatedNodeName: 'n' },
      nominatedNodeName: '',
    });
    expect(ended.next).not.toHaveProperty('nominatedNodeName');
    const kept = await report('other', ['committed'], { status: { conditions, nominatedNodeName: 'n' } });
    expect(kept.next?.nominatedNodeName).toBe('n');
  });

  it('is not written to a pod that changed meanwhile', async () => {
    const { reported, written } = await report('no room', [{ kind: 'conflict', index: 0 }], { eventAtMs: 5 });
    expect([reported, written.length]).toEqual([{ stored: undefined, eventAtMs: 5 }, 1]);
    expect((await report('no room', [{ kind: 'contended' }], { eventAtMs: 5 })).reported).toEqual({
      stored: undefined,
      eventAtMs: 5,
    });
  });

  it('counts an event that was written before', async () => {
    const { reported, written } = await report('no room', [{ kind: 'conflict', index: 1 }, 'committed', 'committed']);
    expect([written, reported.eventAtMs]).toEqual([[['update p', EVENT], ['update p'], [EVENT]], NOW_MS]);
    expect(reported.stored).toBeDefined();
    const lost = await report('no room', [{ kind: 'conflict', index: 1 }, { kind: 'contended' }], { eventAtMs: 5 });
    expect([lost.reported, lost.written.length]).toEqual([{ stored: undefined, eventAtMs: 5 }, 2]);
  });

  it.each<ScriptedOutcome>([{ kind: 'tooLarge', index: 0 }, { kind: 'overfull' }])(
    'leaves the pod as it is after %j',
    async (ended) => {
      const { reported, object } = await report('no room', [ended, 'committed', 'committed']);
      expect(reported).toEqual({ stored: object, eventAtMs: NOW_MS });
    },
  );
});

it('a pod that is deleted while it waits has an event of its own', async () => {
  const { dependencies } = await report('x', ['committed']);
  const { objects, commits } = scriptedCommits(['committed']);
  const pod = schedulablePod({
    metadata: { namespace: 'd', name: 'p', uid: 'u' },
    spec: { containers: [] },
  } as unknown as KubePod);
  await reportDeleted({ ...dependencies, objects }, pod, NOW_MS);
  expect(commits[0]?.writes[0]).toMatchObject({ object: { message: 'skip schedule deleting pod: d/p' } });
});
